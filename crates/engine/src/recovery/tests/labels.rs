//! Labels of series that lie in files of parked series: they leave memory, the index never leads to a file
//! without them, and who reads a span meets no more of them than may have samples there.

use super::filed::{World, key, keys, site_is};
use crate::io::Clock;
use crate::log::LogHole;
use crate::storage::files::Doubt;
use crate::{Append, Create, ErrorKind, Scratch};
use latewood_model::{Labels, MadeBy, SeriesOptions};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// Files of parked series with labels of their own, and what the index takes.
#[test]
fn the_labels_of_parked_series_leave_memory() {
    let world = World::new();
    let keys: Vec<String> = (0..20_000).map(|number| key("host", number)).collect();
    for some in keys.chunks(500) {
        let options = some.iter().map(|key| {
            let (serial, site) = (format!("serial of {key}"), key.as_bytes());
            SeriesOptions {
                labels: Labels::new([(&b"serial"[..], serial.as_bytes()), (b"site", site)])
                    .unwrap(),
                ..SeriesOptions::default()
            }
        });
        let options: Vec<_> = options.collect();
        let appends = some.iter().zip(&options).map(|(key, options)| Append {
            key: key.as_bytes(),
            timestamp: world.clock.now_ms(),
            value: 1.0,
            on_duplicate: None,
            create: Create::With(options),
        });
        let appends: Vec<_> = appends.collect();
        world.db().append(&appends, &mut Scratch::new()).unwrap();
    }
    world.flush();
    let index_bytes = || world.db().parts().core.index.current().memory_bytes();
    let before = index_bytes();
    world.db().park_all().unwrap();
    assert_eq!(world.parked(), 20_000);
    let after = index_bytes();
    println!("{after} bytes of {before}");
    assert!(after * 20 < before, "{after} of {before}");
    // One wakes, and takes little.
    assert!(
        world
            .db()
            .last_sample(keys[7].as_bytes())
            .unwrap()
            .is_some()
    );
    assert!(index_bytes() * 20 < before);
}

/// Whether a hold of the index without changes that wait has a row of each series that is filed.
fn has_rows_of_all(world: &World) -> bool {
    let filed = world.db().parts().core.index.inverted.read().filed.clone();
    let mut ignore = |_: &[u8]| ControlFlow::Continue(());
    filed.names(None, None, &mut ignore).is_ok()
}

#[test]
fn the_index_follows_before_files_lose_rows() {
    let world = World::new();
    world.write("north", 0..300, MadeBy::Sender, 0);
    world.flush();
    world.db().park_all().unwrap();
    assert!(has_rows_of_all(&world) && world.parked() == 300);
    for round in 0..3 {
        // Nobody asks the index between this and the file that lacks their rows.
        world.clock.advance_ms(1_000);
        world.write("north", 0..200, MadeBy::Sender, 0);
        world.flush();
        world.write("north", 0..90, MadeBy::Sender, 0);
        world.db().park_idle().unwrap();
        assert!(has_rows_of_all(&world), "round {round}");
        world.flush();
        world.db().park_all().unwrap();
        assert!(has_rows_of_all(&world), "round {round}");
        assert_eq!(world.selected("north").len(), 300);
    }
}

#[test]
fn parked_series_without_samples_in_a_span_are_left_out_unless_blocks_are_missing() {
    let world = World::new();
    let hour = 3_600_000;
    world.write("north", 0..3, MadeBy::Sender, 0);
    world.flush();
    world.park(&keys("north", 0..3));
    let from = world.clock.now_ms() + hour;
    world.clock.advance_ms(hour as u32);
    world.write("south", 0..2, MadeBy::Sender, 0);
    let db = world.db();
    let found = |span| db.select_in(&[], span, None).unwrap().len();
    assert_eq!((found((from, i64::MAX)), found((0, from - 1))), (2, 5));
    let sites = |span| db.label_values(b"site", &[], None, Some(span), usize::MAX, None);
    let sites = |span| sites(span).unwrap().iter().count();
    assert_eq!((sites((from, i64::MAX)), sites((0, from - 1))), (1, 2));
    let names = |span| db.label_names(&[], None, Some(span), usize::MAX, None);
    assert!(names((from, i64::MAX)).unwrap().iter().count() > 0);
    let core = &db.parts().core;
    let hole = LogHole {
        segment: PathBuf::new(),
        offset: 0,
        len_bytes: 0,
        first: 0,
        groups: 0,
        kept_as: None,
    };
    let doubt = Doubt::of_hole(&hole);
    *core.store.doubts.lock() = [doubt].into();
    assert_eq!((found((from, i64::MAX)), sites((from, i64::MAX))), (5, 2));
    *core.store.doubts.lock() = Arc::default();
    assert_eq!(found((from, i64::MAX)), 2);
    // Its blocks reach there now.
    world.flush();
    assert_eq!(found((from, i64::MAX)), 5);
}

#[test]
fn a_filed_series_without_a_row_is_told() {
    let world = World::new();
    world.write("north", 0..3, MadeBy::Sender, 0);
    world.flush();
    world.park(&keys("north", 0..3));
    world.db().parts().core.index.set_files(Arc::default());
    let missing = world.db().select(&[site_is("south")]).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Corrupt);
    let text = missing.to_string();
    assert!(
        text.contains("no file of parked series has series"),
        "{text}"
    );
}
