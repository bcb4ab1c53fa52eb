//! The rows that carry a label: the low bits of their ids, ascending, in the shortest of three forms.
//!
//! There is at least one row. Tested below and with the files.

use crate::base::partition::PARTITION_BITS;
use crate::storage::files::bytes::{Put, Take};
use roaring::RoaringBitmap;

/// A bit for each id of a partition.
pub(super) const IDS_BYTES: usize = 1 << PARTITION_BITS >> 3;
/// The form stands in the lowest bits of the first number, the count of what follows above them.
const FORM_BITS: u32 = 2;
/// Each number less the one before it and one.
const STEPS: u64 = 0;
/// Spans of numbers without a gap: those left out before it less one, those behind its first one.
const RUNS: u64 = 1;
/// A bit for each id.
const BITS: u64 = 2;

pub(super) fn put_rows(out: &mut Put, lows: &[u16]) {
    let at = out.0.len();
    put_steps(out, lows);
    // A lone row, which is what most values have, is shortest as it is.
    if lows.len() > 1 {
        keep_shorter(out, at, |other| put_runs(other, lows));
    }
    if out.0.len() - at > IDS_BYTES {
        keep_shorter(out, at, |other| {
            head(other, lows.len(), BITS);
            other.raw(&bits_of(lows.iter().copied()));
        });
    }
}

fn keep_shorter(out: &mut Put, at: usize, put: impl Fn(&mut Put)) {
    let mut other = Put::default();
    put(&mut other);
    if other.0.len() < out.0.len() - at {
        out.0.truncate(at);
        out.raw(&other.0);
    }
}

fn head(out: &mut Put, count: usize, form: u64) {
    out.number((count as u64) << FORM_BITS | form);
}

fn put_steps(out: &mut Put, lows: &[u16]) {
    head(out, lows.len(), STEPS);
    let mut next = 0;
    for &low in lows {
        out.number(u64::from(low) - next);
        next = u64::from(low) + 1;
    }
}

fn put_runs(out: &mut Put, lows: &[u16]) {
    let runs = || lows.chunk_by(|low, next| u32::from(*low) + 1 == u32::from(*next));
    head(out, runs().count(), RUNS);
    let mut next = 0;
    for run in runs() {
        let (first, more) = (u64::from(run[0]), run.len() as u64 - 1);
        out.number(first - next);
        out.number(more);
        next = first + more + 2;
    }
}

pub(super) fn bits_of(lows: impl Iterator<Item = u16>) -> Vec<u8> {
    let mut bits = vec![0_u8; IDS_BYTES];
    for low in lows {
        bits[usize::from(low / 8)] |= 1 << (low % 8);
    }
    bits
}

/// Reads rows, and adds them to `rows` if they are wanted; `None` if the bytes are invalid.
pub(super) fn take_rows(bytes: &mut Take<'_>, mut rows: Option<&mut RoaringBitmap>) -> Option<()> {
    let head = bytes.number()?;
    let (count, form) = (head >> FORM_BITS, head & ((1 << FORM_BITS) - 1));
    if count == 0 {
        return None;
    }
    if form == BITS {
        let bits = bytes.raw(IDS_BYTES as u64)?;
        if let Some(rows) = rows {
            let found = RoaringBitmap::from_lsb0_bytes(0, bits);
            *rows |= &found;
            return (found.len() == count).then_some(());
        }
        return Some(());
    }
    let mut next = 0_u64;
    for _ in 0..count {
        let first = u16::try_from(next.checked_add(bytes.number()?)?).ok()?;
        let last = match form {
            STEPS => first,
            RUNS => u16::try_from(u64::from(first).checked_add(bytes.number()?)?).ok()?,
            _ => return None,
        };
        if let Some(rows) = &mut rows {
            // They ascend, so one is put behind the others.
            let is_behind = first == last && rows.try_push(first.into()).is_ok();
            if !is_behind {
                rows.insert_range(u32::from(first)..=u32::from(last));
            }
        }
        // There is a gap between spans, or they would be one.
        next = u64::from(last) + if form == RUNS { 2 } else { 1 };
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimRandom;

    fn comes_back(lows: &[u16]) -> usize {
        let mut out = Put::default();
        put_rows(&mut out, lows);
        let (mut bytes, mut rows) = (Take(&out.0), RoaringBitmap::new());
        take_rows(&mut bytes, Some(&mut rows)).unwrap();
        assert!(bytes.is_empty());
        assert!(rows.iter().eq(lows.iter().map(|&low| u32::from(low))));
        let mut bytes = Take(&out.0);
        take_rows(&mut bytes, None).unwrap();
        assert!(bytes.is_empty());
        for cut in (0..out.0.len()).step_by(1 + out.0.len() / 50) {
            let cut = take_rows(&mut Take(&out.0[..cut]), Some(&mut RoaringBitmap::new()));
            assert!(cut.is_none());
        }
        out.0.len()
    }

    #[test]
    fn rows_come_back_in_the_shortest_form() {
        assert_eq!(comes_back(&[0]), 2);
        assert_eq!(comes_back(&[u16::MAX]), 4);
        let all: Vec<u16> = (0..=u16::MAX).collect();
        assert!(comes_back(&all) < 6);
        let even: Vec<u16> = all.iter().copied().step_by(2).collect();
        assert!(comes_back(&even) < IDS_BYTES + 6);
        assert!(comes_back(&even[..1_000]) < 1_005);
        for seed in 0..60 {
            println!("seed {seed}");
            let random = SimRandom::new(seed);
            let odds = 1 + random.below(1 << random.below(16));
            let (mut is_in, stays) = (true, 1 + random.below(9));
            let lows = all.iter().filter(|_| {
                if random.below(stays) == 0 {
                    is_in = random.below(odds) == 0;
                }
                is_in
            });
            let lows: Vec<u16> = lows.copied().collect();
            if !lows.is_empty() {
                comes_back(&lows);
            }
        }
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        let refused = |numbers: &[u64]| {
            let mut out = Put::default();
            numbers.iter().for_each(|&number| out.number(number));
            out.raw(&[0; IDS_BYTES]);
            let taken = take_rows(&mut Take(&out.0), Some(&mut RoaringBitmap::new()));
            assert!(taken.is_none(), "{numbers:?}");
        };
        // No rows, no form, beyond a partition, more than fit, bits without their count.
        refused(&[STEPS]);
        refused(&[BITS]);
        refused(&[4 | 3, 0]);
        refused(&[4, 1 << 16]);
        refused(&[4, u64::MAX]);
        refused(&[8, 65_535, 0]);
        refused(&[8, 65_535, u64::MAX]);
        refused(&[4 | RUNS, 65_535, 1]);
        refused(&[4 | RUNS, 1, u64::MAX]);
        refused(&[4 | BITS]);
    }
}
