//! Series with an expiry time that are parked: they expire on time, before and after a start, and no row
//! is read to see that.

use super::filed::{World, key, keys};
use crate::io::Clock;
use crate::{Db, Error, ExpireIf};
use latewood_model::MadeBy;
use std::collections::BTreeSet;

const HOUR_MS: u32 = 3_600_000;

fn expire(world: &World, keys: &[String], at_ms: i64) {
    for key in keys {
        let db = world.db();
        db.expire(key.as_bytes(), at_ms, ExpireIf::default())
            .unwrap();
    }
}

/// Writes series and parks them in a file, `north` with an expiry time an hour from now each, all of
/// them a minute apart.
fn parked() -> (World, i64) {
    let world = World::new();
    world.write("north", 0..200, MadeBy::Sender, 0);
    world.write("south", 0..200, MadeBy::Sender, 0);
    let first_ms = world.clock.now_ms() + i64::from(HOUR_MS);
    for (key, minute) in keys("north", 0..200).iter().zip(0..) {
        expire(
            &world,
            std::slice::from_ref(key),
            first_ms + minute * 60_000,
        );
    }
    world.flush();
    assert_eq!(world.db().park_all().unwrap(), 400);
    (world, first_ms)
}

fn expires_at(db: &Db, number: u32) -> Option<i64> {
    db.expires_at(key("north", number).as_bytes()).unwrap()
}

fn expiring(world: &World) -> u64 {
    world.db().parts().core.expiry_stats().0
}

#[test]
fn series_that_expire_park_and_keep_their_times() {
    let (mut world, first_ms) = parked();
    for _ in 0..3 {
        let (count, left_ms) = world.db().parts().core.expiry_stats();
        assert_eq!((world.parked(), count), (400, 200));
        assert_eq!(left_ms, u64::from(HOUR_MS) + 199 * 30_000);
        world.kill();
    }
    for number in [0, 17, 199] {
        let at_ms = first_ms + i64::from(number) * 60_000;
        assert_eq!(expires_at(world.db(), number), Some(at_ms));
    }
    assert_eq!(world.db().expires_at(b"south:0000").unwrap(), None);
    assert_eq!((world.parked(), expiring(&world)), (396, 200), "it woke");
    // They were not changed, so their rows are good.
    assert_eq!(world.db().park_all().unwrap(), 4);
}

#[test]
fn what_expires_while_it_is_parked_goes_on_time_and_is_told() {
    for restarts in [false, true] {
        let (mut world, _) = parked();
        world.clock.advance_ms(HOUR_MS + 99 * 60_000);
        if restarts {
            world.kill();
        }
        world.db().accept_clock().unwrap();
        // Nobody finds them before they are removed.
        assert_eq!(world.selected("north").len(), 100);
        assert!(!world.db().contains(key("north", 99).as_bytes()));
        world.db().maintain().unwrap();
        let told: BTreeSet<String> = world.expired.lock().drain(..).collect();
        let expected: BTreeSet<String> = keys("north", 0..100).into_iter().collect();
        assert_eq!(told, expected);
        assert_eq!(world.db().stats().series_expired, 100);
        assert_eq!((world.parked(), expiring(&world)), (300, 100));
        for flushes in [false, true] {
            if flushes {
                world.flush();
                world.db().park_all().unwrap();
            }
            world.kill();
            assert_eq!((world.db().len(), expiring(&world)), (300, 100));
            assert_eq!(world.selected("north").len(), 100);
        }
    }
}

#[test]
fn other_times_of_parked_series_are_those_after_a_start() {
    let (mut world, first_ms) = parked();
    let db = world.db();
    let key = |number| key("north", number);
    assert!(db.persist(key(0).as_bytes()).unwrap().0);
    expire(&world, &[key(1)], first_ms + 7);
    expire(&world, &keys("south", 0..1), first_ms + 8);
    db.rename(key(2).as_bytes(), b"renamed", false).unwrap();
    db.copy(key(3).as_bytes(), b"copied", false).unwrap();
    db.remove(&[key(4).as_bytes()]).unwrap();
    let check = |world: &World| {
        let at = |key: &[u8]| world.db().expires_at(key).unwrap();
        assert_eq!(at(key(0).as_bytes()), None);
        assert_eq!(at(key(1).as_bytes()), Some(first_ms + 7));
        assert_eq!(at(b"south:0000"), Some(first_ms + 8));
        assert_eq!(at(b"renamed"), Some(first_ms + 120_000));
        assert_eq!(at(b"copied"), Some(first_ms + 180_000));
        assert_eq!((world.db().len(), expiring(world)), (400, 200));
    };
    check(&world);
    world.kill();
    check(&world);
    world.flush();
    world.db().park_all().unwrap();
    check(&world);
    world.kill();
    assert_eq!(world.parked(), 400);
    check(&world);
    world.clock.advance_ms(2 * HOUR_MS + 199 * 60_000);
    world.db().accept_clock().unwrap();
    world.db().maintain().unwrap();
    assert_eq!((world.db().len(), expiring(&world)), (200, 0));
    assert!(world.db().contains(key(0).as_bytes()));
}

#[test]
fn everything_that_is_removed_leaves_no_time_behind() {
    let (mut world, _) = parked();
    world.db().flush_all().unwrap();
    assert_eq!(expiring(&world), 0);
    world.kill();
    assert_eq!((world.db().len(), expiring(&world)), (0, 0));
}

#[test]
fn what_cannot_be_read_stays_and_the_others_go() {
    let world = World::new();
    world.write("north", 0..100, MadeBy::Sender, 0);
    world.write("south", 0..100, MadeBy::Sender, 0);
    let at_ms = world.clock.now_ms() + i64::from(HOUR_MS);
    expire(&world, &keys("north", 0..100), at_ms);
    expire(&world, &keys("south", 0..100), at_ms + 1);
    world.flush();
    world.park(&keys("south", 0..100));
    let path = world.park(&keys("north", 0..100));
    let held = world.damage(&path);
    world.clock.advance_ms(2 * HOUR_MS);
    world.db().accept_clock().unwrap();
    let sweep = || world.db().parts().rules.sweep_expired();
    for _ in 0..2 {
        sweep().unwrap();
        assert_eq!((world.parked(), expiring(&world)), (100, 100));
        assert_eq!(world.selected("north").len(), 0, "they are invisible");
    }
    let said = world.said.lock().join("\n");
    assert!(said.contains(path.to_str().unwrap()), "{said}");
    let unread = |done: Result<bool, Error>| assert!(done.unwrap_err().is_damage());
    unread(
        world
            .db()
            .persist(key("north", 3).as_bytes())
            .map(|done| done.0),
    );
    world.disk.set_bytes(&path, held).unwrap();
    sweep().unwrap();
    assert_eq!((world.db().len(), expiring(&world)), (0, 0));
}

/// A thread that others wait for does not remove what it would have to read first.
#[test]
fn who_leaves_rows_to_others_reads_none_to_remove_a_series() {
    let (world, _) = parked();
    world.clock.advance_ms(HOUR_MS * 24);
    world.db().accept_clock().unwrap();
    {
        let _leaves = crate::io::waiting::leave_rows();
        world.db().parts().rules.sweep_expired().unwrap();
        assert_eq!((world.parked(), expiring(&world)), (400, 200));
    }
    world.db().parts().rules.sweep_expired().unwrap();
    assert_eq!((world.parked(), expiring(&world)), (200, 0));
    assert_eq!(world.db().rows_waited_for(), 0);
}
