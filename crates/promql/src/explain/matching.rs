//! Which series of the two sides of a binary operation belong together.
//!
//! Series that have no sample at any step do not count, as they do not exist for the user. Those
//! that match by their labels may still have no step in common; the result tells.

use crate::engine::EvalError;
use crate::exec::record::{Given, Matches, Record};
use crate::exec::recorded::Trace;
use crate::labels::Labels;
use crate::source::Source;
use crate::tree::{Binary, Matching};

/// Series, or pairs, of each kind that are shown.
const EXAMPLES_MAX: usize = 10;
/// Bytes of the labels that are shown of a series.
const LABELS_BYTES_MAX: usize = 1024;
/// Bytes of a value of a label.
const VALUE_BYTES_MAX: usize = 256;
/// Bytes of the labels that are shown of all operations.
const ALL_BYTES_MAX: usize = 1 << 20;

/// How the series of two sides match.
#[derive(Clone, Debug)]
pub struct Matched {
    /// As the query says.
    pub by: Matching,
    /// The left side.
    pub left: Side,
    /// The right side.
    pub right: Side,
    /// Pairs of series with the same matching labels.
    pub pairs: u64,
    /// Some of them.
    pub examples: Vec<Pair>,
    /// Some examples are left out, since there are many of other operations.
    pub is_cut: bool,
}

/// A side.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Series with samples.
    pub series: usize,
    /// Those that match some of the other side.
    pub matched: usize,
    /// Some of the others.
    pub unmatched: Vec<Shown>,
}

/// Two series that match.
#[derive(Clone, Debug)]
pub struct Pair {
    /// That of the left side.
    pub left: Shown,
    /// That of the right side.
    pub right: Shown,
}

/// The labels of a series, as far as they are not too long.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Names and values; a long value ends with `...`.
    pub labels: Vec<(String, String)>,
    /// Labels that are left out.
    pub omitted: usize,
}

/// Bytes that examples may still take.
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(ALL_BYTES_MAX)
    }
}

impl Budget {
    /// The labels of a series, if there is room for them.
    fn show(&mut self, labels: &Labels) -> Option<Shown> {
        let (mut shown, mut bytes) = (Shown::default(), 0);
        for (name, value) in labels.iter() {
            let value = if value.len() > VALUE_BYTES_MAX {
                let end = value.floor_char_boundary(VALUE_BYTES_MAX);
                format!("{}...", &value[..end])
            } else {
                value.to_owned()
            };
            let more = name.len() + value.len();
            if bytes + more > LABELS_BYTES_MAX {
                shown.omitted += 1;
                continue;
            }
            bytes += more;
            shown.labels.push((name.to_owned(), value));
        }
        self.0 = self.0.checked_sub(bytes + size_of::<Shown>())?;
        Some(shown)
    }
}

/// Which series of an operation belong together, once it was evaluated; none unless both sides are
/// vectors.
///
/// # Errors
/// Where the query must end.
pub(super) fn matched(
    node: &Binary,
    record: &Record,
    trace: &Trace,
    source: &dyn Source,
    budget: &mut Budget,
) -> Result<Option<Matched>, EvalError> {
    let (Some(by), Some(matches)) = (&node.matching, record.matches()) else {
        return Ok(None);
    };
    let (Some(left), Some(right)) = (trace.get(&node.left), trace.get(&node.right)) else {
        return Ok(None);
    };
    let mut matched = Matched {
        by: by.clone(),
        left: Side::default(),
        right: Side::default(),
        pairs: 0,
        examples: Vec::new(),
        is_cut: false,
    };
    for (at, (of_left, of_right)) in matches.groups.iter().enumerate() {
        if at % 4096 == 0 {
            source.check()?;
        }
        let of_left = existing(&left, of_left);
        let of_right = existing(&right, of_right);
        matched.add(&of_left, &of_right, matches, budget);
    }
    Ok(Some(matched))
}

/// Those of `members` that have a sample, or may have one.
fn existing(record: &Record, members: &[usize]) -> Vec<usize> {
    let exists =
        |at: &usize| !matches!(record.given(*at), Given::Samples(0) | Given::Probed(false));
    members.iter().copied().filter(exists).collect()
}

impl Matched {
    /// Adds the series of a group.
    fn add(&mut self, left: &[usize], right: &[usize], of: &Matches, budget: &mut Budget) {
        self.left.series += left.len();
        self.right.series += right.len();
        // Once there is no room, there is none for the next.
        let examples_max = if self.is_cut { 0 } else { EXAMPLES_MAX };
        if !left.is_empty() && !right.is_empty() {
            self.left.matched += left.len();
            self.right.matched += right.len();
            let pairs = (left.len() as u64).saturating_mul(right.len() as u64);
            self.pairs = self.pairs.saturating_add(pairs);
            let pairs = left
                .iter()
                .flat_map(|left| right.iter().map(move |right| (left, right)));
            for (left, right) in pairs.take(examples_max.saturating_sub(self.examples.len())) {
                match (budget.show(&of.left[*left]), budget.show(&of.right[*right])) {
                    (Some(left), Some(right)) => self.examples.push(Pair { left, right }),
                    _ => self.is_cut = true,
                }
            }
            return;
        }
        for (side, alone, labels) in [
            (&mut self.left, left, &of.left),
            (&mut self.right, right, &of.right),
        ] {
            for at in alone
                .iter()
                .take(examples_max.saturating_sub(side.unmatched.len()))
            {
                match budget.show(&labels[*at]) {
                    Some(shown) => side.unmatched.push(shown),
                    None => self.is_cut = true,
                }
            }
        }
    }
}
