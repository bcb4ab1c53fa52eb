//! The two decision tables of recovery, and the proof that they are whole.
//!
//! Each row matches one or more states and names one decision; a test walks
//! every state there is and finds exactly one row. [`crate::log::walk`] gathers
//! the facts and does what the row says.

use crate::log::segment::HeaderState;

/// What a file shows where its header should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Blank,
    Broken,
    Garbage,
    Other,
    Unknown,
    Started,
}

/// Where a started segment stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// It begins with the sequence that comes next, or holds it.
    Next,
    /// Sequences between the log so far and its first one are missing.
    Gap,
    /// All it holds is trimmed.
    Trimmed,
    /// All it holds is superseded by a later segment or behind the log's end.
    Behind,
}

/// What is known of a segment before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentState {
    pub(crate) header: Header,
    pub(crate) order: Order,
    /// Something in it or (where it is started) behind it says that the
    /// expected group was durable.
    pub(crate) claimed: bool,
    /// A damaged log is not to be served.
    pub(crate) strict: bool,
}

/// What happens to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentDecision {
    /// Replay its groups.
    Read,
    /// It holds nothing needed: use the file again.
    Unneeded,
    /// Nothing says that it held anything durable, but it may have: keep it
    /// out of use.
    SetAside,
    /// Leave it until the header that trims it is known to be durable.
    Keep,
    /// The log ends before it.
    EndBefore,
    /// Something durable is lost before it: report that, then read it.
    ReadBehindGap,
    /// Something durable is lost in it: move it away and go on behind it.
    Quarantine,
    /// Refuse the log: something durable is lost.
    Refuse,
    /// Refuse the log: another version wrote it.
    Unsupported,
}

struct SegmentRow {
    header: &'static [Header],
    order: Option<Order>,
    claimed: Option<bool>,
    strict: Option<bool>,
    decision: SegmentDecision,
}

/// In a row: whatever it is.
const ANY: Option<bool> = None;
const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

const fn segment(
    header: &'static [Header],
    order: Option<Order>,
    claimed: Option<bool>,
    strict: Option<bool>,
    decision: SegmentDecision,
) -> SegmentRow {
    SegmentRow {
        header,
        order,
        claimed,
        strict,
        decision,
    }
}

const SEGMENT_ROWS: [SegmentRow; 14] = {
    use {Header as H, Order as O, SegmentDecision as D};
    [
        // A later version's file: not even its age can be told.
        segment(&[H::Unknown], None, ANY, ANY, D::Unsupported),
        // Prepared, or lost with everything in it before any sync.
        segment(&[H::Blank], None, NO, ANY, D::Unneeded),
        // Cut short before any sync, or damaged with all that would tell.
        segment(&[H::Broken], None, NO, ANY, D::SetAside),
        // No crash writes there.
        segment(&[H::Garbage], None, ANY, NO, D::Quarantine),
        segment(&[H::Garbage], None, ANY, YES, D::Refuse),
        // Its groups outlived its header, and they were durable.
        segment(&[H::Blank, H::Broken], None, YES, NO, D::Quarantine),
        segment(&[H::Blank, H::Broken], None, YES, YES, D::Refuse),
        // Recycled under a new name and not started yet.
        segment(&[H::Other], None, ANY, ANY, D::Unneeded),
        segment(&[H::Started], Some(O::Next), ANY, ANY, D::Read),
        segment(&[H::Started], Some(O::Trimmed), ANY, ANY, D::Keep),
        segment(&[H::Started], Some(O::Behind), ANY, ANY, D::Unneeded),
        // The segment before it was lost before any sync: so is this one's reason.
        segment(&[H::Started], Some(O::Gap), NO, ANY, D::EndBefore),
        // A segment file, or the end of one, is gone.
        segment(&[H::Started], Some(O::Gap), YES, NO, D::ReadBehindGap),
        segment(&[H::Started], Some(O::Gap), YES, YES, D::Refuse),
    ]
};

/// What is known at a place where no further group is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndState {
    /// A later segment begins with the expected sequence.
    pub(crate) at_limit: bool,
    /// Something behind says that the expected group was durable.
    pub(crate) claimed: bool,
    /// A damaged log is not to be served.
    pub(crate) strict: bool,
}

/// What happens at such a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndDecision {
    /// Go on in the segment that begins here.
    NextSegment,
    /// The log ends here.
    EndHere,
    /// Something durable is lost: report it, keep a copy of what stands in its
    /// place, and go on with the next group there is.
    SkipHole,
    /// Refuse the log: something durable is lost.
    Refuse,
}

struct EndRow {
    at_limit: bool,
    claimed: Option<bool>,
    strict: Option<bool>,
    decision: EndDecision,
}

const fn end(
    at_limit: bool,
    claimed: Option<bool>,
    strict: Option<bool>,
    decision: EndDecision,
) -> EndRow {
    EndRow {
        at_limit,
        claimed,
        strict,
        decision,
    }
}

const END_ROWS: [EndRow; 4] = [
    // Whatever stands here, a later segment took over: it was cut once.
    end(true, ANY, ANY, EndDecision::NextSegment),
    // A torn tail, or simply where writing stopped.
    end(false, NO, ANY, EndDecision::EndHere),
    end(false, YES, NO, EndDecision::SkipHole),
    end(false, YES, YES, EndDecision::Refuse),
];

impl Header {
    pub(crate) fn of(state: &HeaderState) -> Self {
        match state {
            HeaderState::Blank => Self::Blank,
            HeaderState::Broken => Self::Broken,
            HeaderState::Garbage => Self::Garbage,
            HeaderState::Other => Self::Other,
            HeaderState::Unknown(_) => Self::Unknown,
            HeaderState::Started(_) => Self::Started,
        }
    }
}

impl SegmentRow {
    fn matches(&self, state: SegmentState) -> bool {
        self.header.contains(&state.header)
            && self.order.is_none_or(|order| order == state.order)
            && self.claimed.is_none_or(|claimed| claimed == state.claimed)
            && self.strict.is_none_or(|strict| strict == state.strict)
    }
}

impl SegmentState {
    /// The decision of the row that matches.
    pub(crate) fn decide(self) -> SegmentDecision {
        let row = SEGMENT_ROWS.iter().find(|row| row.matches(self));
        row.expect("the tests find a row for every state").decision
    }
}

impl EndRow {
    fn matches(&self, state: EndState) -> bool {
        self.at_limit == state.at_limit
            && self.claimed.is_none_or(|claimed| claimed == state.claimed)
            && self.strict.is_none_or(|strict| strict == state.strict)
    }
}

impl EndState {
    /// The decision of the row that matches.
    pub(crate) fn decide(self) -> EndDecision {
        let row = END_ROWS.iter().find(|row| row.matches(self));
        row.expect("the tests find a row for every state").decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [bool; 2] = [false, true];

    fn segment_states() -> impl Iterator<Item = SegmentState> {
        use Header::*;
        let headers = [Blank, Broken, Garbage, Other, Unknown, Started];
        let orders = [Order::Next, Order::Gap, Order::Trimmed, Order::Behind];
        headers.into_iter().flat_map(move |header| {
            orders.into_iter().flat_map(move |order| {
                BOTH.into_iter().flat_map(move |claimed| {
                    BOTH.into_iter().map(move |strict| SegmentState {
                        header,
                        order,
                        claimed,
                        strict,
                    })
                })
            })
        })
    }

    fn end_states() -> impl Iterator<Item = EndState> {
        BOTH.into_iter().flat_map(|at_limit| {
            BOTH.into_iter().flat_map(move |claimed| {
                BOTH.into_iter().map(move |strict| EndState {
                    at_limit,
                    claimed,
                    strict,
                })
            })
        })
    }

    #[test]
    fn every_state_has_exactly_one_row() {
        for state in segment_states() {
            let rows = SEGMENT_ROWS.iter().filter(|row| row.matches(state));
            assert_eq!(rows.count(), 1, "{state:?}");
        }
        for state in end_states() {
            let rows = END_ROWS.iter().filter(|row| row.matches(state));
            assert_eq!(rows.count(), 1, "{state:?}");
        }
    }

    #[test]
    fn durable_groups_are_never_cut_away_silently() {
        for state in segment_states().filter(|state| state.claimed) {
            let is_readable = state.header == Header::Started && state.order != Order::Gap;
            let is_foreign = matches!(state.header, Header::Other | Header::Unknown);
            if is_readable || is_foreign {
                continue;
            }
            let expected = match (state.strict, state.header) {
                (true, _) => SegmentDecision::Refuse,
                (false, Header::Started) => SegmentDecision::ReadBehindGap,
                (false, _) => SegmentDecision::Quarantine,
            };
            assert_eq!(state.decide(), expected, "{state:?}");
        }
        for state in end_states().filter(|state| state.claimed && !state.at_limit) {
            let expected = if state.strict {
                EndDecision::Refuse
            } else {
                EndDecision::SkipHole
            };
            assert_eq!(state.decide(), expected, "{state:?}");
        }
    }

    #[test]
    fn what_no_crash_explains_is_all_that_strict_changes() {
        let unclaimed = segment_states().filter(|state| !state.claimed);
        for state in unclaimed.filter(|state| state.header != Header::Garbage) {
            let lax = SegmentState {
                strict: false,
                ..state
            };
            assert_eq!(state.decide(), lax.decide(), "{state:?}");
        }
    }
}
