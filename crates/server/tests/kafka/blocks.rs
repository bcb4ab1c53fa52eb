//! Blocks of a checkpoint that are not on the disk of a node.

use crate::restore::tool;
use crate::{World, files, wipe};
use std::path::PathBuf;

/// A cluster whose series `old` is in blocks, which are on no disk, and the folder of them in the
/// object store.
fn history(name: &str) -> (World, PathBuf) {
    let world = World::new(name);
    assert!(world.init().status.success());
    let node = world.serve("a");
    for at in 1..=100 {
        assert_eq!(node.ask(&format!("TS.ADD old {at} {at}")), format!(":{at}"));
    }
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
    wipe(&world.dir("a"));
    let objects = files(&world.folder.path().join("objects"));
    let mut folders = objects.iter().filter_map(|path| path.parent());
    let blocks = folders.find(|path| path.ends_with("blocks")).unwrap();
    let blocks = blocks.to_owned();
    (world, blocks)
}

#[test]
fn a_lost_block_is_named_and_keeps_its_series_from_nothing_else() {
    let (world, blocks) = history("lost");
    wipe(&blocks);
    let node = world.serve("b");
    let said = (0..10)
        .map(|_| node.ask("TS.RANGE old 1 5"))
        .find(|said| !said.starts_with("-TRYAGAIN"))
        .unwrap();
    for named in [
        "-ERR a block is lost",
        "/blocks/block-",
        "is missing",
        "'old'",
    ] {
        assert!(said.contains(named), "{said}");
    }
    let said = node.ask("TS.ADD old 50 1 ON_DUPLICATE BLOCK");
    assert!(said.contains("cannot be read"), "{said}");
    assert_eq!(node.ask("TS.GET old"), "*2:100+100");
    assert_eq!(node.ask("TS.ADD old 101 7"), ":101");
    assert_eq!(node.ask("TS.RANGE old 101 +"), "*1*2:101+7");
    assert_eq!(node.ask("DEL old"), ":1");
    assert_eq!(node.ask("TS.ADD old 5 7"), ":5");
    let (_, said) = node.stop();
    let told = said.matches("cannot fetch a block").count();
    assert!((1..=3).contains(&told), "{said}");
}

#[test]
fn blocks_that_are_not_here_are_named_until_they_come() {
    let (world, blocks) = history("away");
    let hidden = world.dir("hidden");
    std::fs::rename(&blocks, &hidden).unwrap();
    // A store that does not work is not one that lacks objects.
    std::fs::write(&blocks, "").unwrap();
    let node = world.serve("b");
    let waits = |read: &str| {
        let refused = node.ask(read);
        assert!(refused.starts_with("-TRYAGAIN"), "{read}: {refused}");
        for named in ["file://", "/blocks/block-", "for key 'old'"] {
            assert!(refused.contains(named), "{read}: {refused}");
        }
    };
    std::thread::scope(|scope| {
        for read in ["TS.RANGE old 1 5", "TS.RANGE old - + COUNT 1", "DUMP old"] {
            scope.spawn(move || waits(read));
        }
    });
    for write in ["TS.ADD old 50 1 ON_DUPLICATE BLOCK", "TS.DEL old 1 5"] {
        assert!(node.ask(write).starts_with("-TRYAGAIN"), "{write}");
    }
    // The newest sample is known, and so is what is written now.
    assert_eq!(node.ask("TS.GET old"), "*2:100+100");
    assert_eq!(node.ask("TS.ADD old 101 7"), ":101");
    assert_eq!(node.ask("TS.RANGE old 101 +"), "*1*2:101+7");
    std::fs::remove_file(&blocks).unwrap();
    std::fs::rename(&hidden, &blocks).unwrap();
    assert_eq!(node.ask("TS.RANGE old 99 100"), "*2*2:99+99*2:100+100");
    let refused = node.ask("TS.ADD old 50 1 ON_DUPLICATE BLOCK");
    assert!(
        refused.starts_with("-ERR TSDB: Error at upsert"),
        "{refused}"
    );
    assert_eq!(node.ask("TS.DEL old 1 5"), ":5");
    let (_, said) = node.stop();
    assert!(said.contains("cannot fetch a block"), "{said}");
    // A cache may lack blocks.
    let cache = world.dir("b");
    wipe(&cache.join("blocks"));
    let checked = tool(&["check", &cache.display().to_string()]);
    for wanted in ["blocks are not in the cache", "no damage"] {
        assert!(checked.contains(wanted), "{checked}");
    }
}
