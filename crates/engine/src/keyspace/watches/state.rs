//! What is known of a reader, as bytes of the log (`docs/format/wal.md`).
//!
//! It is written at each flush, since the log before it may go. Tested below and by
//! `tests/watches`.

use super::reader::{Change, ChangedSeries, Pending, Reader, STEPS_MAX, joined};
use crate::log::Position;
use crate::series::watched::{Mark, Span};
use crate::storage::files::bytes::{Put, Take};
use latewood_model::{Labels, SeriesId, Timestamp};
use std::sync::Arc;

const ANY: u8 = 0;
const SAME: u8 = 1;
const NAMED: u8 = 2;

/// What a log says of a reader.
pub(super) struct State {
    pub(super) horizon: Timestamp,
    pub(super) since: Timestamp,
    /// All changes up to here are among `changes`, or done.
    pub(super) position: u64,
    pub(super) changes: Vec<Pending>,
}

/// The state of a reader with these changes. If it is longer than `bytes_max`, they are joined.
pub(super) fn of(
    reader: &Reader,
    pending: &[Pending],
    position: Position,
    bytes_max: usize,
) -> Vec<u8> {
    let bytes = put(reader, position, pending);
    if bytes.len() <= bytes_max {
        return bytes;
    }
    put(reader, position, &joined(pending, STEPS_MAX))
}

fn put(reader: &Reader, position: Position, changes: &[Pending]) -> Vec<u8> {
    let mut bytes = Put::default();
    bytes.signed(reader.horizon);
    bytes.signed(reader.since);
    bytes.number(position.0);
    let spans = changes.iter().map(|pending| pending.mark.spans().len());
    bytes.number(spans.sum::<usize>() as u64);
    let mut before: Option<&Arc<ChangedSeries>> = None;
    for pending in changes {
        for span in pending.mark.spans() {
            bytes.number(u64::from(pending.selector));
            bytes.signed(span.from);
            bytes.signed(span.to);
            match &pending.series {
                None => bytes.byte(ANY),
                Some(series) if before.is_some_and(|before| Arc::ptr_eq(before, series)) => {
                    bytes.byte(SAME);
                }
                Some(series) => {
                    bytes.byte(NAMED);
                    put_series(&mut bytes, series);
                    before = Some(series);
                }
            }
        }
    }
    bytes.0
}

fn put_series(bytes: &mut Put, series: &ChangedSeries) {
    bytes.number(series.id.0);
    bytes.string(&series.key);
    bytes.string(series.labels.as_bytes());
    bytes.signed(series.floor);
    bytes.byte(u8::from(series.is_gone));
    bytes.number(series.expires_at_ms.map_or(0, i64::unsigned_abs));
}

/// Reads a state; `None` if it is none.
pub(super) fn read(bytes: &[u8]) -> Option<State> {
    let mut bytes = Take(bytes);
    let (horizon, since) = (bytes.signed()?, bytes.signed()?);
    let position = bytes.number()?;
    let mut changes: Vec<Pending> = Vec::new();
    let mut before = None;
    for _ in 0..bytes.count()? {
        let selector = u32::try_from(bytes.number()?).ok()?;
        let (from, to) = (bytes.signed()?, bytes.signed()?);
        let series = match bytes.byte()? {
            ANY => None,
            SAME => Some(Option::clone(&before)?),
            NAMED => {
                before = Some(Arc::new(take_series(&mut bytes)?));
                before.clone()
            }
            _ => return None,
        };
        let span = Span { from, to };
        match changes.last_mut() {
            Some(last) if selector != Change::STEPS && last.is_of(selector, series.as_ref()) => {
                last.mark.add(span, position);
            }
            _ => changes.push(Pending {
                selector,
                series,
                mark: Mark::new(span, position),
            }),
        }
    }
    let state = State {
        horizon,
        since,
        position,
        changes,
    };
    bytes.is_empty().then_some(state)
}

fn take_series(bytes: &mut Take<'_>) -> Option<ChangedSeries> {
    Some(ChangedSeries {
        id: SeriesId::new(bytes.number()?)?,
        key: bytes.string()?.into(),
        labels: Labels::from_bytes(bytes.string()?).ok()?,
        floor: bytes.signed()?,
        is_gone: match bytes.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        },
        expires_at_ms: match i64::try_from(bytes.number()?).ok()? {
            0 => None,
            at_ms => Some(at_ms),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_no_part_of_it_is_one() {
        let labels = Labels::new([(&b"a"[..], &b"b"[..])]).unwrap_or_default();
        let series = Arc::new(ChangedSeries {
            id: SeriesId(7),
            key: b"key"[..].into(),
            labels,
            floor: -5,
            is_gone: true,
            expires_at_ms: Some(9),
        });
        let change = |selector, series, from| Pending {
            selector,
            series,
            mark: Mark::new(Span { from, to: 8 }, 44),
        };
        let mut reader = Reader::new();
        (reader.horizon, reader.since) = (100, -7);
        let mut spans = change(3, Some(Arc::clone(&series)), 1);
        spans.mark.add(Span { from: 20, to: 30 }, 44);
        reader.set_pending(vec![
            spans,
            change(5, Some(series), 2),
            change(4, None, i64::MIN),
            change(Change::STEPS, None, 5),
            change(Change::STEPS, None, 6),
        ]);
        let bytes = of(&reader, reader.pending(), Position(44), usize::MAX);
        let state = read(&bytes).unwrap();
        assert_eq!((state.horizon, state.since), (100, -7));
        assert_eq!((state.position, state.changes.len()), (44, 5));
        assert!(
            state
                .changes
                .iter()
                .all(|pending| pending.mark.newest == 44)
        );
        let mut again = Reader::new();
        again.set_pending(state.changes);
        assert_eq!(again.changes(), reader.changes());
        assert!((0..bytes.len()).all(|end| read(&bytes[..end]).is_none()));
    }

    #[test]
    fn a_state_has_these_bytes() {
        let mut reader = Reader::new();
        (reader.horizon, reader.since) = (5, 3);
        let span = Span { from: 2, to: 4 };
        let pending = Pending {
            selector: 1,
            series: None,
            mark: Mark::new(span, 9),
        };
        let bytes = of(&reader, &[pending], Position(9), usize::MAX);
        let expected = [0x15, 0x0d, 0x13, 0x03, 0x03, 0x09, 0x11, 0x00];
        assert_eq!(bytes, expected, "needs a new format version");
    }
}
