//! Noting, joining and taking marks and looks, without a database.

use super::*;
use std::collections::BTreeSet;

const PLACE: usize = 3;
const SET: WatchSet = WatchSet(2);

fn watched(horizon: Timestamp) -> Watched {
    let mut watched = Watched::default();
    watched.begin_generation(1, Timestamp::MIN);
    watched.raise_all(&[SET], 1, horizon);
    watched.know(PLACE, SET, horizon);
    watched
}

fn spans(taken: &Taken) -> Vec<Span> {
    let marks = taken.marks.iter().map(|(_, mark)| mark);
    let hulls = taken.hulls.iter().map(|(_, mark)| mark);
    let gone = taken.gone.iter().map(|look| &look.mark);
    let all = marks.chain(hulls).chain(gone);
    all.flat_map(|mark| mark.spans().to_vec()).collect()
}

#[test]
fn only_what_was_used_is_marked() {
    let mut watched = watched(100);
    watched.note(PLACE, 101, 101);
    assert!(watched.take(9).0.marks.is_empty(), "nobody used it");
    watched.note(PLACE, 100, 100);
    watched.note(PLACE, 50, 500);
    let (taken, is_all) = watched.take(9);
    assert!(is_all && spans(&taken) == [Span { from: 50, to: 100 }]);
    watched.know(PLACE, WatchSet::NOBODY, Timestamp::MIN);
    watched.note(PLACE, 0, 10);
    assert!(watched.take(9).0.marks.is_empty(), "no selector has it");
    watched.unknow(PLACE);
    watched.note(PLACE, 10, 10);
    assert_eq!(watched.take(9).0.marks.len(), 1, "unknown is watched");
}

#[test]
fn a_very_late_sample_stays_apart_from_others() {
    let mut watched = watched(10_000_000);
    watched.note(PLACE, 5, 5);
    for at in 0..1_000 {
        watched.note(PLACE, 9_000_000 + 7 * at, 9_000_000 + 7 * at);
    }
    let mut spans = spans(&watched.take(9).0);
    spans.sort_by_key(|span| span.from);
    assert_eq!(spans[0], Span { from: 5, to: 5 });
    assert!(spans[1].from >= 9_000_000);
}

#[test]
fn whatever_is_joined_covers_all_that_was_noted() {
    for seed in 0..200_u64 {
        let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |below: u64| {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            (chance % below) as i64
        };
        let mut watched = watched(500);
        let mut noted = BTreeSet::new();
        for _ in 0..next(40) {
            let from = next(600);
            let to = from + next(20);
            watched.note(PLACE, from, to);
            noted.extend(from..=to.min(500));
        }
        let spans = spans(&watched.take(9).0);
        for at in noted {
            let covered = spans.iter().any(|span| span.from <= at && at <= span.to);
            assert!(covered, "seed {seed}: {at} is in none of {spans:?}");
        }
    }
}

#[test]
fn looks_that_nobody_collects_take_bounded_memory() {
    const SHARDS: usize = 64;
    let mut watched = Watched {
        top: 100,
        ..Watched::of_shards(SHARDS)
    };
    let labels = Labels::new([(&b"a"[..], &[b'b'; 1_000][..])]).unwrap();
    let key: Arc<[u8]> = [b'k'; 1_000].into();
    let whole = Span { from: 5, to: 90 };
    for number in 0..10_000_usize {
        let id = SeriesId(number as u64);
        watched.note_new_look(number);
        watched.note_gone_look(id, &key, &labels);
        watched.note_gone(number, Some(whole), |mark| GoneLook {
            id,
            key: Arc::clone(&key),
            labels: labels.clone(),
            floor: 0,
            expires_at_ms: None,
            mark,
        });
    }
    let looks = watched.take_looks().len();
    let (taken, _) = watched.take(usize::MAX);
    let most = LOOKS_BYTES_MAX / SHARDS / 2_000;
    assert!(looks <= 2 * most, "{looks}");
    assert!(taken.gone.len() <= most, "{}", taken.gone.len());
    let hull = taken
        .hulls
        .iter()
        .find(|(set, _)| *set == WatchSet::UNKNOWN);
    let (_, hull) = hull.expect("the looks beyond are in a hull");
    let all = Span {
        from: Timestamp::MIN,
        to: 100,
    };
    assert!(hull.spans().contains(&all), "{hull:?}");
}

#[test]
fn marks_follow_their_series_when_others_go() {
    let mut watched = watched(100);
    for place in 0..5 {
        watched.know(place, SET, 100);
        watched.note(place, place as i64, place as i64);
    }
    watched.forget(1);
    watched.note(4, 50, 50);
    watched.note(1, 1, 1);
    let (mut taken, is_all) = watched.take(3);
    assert!(!is_all);
    watched.note(0, 60, 60);
    let rest = watched.take(9).0.marks;
    taken.marks.extend(rest);
    for (place, at) in [(0, 0), (0, 60), (1, 1), (2, 2), (3, 3), (4, 4), (4, 50)] {
        let marks = taken.marks.iter().filter(|(held, _)| *held == place);
        let mut spans = marks.flat_map(|(_, mark)| mark.spans());
        let is_told = spans.any(|span| (span.from..=span.to).contains(&at));
        assert!(is_told, "{at} of {place} is lost: {:?}", taken.marks);
    }
}

#[test]
fn more_series_than_a_shard_marks_are_joined_by_watch_set() {
    let mut watched = watched(1_000_000);
    let places = MARKS_MAX + 10;
    for place in 0..places {
        watched.know(place, SET, 1_000_000);
        watched.note(place, place as i64, place as i64);
    }
    let (taken, is_all) = watched.take(usize::MAX);
    assert!(is_all && taken.marks.len() == MARKS_MAX);
    let [(set, hull)] = &taken.hulls[..] else {
        panic!("one watch set");
    };
    assert_eq!(*set, SET);
    let (from, to) = (MARKS_MAX as i64, places as i64 - 1);
    assert_eq!(hull.spans(), [Span { from, to }]);
}

fn look_at(place: usize) -> impl FnOnce(Mark) -> GoneLook {
    move |mark| GoneLook {
        id: SeriesId(place as u64),
        key: b"key"[..].into(),
        labels: Labels::default(),
        floor: 0,
        expires_at_ms: None,
        mark,
    }
}

#[test]
fn series_that_end_are_one_look_of_their_watch_set() {
    let mut watched = watched(100);
    let whole = |place: usize| Span {
        from: place as i64,
        to: 2 * place as i64,
    };
    for place in 1..10 * MARKS_MAX {
        watched.know(place, SET, 100);
        watched.note_ended(place, whole(place), look_at(place));
    }
    watched.know(0, WatchSet::NOBODY, Timestamp::MIN);
    watched.note_ended(0, whole(0), look_at(0));
    // With other readers, and of one whose watch set nobody knows.
    watched.begin_generation(2, 100);
    watched.note_ended(3, whole(3), look_at(3));
    let (taken, _) = watched.take(9);
    assert!(taken.hulls.is_empty() && taken.gone.is_empty() && taken.ended_any.is_none());
    let spans = taken.ended.iter().map(|look| look.mark.spans().to_vec());
    let all = Span { from: 1, to: 100 };
    assert_eq!(spans.collect::<Vec<_>>(), [[all], [whole(3)]]);
}

#[test]
fn series_that_end_and_nobody_knows_are_bounded_until_the_log_has_them() {
    let mut watched = watched(100);
    let whole = Span { from: 5, to: 90 };
    for place in 0..MARKS_MAX + 7 {
        watched.unknow(place);
        watched.replays = Some(place as u64);
        watched.note_ended(place, whole, look_at(place));
    }
    let last = MARKS_MAX as u64 + 6;
    watched.forget_ended(last - 10);
    let (taken, _) = watched.take(9);
    // Those that were too much are of any series.
    assert_eq!(taken.ended.len(), 3);
    let any = taken.ended_any.expect("more ended than are kept");
    assert_eq!((any.spans(), any.newest), (&[whole][..], last));
    watched.note_ended(1, whole, look_at(1));
    watched.forget_ended(last);
    let (taken, _) = watched.take(9);
    assert!(taken.ended.is_empty() && taken.ended_any.is_none());
}
