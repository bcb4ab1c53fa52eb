//! Ends of compaction rules that lie in files of parked series: rules go on as if both had stayed awake,
//! and what cannot be read is told.

use super::filed::World;
use crate::format::rule::RuleSpec;
use crate::io::Clock;
use crate::{Append, Create, Db, Error, ErrorKind, ExpireIf, RangeQuery, Scratch, Sink};
use latewood_model::{Aggregator, Sample, SeriesOptions};
use std::ops::ControlFlow;
use std::path::PathBuf;

const MINUTE_MS: i64 = 60_000;

struct Rows(Vec<(i64, f64)>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        self.0
            .extend(timestamps.iter().copied().zip(values.iter().copied()));
        ControlFlow::Continue(())
    }
}

fn rows(db: &Db, key: &str) -> Vec<(i64, f64)> {
    let mut rows = Rows(Vec::new());
    let read = db.range(key.as_bytes(), &RangeQuery::EVERYTHING, &mut rows);
    read.unwrap();
    rows.0
}

fn create(db: &Db, key: &str) {
    db.create(key.as_bytes(), &SeriesOptions::default())
        .unwrap();
}

fn tie(db: &Db, source: &str, destination: &str, bucket_ms: i64) -> Result<(), Error> {
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms,
        align: 0,
    };
    let made = db.create_rule(source.as_bytes(), destination.as_bytes(), spec);
    made.map(drop)
}

fn put(db: &Db, key: &str, timestamp: i64) {
    let append = Append {
        key: key.as_bytes(),
        timestamp,
        value: 1.0,
        on_duplicate: None,
        create: Create::Never,
    };
    let mut scratch = Scratch::new();
    db.append(&[append], &mut scratch).unwrap();
    assert_eq!(scratch.outcomes(), [Ok(timestamp)]);
}

/// Parks all series by files, and starts anew.
fn rest(world: &mut World) {
    world.flush();
    world.db().park_all().unwrap();
    assert_eq!(world.parked() as usize, world.db().len());
    world.kill();
    assert_eq!(world.parked() as usize, world.db().len());
}

/// What rules there are, as their state says.
fn rules(db: &Db) -> Vec<String> {
    let mut rules = Vec::new();
    let mut each = |rule: crate::RuleState| {
        let [source, destination] =
            [rule.source, rule.destination].map(|key| String::from_utf8_lossy(&key).into_owned());
        rules.push(format!("{source} {destination} {:?}", rule.open));
    };
    db.scan_rules(0, usize::MAX, &mut each).unwrap();
    rules.sort_unstable();
    rules
}

fn source_of(db: &Db, key: &str) -> Option<String> {
    let source = db.source_of(key.as_bytes()).unwrap();
    source.map(|key| String::from_utf8_lossy(&key).into_owned())
}

/// `raw` writes to `minute`, that to `hour`, and all three rest.
fn chain() -> World {
    let mut world = World::new();
    for key in ["raw", "minute", "hour"] {
        create(world.db(), key);
    }
    tie(world.db(), "raw", "minute", MINUTE_MS).unwrap();
    tie(world.db(), "minute", "hour", 10 * MINUTE_MS).unwrap();
    for at in (0..20 * MINUTE_MS + 1_000).step_by(1_000) {
        put(world.db(), "raw", at);
    }
    rest(&mut world);
    world
}

#[test]
fn an_open_bucket_of_a_parked_source_closes_with_the_next_sample() {
    let mut world = chain();
    let open = [
        "minute hour Some((600000, 1199999))",
        "raw minute Some((1200000, 1259999))",
    ];
    assert_eq!(rules(world.db()), open);
    assert_eq!(world.parked(), 3, "a list wakes none");
    put(world.db(), "raw", 20 * MINUTE_MS + 500);
    world.db().settle().unwrap();
    assert_eq!(world.parked(), 2, "the bucket is still open");
    put(world.db(), "raw", 21 * MINUTE_MS);
    world.db().settle().unwrap();
    assert_eq!(world.parked(), 0, "a row of each level");
    for _ in 0..2 {
        let minutes = rows(world.db(), "minute");
        assert_eq!(minutes.len(), 21);
        assert_eq!(minutes[20], (20 * MINUTE_MS, 2.0));
        assert_eq!(rows(world.db(), "hour"), [(0, 600.0), (600_000, 600.0)]);
        rest(&mut world);
    }
}

#[test]
fn a_late_sample_to_a_parked_source_corrects_its_parked_destinations() {
    let mut world = chain();
    put(world.db(), "raw", 61_500);
    assert_eq!(rows(world.db(), "hour"), [(0, 601.0)]);
    assert_eq!(rows(world.db(), "minute")[1], (MINUTE_MS, 61.0));
    rest(&mut world);
    let deleted = world.db().delete_range(b"raw", 0, 1_000).unwrap();
    assert_eq!(deleted.0, 2);
    rest(&mut world);
    assert_eq!(rows(world.db(), "hour"), [(0, 599.0)]);
}

#[test]
fn reads_of_parked_destinations_are_those_of_awake_ones() {
    let world = chain();
    let latest = |key: &str| world.db().last_sample_latest(key.as_bytes()).unwrap();
    assert_eq!(latest("minute"), Some(Sample::new(1_200_000, 1.0)));
    assert_eq!(world.parked(), 2, "its source still rests");
    assert_eq!(latest("hour"), Some(Sample::new(1_200_000, 1.0)));
    assert_eq!(source_of(world.db(), "hour").as_deref(), Some("minute"));
    assert_eq!(source_of(world.db(), "minute").as_deref(), Some("raw"));
    let states = world.db().rule_states(b"minute").unwrap();
    assert_eq!(states.len(), 2, "of which and to which it is");
    assert_eq!(world.db().rules_of(b"raw").unwrap().len(), 1);
    let error = tie(world.db(), "hour", "raw", MINUTE_MS).unwrap_err();
    assert!(error.to_string().contains("circle"), "{error}");
    create(world.db(), "other");
    let error = tie(world.db(), "other", "minute", MINUTE_MS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[test]
fn what_is_left_of_a_rule_whose_other_end_goes_is_free() {
    for gone in ["raw", "minute"] {
        let mut world = chain();
        put(world.db(), "raw", 61_500);
        rest(&mut world);
        assert_eq!(world.db().remove(&[gone.as_bytes()]).unwrap().0, 1);
        for is_rested in [false, true] {
            if is_rested {
                rest(&mut world);
            }
            let expected = if gone == "raw" { 1 } else { 0 };
            assert_eq!(rules(world.db()).len(), expected, "{gone}");
            let freed = if gone == "raw" { "minute" } else { "hour" };
            assert_eq!(source_of(world.db(), freed), None);
            assert_eq!(rows(world.db(), "hour")[0], (0, 601.0));
        }
        create(world.db(), "other");
        rest(&mut world);
        let freed = if gone == "raw" { "minute" } else { "hour" };
        tie(world.db(), "other", freed, MINUTE_MS).unwrap();
        rest(&mut world);
        assert_eq!(source_of(world.db(), freed).as_deref(), Some("other"));
        put(world.db(), "other", 30 * MINUTE_MS);
        put(world.db(), "other", 31 * MINUTE_MS);
        let newest = world.db().last_sample(freed.as_bytes()).unwrap();
        assert_eq!(newest, Some(Sample::new(30 * MINUTE_MS, 1.0)));
    }
}

#[test]
fn an_end_that_expires_while_it_rests_leaves_the_other_one_free() {
    for (gone, restarts) in [
        ("raw", false),
        ("raw", true),
        ("minute", false),
        ("minute", true),
    ] {
        let mut world = chain();
        let at_ms = world.clock.now_ms() + 1_000;
        let set = world
            .db()
            .expire(gone.as_bytes(), at_ms, ExpireIf::default());
        set.unwrap();
        rest(&mut world);
        world.clock.advance_ms(1_001);
        if restarts {
            world.kill();
        }
        world.db().accept_clock().unwrap();
        world.db().maintain().unwrap();
        assert!(!world.db().contains(gone.as_bytes()));
        let (freed, left) = match gone {
            "raw" => ("minute", 1),
            _ => ("hour", 0),
        };
        for _ in 0..2 {
            assert_eq!(rules(world.db()).len(), left, "{gone}");
            assert_eq!(source_of(world.db(), freed), None);
            rest(&mut world);
        }
    }
}

/// Series files that hold one end of a rule as it was before are found out by the source.
#[test]
fn rules_that_came_and_went_since_a_destination_was_parked_are_known_at_a_start() {
    for (flushes, parks) in [(false, false), (true, false), (true, true)] {
        let mut world = World::new();
        for key in ["raw", "minute"] {
            create(world.db(), key);
        }
        put(world.db(), "raw", 0);
        rest(&mut world);
        let again = |world: &mut World| {
            if flushes {
                world.flush();
            }
            if parks {
                world.db().park_all().unwrap();
            }
            world.kill();
        };
        for _ in 0..2 {
            tie(world.db(), "raw", "minute", MINUTE_MS).unwrap();
            again(&mut world);
            assert_eq!(source_of(world.db(), "minute").as_deref(), Some("raw"));
            again(&mut world);
            assert_eq!(rules(world.db()).len(), 1);
            rest(&mut world);
            assert_eq!(rules(world.db()).len(), 1);
            world.db().delete_rule(b"raw", b"minute").unwrap();
            again(&mut world);
            assert_eq!(source_of(world.db(), "minute"), None);
            assert_eq!(rules(world.db()), [""; 0]);
            rest(&mut world);
        }
    }
}

#[test]
fn a_series_that_becomes_an_end_while_its_row_is_written_does_not_leave() {
    let world = World::new();
    for key in ["raw", "minute"] {
        create(world.db(), key);
        put(world.db(), key, 0);
    }
    world.flush();
    let (_, ids) = world.write_parked(&["minute".to_owned()]);
    tie(world.db(), "raw", "minute", MINUTE_MS).unwrap();
    let core = &world.db().parts().core;
    for id in ids {
        let mut state = core.shards.lock_of(id);
        state.series_mut(id).unwrap().marks.note_woken();
        assert!(core.park_filed(&mut state, id).is_none());
    }
    world.flush();
    world.db().park_all().unwrap();
    assert_eq!(source_of(world.db(), "minute").as_deref(), Some("raw"));
}

#[test]
fn a_destination_that_is_awake_after_a_start_knows_its_parked_source() {
    let mut world = chain();
    let options = SeriesOptions {
        chunk_size_bytes: 128,
        ..SeriesOptions::default()
    };
    world.db().alter(b"minute", &options).unwrap();
    world.flush();
    world.kill();
    assert_eq!(world.parked(), 2);
    assert_eq!(source_of(world.db(), "minute").as_deref(), Some("raw"));
    assert_eq!(rules(world.db()).len(), 2);
    put(world.db(), "raw", 61_500);
    // A write to it goes behind what its rule has to write.
    let append = Append {
        key: b"minute",
        timestamp: MINUTE_MS,
        value: 5.0,
        on_duplicate: Some(latewood_model::DuplicatePolicy::Last),
        create: Create::Never,
    };
    let mut scratch = Scratch::new();
    world.db().append(&[append], &mut scratch).unwrap();
    assert_eq!(rows(world.db(), "minute")[1], (MINUTE_MS, 5.0));
}

#[test]
fn a_damaged_row_of_a_source_is_an_error_and_its_rules_stay() {
    let world = chain();
    let parked = world.db().parts().core.store.parked.get();
    let path: PathBuf = {
        let file = parked.all().next().unwrap();
        let number = file.meta().number;
        world.db().parts().core.store.series_file_path(number)
    };
    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
    let is_told = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(&file), "{error}");
    };
    // The destination is awake, its source is not.
    assert!(world.db().contains(b"minute"));
    let held = world.damage(&path);
    let db = world.db();
    is_told(db.source_of(b"minute").unwrap_err());
    is_told(db.rules_of(b"minute").unwrap_err());
    is_told(db.rule_states(b"minute").unwrap_err());
    is_told(db.last_sample_latest(b"minute").unwrap_err());
    is_told(db.scan_rules(0, 9, &mut |_| ()).unwrap_err());
    is_told(db.delete_rule(b"raw", b"minute").unwrap_err());
    is_told(db.remove(&[b"raw"]).unwrap_err());
    create(db, "other");
    is_told(tie(db, "other", "hour", 1).unwrap_err());
    assert_eq!(rows(db, "minute").len(), 20, "what it has is there");
    let error = db.last_sample(b"hour").unwrap_err();
    is_told(error);
    world.disk.set_bytes(&path, held).unwrap();
    assert_eq!(rules(db).len(), 2);
    put(db, "raw", 61_500);
    // The row of the next level cannot be written while that is damaged.
    db.settle().unwrap();
    assert_eq!(rows(db, "hour"), [(0, 601.0)]);
}

#[test]
fn a_sample_to_a_destination_whose_rules_cannot_be_read_is_refused_alone() {
    let world = chain();
    create(world.db(), "other");
    let number = {
        let files = world.db().parts().core.store.parked.get();
        files.all().next().unwrap().meta().number
    };
    let path = world.db().parts().core.store.series_file_path(number);
    assert!(world.db().contains(b"hour"));
    let held = world.damage(&path);
    let append = |key| Append {
        key,
        timestamp: 0,
        value: 1.0,
        on_duplicate: Some(latewood_model::DuplicatePolicy::Last),
        create: Create::Never,
    };
    let mut scratch = Scratch::new();
    let batch = [append(b"hour"), append(b"other")];
    world.db().append(&batch, &mut scratch).unwrap();
    assert_eq!(scratch.outcomes(), [Err(crate::Refusal::Damaged), Ok(0)]);
    let mut sink = Rows(Vec::new());
    let read = world
        .db()
        .range(b"hour", &RangeQuery::EVERYTHING, &mut sink);
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt);
    world.disk.set_bytes(&path, held).unwrap();
    world.db().append(&batch, &mut scratch).unwrap();
    assert_eq!(scratch.outcomes(), [Ok(0), Ok(0)]);
}

#[test]
fn a_damaged_row_of_a_destination_fails_its_buckets_until_it_is_read() {
    let world = chain();
    let file = world.db().parts().core.store.parked.get();
    let number = file.all().next().unwrap().meta().number;
    let path = world.db().parts().core.store.series_file_path(number);
    put(world.db(), "raw", 61_500);
    let held = world.damage(&path);
    let error = world.db().settle().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    world.disk.set_bytes(&path, held).unwrap();
    let read = world
        .db()
        .range(b"minute", &RangeQuery::EVERYTHING, &mut Rows(Vec::new()));
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt);
    // The next sample in the bucket has it computed.
    put(world.db(), "raw", 61_600);
    assert_eq!(rows(world.db(), "minute")[1], (MINUTE_MS, 62.0));
}

#[test]
fn a_parked_source_ends_when_all_that_it_writes_to_has() {
    use super::filed::DAY_MS;
    use latewood_model::MadeBy;
    let mut world = World::new();
    world.write("raw", 0..1, MadeBy::Sender, 0);
    world.write("minute", 0..1, MadeBy::Sender, 0);
    tie(world.db(), "raw:0000", "minute:0000", MINUTE_MS).unwrap();
    world.clock.advance_ms(DAY_MS);
    world.write("raw", 0..1, MadeBy::Sender, 0);
    rest(&mut world);
    // The row of the first day is past the floor before the sample that opened the next bucket.
    for (days, left) in [(9, 2), (1, 2), (2, 0)] {
        world.clock.advance_ms(days * DAY_MS);
        world.write("fleet", 0..3, MadeBy::Sender, 0);
        while world.db().merge_step().unwrap() {}
        for _ in 0..3 {
            world.db().parts().rules.end_all().unwrap();
        }
        let there = ["raw:0000", "minute:0000"].map(|key| world.db().contains(key.as_bytes()));
        let there = there.iter().filter(|is_there| **is_there).count();
        assert_eq!(there, left, "{days}");
        world.flush();
        world.db().park_all().unwrap();
    }
}
