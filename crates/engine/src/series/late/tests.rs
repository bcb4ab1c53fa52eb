//! Tests of [`super`].

use super::*;
use DuplicatePolicy::{Last, Max, Sum};

fn op(timestamp: Timestamp, value: f64, policy: DuplicatePolicy) -> LateOp {
    LateOp {
        timestamp,
        value,
        policy,
    }
}

#[test]
fn runs_stay_few() {
    let mut late = Late::default();
    for step in 0..100_000i64 {
        late.push(op(step * 7919 % 100_003, 1.0, Last));
    }
    assert_eq!(late.pending(), 100_000);
    assert!(
        late.runs.len() <= 7 + 100_000 / (STAGED_MAX * FAN_IN),
        "{} runs",
        late.runs.len()
    );
    let all = late.share(i64::MIN, i64::MAX).collect(i64::MIN, i64::MAX);
    assert_eq!(all.len(), 100_000);
    assert!(all.is_sorted_by(|a, b| a.timestamp < b.timestamp));
}

#[test]
fn arrival_order_decides_across_runs() {
    let mut late = Late::default();
    late.push(op(5, 10.0, Sum));
    for filler in 0..2 * STAGED_MAX as i64 {
        late.push(op(1_000 + filler, 0.0, Last));
    }
    late.push(op(5, 4.0, Max));
    assert_eq!(late.fold(5, Some(1.0)), Some(11.0));
    late.push(op(5, 100.0, Max));
    late.push(op(5, 1.0, Sum));
    assert_eq!(late.fold(5, Some(1.0)), Some(101.0));
    let mut folded = Some(1.0);
    for op in late.share(5, 5).collect(5, 5) {
        folded = Some(op.apply(folded));
    }
    assert_eq!(folded, Some(101.0));
    late.push(op(5, 7.0, Last));
    assert_eq!(late.share(5, 5).collect(5, 5).len(), 1);
    assert_eq!(late.fold(5, None), Some(7.0));
}

#[test]
fn existence_follows_pushes_and_settles() {
    let mut late = Late::default();
    late.push(op(5, 1.0, Last));
    assert!(late.exists(5) && !late.exists(6));
    late.push(op(6, 1.0, Last));
    assert!(late.exists(6));
    assert!(late.begin_settle().is_some());
    assert!(late.begin_settle().is_none(), "one settle at a time");
    late.push(op(7, 1.0, Last));
    assert!(late.exists(5) && late.exists(7));
    late.settled();
    assert!(late.exists(5) && late.exists(7), "a chunk has the one");
    assert_eq!(late.presence(8), None, "a chunk may have it");
    late.timestamps.as_mut().unwrap().learn(&[3, 9]);
    assert_eq!(late.presence(8), Some(false));
    assert_eq!(late.pending(), 1);
    late.remove_span(7, 7);
    assert!(!late.exists(5) && !late.exists(7));
}

#[test]
fn an_abandoned_settle_keeps_arrival_order() {
    let mut late = Late::default();
    late.push(op(5, 1.0, Sum));
    late.begin_settle();
    late.push(op(5, 0.5, Max));
    late.push(op(5, 9.0, Max));
    // Enough to seal the newer operations into a run of their own.
    for filler in 0..STAGED_MAX as i64 {
        late.push(op(1_000 + filler, 0.0, Last));
    }
    late.abandon_settle();
    assert_eq!(late.fold(5, Some(1.0)), Some(9.0));
    assert_eq!(late.fold(5, Some(10.0)), Some(11.0));
    assert_eq!(late.span(), Some((5, 999 + STAGED_MAX as i64)));
}
