//! Series that end at the owner of a remote log: followers, their checkpoints, and who takes over.

use super::ended::{end, held, key, keys, options, put};
use crate::io::Env;
use crate::io::sim::SimDisk;
use crate::{Db, Defaults, LogStats, Position, RemoteLog, RemotePin, Result, names};
use std::path::Path;
use std::sync::{Arc, Mutex};

const OWNER: &str = "/owner";

/// The groups of a log, in memory.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Kept {
    fn last(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn groups(&self, from: u64, to: u64) -> Vec<u8> {
        let all = self.0.lock().unwrap();
        all[from as usize - 1..to as usize].concat()
    }

    /// The first groups of it.
    fn up_to(&self, last: u64) -> Arc<Self> {
        let all = self.0.lock().unwrap();
        Arc::new(Self(Mutex::new(all[..last as usize].to_vec())))
    }
}

/// A checkpoint has no groups.
struct NoCopy;

impl RemotePin for NoCopy {
    fn read(&self, _: Position, _: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        panic!("a checkpoint reads the log")
    }
}

impl RemoteLog for Kept {
    fn group_bytes_max(&self) -> usize {
        64 * 1024
    }

    fn first(&self) -> Result<Option<Position>> {
        Ok((self.last() > 0).then_some(Position(1)))
    }

    fn replay(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Position> {
        let all = self.0.lock().unwrap();
        all.iter().try_for_each(|group| each(group))?;
        Ok(Position(all.len() as u64 + 1))
    }

    fn append(&self, position: Position, group: &[u8]) -> Result<()> {
        let mut all = self.0.lock().unwrap();
        all.push(group.to_vec());
        assert_eq!(position.0, all.len() as u64);
        Ok(())
    }

    fn durable(&self) -> Position {
        Position(self.last())
    }

    fn sync_to(&self, _: Position) -> Result<()> {
        Ok(())
    }

    fn why_full(&self) -> Option<String> {
        None
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }

    fn pin(&self) -> Box<dyn RemotePin + '_> {
        Box::new(NoCopy)
    }

    fn stats(&self) -> LogStats {
        LogStats::default()
    }
}

fn own(env: &Env, log: &Arc<Kept>) -> Db {
    let defaults = Defaults::default();
    Db::open_remote(env, Path::new(OWNER), options(4), defaults, log.clone()).unwrap()
}

fn follower(env: &Env, dir: &str, shards: usize) -> Db {
    Db::open_follower(env, Path::new(dir), options(shards), Defaults::default()).unwrap()
}

/// Gives it the log up to a group.
fn feed(db: &Db, log: &Kept, last: u64) {
    let next = db.applied().0 + 1;
    if next <= last {
        db.follow(&log.groups(next, last)).unwrap();
    }
}

/// A checkpoint of the owner, with its blocks where a follower has its own.
fn publish(env: &Env, owner: &Db, to: &str, node: &str) {
    owner.checkpoint(Path::new(to)).unwrap();
    let blocks = |dir: &str| Path::new(dir).join(names::BLOCKS);
    let there = env.disk.list(&blocks(node)).unwrap();
    for name in env.disk.list(&blocks(to)).unwrap() {
        if !there.contains(&name) {
            let (from, into) = (blocks(to).join(&name), blocks(node).join(&name));
            env.disk.link(&from, &into).unwrap();
        }
    }
}

#[test]
fn followers_have_what_their_owner_has_and_take_over_amid_a_sweep() {
    let env = SimDisk::new().env(1);
    let log = Arc::new(Kept::default());
    let owner = own(&env, &log);
    let nodes = [follower(&env, "/one", 4), follower(&env, "/two", 16)];
    let all_equal = |owner: &Db| {
        let expected = held(owner);
        for db in &nodes {
            feed(db, &log, log.last());
            assert_eq!(held(db), expected);
        }
    };
    let odd = |from, to| keys((from..to).filter(|number| number % 2 == 1));
    put(&owner, &keys(0..400), 1..=3).unwrap();
    owner.flush().unwrap();
    publish(&env, &owner, "/before", "/one");
    assert_eq!(end(&owner, &odd(0, 200)).unwrap(), 100);
    all_equal(&owner);
    // Files of before, and then of after.
    assert!(nodes[0].adopt(Path::new("/before")).unwrap());
    all_equal(&owner);
    put(&owner, &odd(0, 20), 10..=10).unwrap();
    owner.flush().unwrap();
    owner.merge().unwrap();
    publish(&env, &owner, "/after", "/one");
    all_equal(&owner);
    assert!(nodes[0].adopt(Path::new("/after")).unwrap());
    all_equal(&owner);
    // The owner is gone amid the next ones.
    let before = log.last();
    assert_eq!(end(&owner, &odd(200, 400)).unwrap(), 100);
    drop(owner);
    let amid = before + (log.last() - before) / 2;
    assert!(amid > before);
    let log = log.up_to(amid);
    for db in &nodes {
        feed(db, &log, amid);
    }
    let expected = held(&nodes[1]);
    let left = odd(200, 400)
        .iter()
        .filter(|key| nodes[1].contains(key))
        .count();
    assert!(0 < left && left < 100, "{left}");
    nodes[0].promote(log.clone()).unwrap();
    assert_eq!(held(&nodes[0]), expected);
    assert_eq!(end(&nodes[0], &odd(200, 400)).unwrap(), left);
    put(&nodes[0], &[key(201)], 20..=20).unwrap();
    nodes[0].flush().unwrap();
    nodes[0].merge().unwrap();
    let expected = held(&nodes[0]);
    assert_eq!(expected.len(), 200 + 10 + 1);
    feed(&nodes[1], &log, log.last());
    assert_eq!(held(&nodes[1]), expected);
    // A start of the whole log, and of its files.
    drop(nodes);
    assert_eq!(held(&own(&SimDisk::new().env(2), &log)), expected);
}
