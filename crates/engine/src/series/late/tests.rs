//! Tests of [`super`].

use super::*;
use crate::format::chunk::{Chunk, Shape};
use DuplicatePolicy::{Last, Max, Sum};
use latewood_codec::{Encoder, Hint};
use latewood_model::Encoding;

fn op(timestamp: Timestamp, value: f64, policy: DuplicatePolicy) -> LateOp {
    LateOp {
        timestamp,
        value,
        policy,
    }
}

#[test]
fn a_full_buffer_becomes_a_run() {
    let mut late = Late::default();
    for step in 0..100_000i64 {
        late.push(op(step * 7919 % 100_003, 1.0, Last));
    }
    assert_eq!(late.pending(), 100_000);
    assert_eq!(late.runs.len(), 100_000 / STAGED_MAX);
    let all = late.share(i64::MIN, i64::MAX).collect(i64::MIN, i64::MAX);
    assert_eq!(all.len(), 100_000);
    assert!(all.is_sorted_by(|a, b| a.timestamp < b.timestamp));
}

#[test]
fn many_runs_become_one() {
    let mut late = Late::default();
    let per_merge = STAGED_MAX * SMALL_RUNS_MAX;
    for step in 0..2 * per_merge as i64 {
        late.push(op(step * 7919 % 100_003, step as f64, Last));
    }
    assert_eq!(late.runs.len(), 2);
    assert!(late.runs.iter().all(|run| run.ops().len() == 100_003));
    assert_eq!(late.pending(), 2 * 100_003);
    let newest = 2 * per_merge as i64 - 1;
    assert_eq!(
        late.fold(newest * 7919 % 100_003, None),
        Some(newest as f64)
    );
}

#[test]
fn a_settle_is_looked_for_now_and_then() {
    let mut late = Late::default();
    let is_due = |step: i64| {
        late.push(op(step, 1.0, Sum));
        late.upkeep_due() && late.check_due()
    };
    let due = (0..20_000).map(is_due).filter(|&due| due).count();
    assert!((30..60).contains(&due), "{due} looks");
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
fn what_waits_follows_pushes_and_settles() {
    let mut late = Late::default();
    late.push(op(5, 1.0, Last));
    assert!(late.holds(5) && !late.holds(6));
    late.push(op(6, 1.0, Last));
    assert!(late.holds(6));
    assert!(late.begin_settle().is_some());
    assert!(late.begin_settle().is_none(), "one settle at a time");
    late.push(op(7, 1.0, Last));
    assert!(late.holds(5) && late.holds(7));
    late.settled();
    assert!(!late.holds(5) && late.holds(7), "a chunk has the one");
    assert_eq!(late.pending(), 1);
    late.remove_span(7, 7);
    assert!(!late.holds(7));
}

/// A chunk of frames of a hundred samples each.
fn chunk_of(timestamps: impl IntoIterator<Item = Timestamp>) -> Held {
    let timestamps: Vec<Timestamp> = timestamps.into_iter().collect();
    let mut chunk = Chunk::default();
    for frame in timestamps.chunks(100) {
        let values = vec![1.0; frame.len()];
        let shape = Shape {
            encoding: Encoding::Compressed,
            chunk_size_bytes: 4096,
        };
        let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
        let pushed = chunk.push_samples(&mut encoder, shape, &mut hint, frame, &values);
        pushed.unwrap();
    }
    chunk.finish().into()
}

/// Looks up until all timestamps up to `timestamp` are learnt.
fn look_often(late: &mut Late, timestamp: Timestamp, chunks: &[Held]) {
    for _ in 0..2_000 {
        late.prepare(timestamp, chunks).unwrap();
    }
}

#[test]
fn looks_teach_what_is_absent() {
    let mut chunks = vec![chunk_of((0..1_000).map(|n| n * 100))];
    let mut late = Late::default();
    late.push(op(5, 1.0, Last));
    late.prepare(7, &chunks).unwrap();
    assert_eq!(late.says(7), None, "one look does not pay");
    look_often(&mut late, 7, &chunks);
    let is_absent = |late: &Late, at| late.says(at) == Some(false);
    let absent = |late: &Late, from, to| (from..to).filter(|&at| is_absent(late, at)).count();
    assert!(!is_absent(&late, 5) && (0..1_000).all(|n| !is_absent(&late, n * 100)));
    assert!(absent(&late, 0, 99_900) > 97_000);
    assert_eq!(
        absent(&late, 99_901, 200_000),
        0,
        "samples may yet come in order"
    );

    chunks.push(chunk_of((1_000..2_000).map(|n| n * 100)));
    look_often(&mut late, 150_000, &chunks);
    assert!((0..2_000).all(|n| !is_absent(&late, n * 100)));
    assert!(absent(&late, 0, 199_900) > 194_000);

    // It grows with new timestamps and keeps the old ones.
    for n in 0..10_000 {
        late.prepare(20 * n + 1, &chunks).unwrap();
        late.push(op(20 * n + 1, 1.0, Last));
    }
    assert!((0..10_000).all(|n| !is_absent(&late, 20 * n + 1) && late.holds(20 * n + 1)));
    assert!((0..2_000).all(|n| !is_absent(&late, n * 100) && !late.holds(n * 100)));
    assert!(absent(&late, 0, 199_900) > 180_000);
    assert!(late.known.learnt_bytes() < 3 * 12_001 + 64);
}

#[test]
fn where_samples_are_close_looks_teach_what_is_there_too() {
    let mut chunks = vec![chunk_of((0..1_000).map(|n| 5_000 + n * 10))];
    let mut late = Late::default();
    late.push(op(5_005, 1.0, Last));
    look_often(&mut late, 5_007, &chunks);
    let of = |at: i64| at >= 5_000 && (at % 10 == 0 || at == 5_005);
    assert!((0..=14_990).all(|at| late.says(at) == Some(of(at))));
    assert!([14_991, 15_005].iter().all(|&at| late.says(at).is_none()));

    // Operations beyond what was learnt are neither dropped nor counted as learnt.
    chunks.push(chunk_of((1_000..2_000).map(|n| 5_000 + n * 10)));
    for at in [4_001, 15_005] {
        assert!(!late.holds(at));
        late.push(op(at, 1.0, Last));
        assert!(late.holds(at));
    }
    assert_eq!((late.says(4_001), late.says(15_005)), (Some(true), None));
    assert!(!late.holds(5_010) && late.holds(5_005));
    look_often(&mut late, 16_007, &chunks);
    let of = |at: i64| at >= 5_000 && at % 10 == 0 || at % 10_000 == 5_005 || at == 4_001;
    assert!((0..=24_990).all(|at| late.says(at) == Some(of(at))));
    assert!(late.known.learnt_bytes() < 2 * 20_000 / 8);

    // Neither are older ones, however many.
    for at in (0..3_000).step_by(10) {
        late.push(op(at + 1, 1.0, Last));
    }
    assert!((0..3_000).all(|at| late.says(at).is_none_or(|says| says == (at % 10 == 1))));
    look_often(&mut late, 4_500, &chunks);
    let of = |at: i64| of(at) || at < 3_000 && at % 10 == 1;
    assert!((0..=24_990).all(|at| late.says(at) == Some(of(at))));

    // Expired timestamps do not use memory forever.
    let bytes = late.known.learnt_bytes();
    let mut moving = Late::default();
    for hour in 0..40 {
        let chunks = [chunk_of(
            (hour * 1_000..(hour + 1) * 1_000).map(|n| 5_000 + n * 10),
        )];
        moving.push(op(5_005 + hour * 10_000, 1.0, Last));
        look_often(&mut moving, 10_000 + hour * 10_000, &chunks);
        assert_eq!(moving.says(5_007 + hour * 10_000), Some(false));
    }
    assert!(moving.known.learnt_bytes() < 8 * bytes);

    // A gap of a year is too wide for a bitmap.
    let year = 365 * 86_400_000;
    chunks.push(chunk_of([year, year + 1_000]));
    late.push(op(year - 1_000, 1.0, Last));
    assert_eq!(late.says(5_000), None);
    look_often(&mut late, year - 500, &chunks);
    assert_eq!(late.says(year - 500), Some(false));
    let there = [4_001, 5_005, 5_010, 24_990, year - 1_000, year];
    assert!(there.iter().all(|&at| late.says(at).is_none()));
    assert!(late.holds(year - 1_000) && !late.holds(year));
    assert!(late.known.learnt_bytes() < 10_000);
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
