//! The end of a run: nothing goes wrong any more, and all that is there is compared.

use super::{Did, NODES, Run};
use crate::standby::life::Life;
use crate::standby::plain::{Plain, SUMS};
use crate::tablet::away::{query, rows};
use crate::tablet::world::once_here;
use latewood_cluster::kafka::memory::Faults;
use latewood_engine::io::sim::SimDisk;
use std::sync::atomic::Ordering;

/// Steps within which a quiet cluster has an owner and equal nodes.
const QUIET_STEPS: u64 = 400;

impl Run {
    /// Nothing goes wrong any more, and nobody writes.
    pub(super) fn quiet(&mut self) {
        self.nodes.set_faults(Faults::default());
        self.nodes.world.kafka.land();
        self.nodes.store_refuses.store(0, Ordering::Relaxed);
        self.stalled_until = 0;
        for _ in 0..QUIET_STEPS {
            self.until = self.until.map(|until| until.min(self.nodes.now_ns()));
            self.mend();
            self.step();
            self.answer();
            if self.is_even() {
                return;
            }
        }
        let positions = self.nodes.lives.iter().map(|life| {
            let life = life.as_ref()?;
            Some((
                life.standby.node().role(),
                life.db().applied(),
                life.db().position(),
            ))
        });
        panic!(
            "the nodes are not even: {:?}, owner {:?}",
            positions.collect::<Vec<_>>(),
            self.owner
        );
    }

    fn is_even(&self) -> bool {
        let Some(i) = self
            .nodes
            .owner()
            .filter(|i| self.owner.is_some_and(|(owner, _)| owner == *i))
        else {
            return false;
        };
        let db = self.nodes.life(i).db();
        let end = db.position();
        // One that was deposed may not know it yet: its log has a thread.
        let follows = |life: &Life| {
            let takes_reads = life.standby.node().takes_reads().is_ok();
            life.standby.tablet().is_none() && takes_reads && life.db().applied() == end
        };
        let is_even = |(other, life): (usize, &Option<Life>)| {
            let life = life.as_ref();
            life.is_some_and(|life| other == i || follows(life))
        };
        db.durable_position() == end && self.nodes.lives.iter().enumerate().all(is_even)
    }

    /// All nodes hold what must be, rows of the rule too, and so does one with an empty disk.
    pub(super) fn compare(mut self) -> Did {
        let owner = self.nodes.owner().unwrap();
        // All buckets are computed, and known to the others.
        while self.nodes.life(owner).db().settle().is_err() {}
        self.quiet();
        let sums = self.ledger.newest().sums();
        for (i, life) in self.nodes.lives.iter().flatten().enumerate() {
            let held = loop {
                if let Some(held) = Plain::of(life.db()) {
                    break held;
                }
            };
            let who = format!("node {i} at the end, with node {owner} as owner");
            self.ledger.compare(u64::MAX, &held, &who);
            let computed = once_here(|| rows(life.db(), SUMS, &query(i64::MIN, i64::MAX)));
            assert_eq!(computed, sums, "rows of the rule");
        }
        for i in 0..NODES {
            self.nodes.kill(i);
        }
        let (tablet, db) = self.nodes.world.open(1_000_000, &SimDisk::new()).unwrap();
        let held = Plain::of(&db).unwrap();
        self.ledger.compare(u64::MAX, &held, "a new node");
        tablet.log().give_up();
        (self.did.answers, self.did.follower_answers) = self.ledger.answers;
        self.did
    }
}
