//! Damage in files of parked series: what needs it is told, with the name of the file, and the rest goes on.

use super::filed::{Nowhere, World, key, keys, site_is};
use crate::tools::check;
use crate::{Error, ErrorKind, RangeQuery};
use latewood_model::MadeBy;
use std::path::Path;

#[test]
fn a_damaged_page_fails_the_queries_of_its_series_alone() {
    let world = World::new();
    world.write("north", 0..20, MadeBy::Sender, 0);
    world.write("south", 0..20, MadeBy::Sender, 0);
    world.write("west", 0..20, MadeBy::Sender, 0);
    world.flush();
    let (north, south) = (world.selected("north"), world.selected("south"));
    world.park(&keys("south", 0..20));
    let path = world.park(&keys("north", 0..20));
    world.damage(&path);
    let db = world.db();
    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
    let is_told = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(&file), "{error}");
    };
    is_told(db.select(&[]).unwrap_err());
    is_told(db.select(&[site_is("north")]).unwrap_err());
    is_told(db.scan(0, 100, &mut |_| ()).unwrap_err());
    is_told(db.latest(north.clone(), None, None).unwrap_err());
    is_told(db.extent(&north[3]).unwrap_err());
    let may_see: &dyn Fn(&[u8]) -> bool = &|_| true;
    is_told(
        db.label_names(&[], Some(may_see), None, 1 << 20, None)
            .unwrap_err(),
    );
    let both = [&south[..], &north[..]].concat();
    let views = db.views(&both, &RangeQuery::EVERYTHING, false);
    assert_eq!(views.len(), 40);
    for (series, view) in both.iter().zip(views) {
        let run = view.view.run(&RangeQuery::EVERYTHING, &mut Nowhere);
        if series.key.starts_with(b"north") {
            is_told(run.unwrap_err());
        } else {
            run.unwrap();
        }
    }
    assert_eq!(db.select(&[site_is("south")]).unwrap().len(), 20);
    assert_eq!(db.select(&[site_is("west")]).unwrap().len(), 20);
    assert_eq!(db.latest(south, None, None).unwrap().len(), 20);
    assert_eq!(world.parked(), 40);
}

#[test]
fn a_start_fails_where_a_file_does_not_say_which_series_it_has() {
    let mut world = World::new();
    world.write("north", 0..20, MadeBy::Sender, 0);
    world.flush();
    let path = world.park(&keys("north", 0..20));
    world.disk = world.disk.kill();
    let mut bytes = world.disk.bytes(&path).unwrap();
    // Before the footer and the length of the directory.
    let at = bytes.len() - 40;
    bytes[at] ^= 1;
    world.disk.set_bytes(&path, bytes).unwrap();
    let error = world.opened().map(drop).unwrap_err();
    let file = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(file), "{error}");
}

/// A start reads no rows of parked series.
#[test]
fn a_start_over_a_damaged_page_succeeds() {
    let mut world = World::new();
    for site in ["north", "south"] {
        world.write(site, 0..20, MadeBy::Sender, 0);
    }
    world.flush();
    world.park(&keys("south", 0..20));
    let path = world.park(&keys("north", 0..20));
    world.disk = world.disk.kill();
    world.damage(&path);
    let env = world.disk.env(1);
    let checked = check(&env, Path::new("/db"), &mut |_| ()).unwrap();
    assert_eq!((checked.damage, checked.is_refused), (1, false));
    let db = world.opened().unwrap();
    assert_eq!((db.len(), db.parked_len()), (40, 40));
    assert!(db.contains(key("south", 3).as_bytes()));
    let error = db.resolve(key("north", 3).as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(db.select(&[site_is("south")]).unwrap().len(), 20);
}
