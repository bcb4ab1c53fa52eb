//! Comparing samples themselves with what was sent: some series, some windows of each.
//!
//! The generator is run again, and the policy of the key decides what is left of samples that share
//! a timestamp: values that are mixed up or made up are found even where counts are right.

use std::collections::BTreeMap;

use crate::base::control::Control;
use crate::base::error::{self, Doing};
use crate::base::reply::{ReplyExt, rows};
use crate::workload::series::Series;

/// Series that are looked at, spread over all of them.
const SERIES: usize = 4;
/// Windows of each, spread from its oldest to its newest sample.
const WINDOWS: i64 = 8;
/// Length of a window: samples of the workload are a millisecond apart.
const WINDOW_MS: i64 = 1_000;

type Window = (i64, i64);

/// What a timestamp should hold; nothing where the policy is not known and it was sent twice.
type Expected = BTreeMap<i64, Option<f64>>;

/// Compares windows of some of `series` with what was sent to them.
pub(super) fn check(control: &mut Control, series: &[&Series]) -> error::Result<()> {
    let step = series.len().div_ceil(SERIES).max(1);
    for series in series.iter().step_by(step) {
        let key = series.key();
        let info = control.run(&format!("TS.INFO {key}"))?;
        let policy = info.field("duplicatePolicy").map(ReplyExt::text);
        let policy = policy.unwrap_or_default().to_lowercase();
        let windows = windows(series);
        let mut held = Vec::new();
        for (from, to) in &windows {
            held.extend(rows(&control.run(&format!("TS.RANGE {key} {from} {to}"))?)?);
        }
        compare(&held, &expected(series, &windows, &policy), &policy).doing(key)?;
    }
    Ok(())
}

/// Windows from the oldest to the newest sample, in order and apart.
fn windows(series: &Series) -> Vec<Window> {
    let times = || series.replay().map(|(at, _)| at);
    let (Some(oldest), Some(newest)) = (times().min(), times().max()) else {
        return Vec::new();
    };
    if newest - oldest < WINDOWS * WINDOW_MS {
        return vec![(oldest, newest)];
    }
    let last = newest - WINDOW_MS + 1;
    let starts = (0..WINDOWS).map(|at| oldest + (last - oldest) * at / (WINDOWS - 1));
    starts.map(|from| (from, from + WINDOW_MS - 1)).collect()
}

/// What the windows should hold, all together.
fn expected(series: &Series, windows: &[Window], policy: &str) -> Expected {
    let mut held = Expected::new();
    let mut text = zmij::Buffer::new();
    let is_in = |at| windows.iter().any(|&(from, to)| from <= at && at <= to);
    for (at, value) in series.replay().filter(|&(at, _)| is_in(at)) {
        // The server reads what it was sent: text.
        let new = text.format_finite(value).parse().ok();
        held.entry(at)
            .and_modify(|old| *old = old.zip(new).and_then(|(old, new)| kept(old, new, policy)))
            .or_insert(new);
    }
    held
}

fn kept(old: f64, new: f64, policy: &str) -> Option<f64> {
    match policy {
        "block" | "first" => Some(old),
        "last" => Some(new),
        "min" => Some(old.min(new)),
        "max" => Some(old.max(new)),
        "sum" => Some(old + new),
        _ => None,
    }
}

fn compare(rows: &[(i64, f64)], expected: &Expected, policy: &str) -> Result<(), String> {
    let mut got: BTreeMap<i64, f64> = rows.iter().copied().collect();
    for (at, expected) in expected {
        let found = got.remove(at);
        let same = match (found, *expected) {
            // Nobody promises in which order a sum is made.
            (Some(found), Some(sum)) if policy == "sum" => (found - sum).abs() <= sum.abs() * 1e-12,
            (found, Some(_)) => found == *expected,
            (found, None) => found.is_some(),
        };
        if !same {
            return Err(format!("at {at} expected {expected:?}, got {found:?}"));
        }
    }
    match got.first_key_value() {
        Some((at, value)) => Err(format!("at {at} expected nothing, got {value}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::shape::LateShape;

    fn sent(share: f64, count: usize) -> Series {
        let mut series = Series::shaped("k".into(), LateShape::Corrections, share, 3, 1);
        (0..count).for_each(|_| _ = series.next_sample());
        series
    }

    #[test]
    fn windows_reach_from_the_oldest_to_the_newest() {
        assert_eq!(windows(&sent(0.5, 0)), []);
        let few = windows(&sent(0.0, 100));
        assert_eq!(few, [(1_000_000_000_001, 1_000_000_000_100)]);
        let series = sent(0.0, 100_000);
        let many = windows(&series);
        assert_eq!(many.len(), WINDOWS as usize);
        assert_eq!(many[0], (1_000_000_000_001, 1_000_000_001_000));
        assert_eq!(many[7], (1_000_000_099_001, 1_000_000_100_000));
        assert!(many.windows(2).all(|pair| pair[0].1 < pair[1].0));
        for window in &many {
            assert_eq!(expected(&series, &[*window], "last").len(), 1_000);
        }
        assert_eq!(
            expected(&series, &many, "last").len(),
            WINDOWS as usize * 1_000
        );
    }

    #[test]
    fn a_policy_that_is_applied_as_another_is_noticed() {
        let series = sent(0.9, 2_000);
        let windows = windows(&series);
        let of = |policy| expected(&series, &windows, policy);
        let served = |policy| {
            let rows = of(policy).into_iter();
            rows.map(|(at, value)| (at, value.unwrap()))
                .collect::<Vec<_>>()
        };
        let policies = ["block", "last", "min", "max", "sum"];
        for asked in policies {
            for done in policies {
                let outcome = compare(&served(done), &of(asked), asked);
                assert_eq!(outcome.is_ok(), asked == done, "{asked} as {done}");
            }
            // Where the server does not tell its policy, timestamps are compared.
            assert_eq!(compare(&served(asked), &of(""), ""), Ok(()));
        }
        assert_eq!(of("first"), of("block"));
    }

    #[test]
    fn the_first_difference_is_named() {
        let expected: Expected = [(1, Some(0.5)), (2, Some(1.5)), (3, None)].into();
        let named = |rows: &[_]| compare(rows, &expected, "last").err().unwrap_or_default();
        assert_eq!(named(&[(1, 0.5), (2, 1.5), (3, 9.0)]), "");
        let other = named(&[(1, 0.5), (2, 1.25), (3, 0.0)]);
        assert_eq!(other, "at 2 expected Some(1.5), got Some(1.25)");
        let fewer = named(&[(1, 0.5), (3, 0.0)]);
        assert_eq!(fewer, "at 2 expected Some(1.5), got None");
        let more = named(&[(1, 0.5), (2, 1.5), (3, 0.0), (4, 7.0)]);
        assert_eq!(more, "at 4 expected nothing, got 7");
    }
}
