//! What goes wrong in a run, and what is mended.

use super::NODES;
use super::Run;
use latewood_engine::io::sim::SimDisk;
use std::sync::atomic::Ordering;

impl Run {
    /// Something may go wrong.
    pub(super) fn harm(&mut self) {
        let now_ns = self.nodes.now_ns();
        let i = self.below(NODES as u64) as usize;
        let long_ns = now_ns + (1 + self.below(120)) * 100_000_000;
        let others_run = (0..NODES)
            .filter(|other| *other != i && self.is_well(*other))
            .count()
            > 0;
        match self.below(400) {
            0..6 if others_run => self.kill(i, long_ns),
            6..9 if self.is_well(i) => {
                let life = self.nodes.lives[i].as_mut().unwrap();
                life.is_suspended = true;
                life.net.suspend(true);
                self.until[i] = long_ns;
                self.did.suspensions += 1;
            }
            9..12 if self.is_well(i) => {
                self.nodes.life(i).net.cut(true);
                self.until[i] = long_ns;
                self.did.cuts += 1;
            }
            12..14 if !self.nodes.stall.is_on() => {
                self.nodes.stall.begin();
                self.stalled_until = long_ns;
                self.did.stalls += 1;
            }
            14..17 => self.farewell(long_ns),
            17 if self.is_well(i) => {
                self.nodes.life(i).standby.force();
                self.forced_ns = Some(now_ns);
                self.did.forced += 1;
            }
            18..22 => {
                let refuses = [0, 0, 100, 300, 1_000][self.below(5) as usize];
                self.nodes.store_refuses.store(refuses, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn kill(&mut self, i: usize, until_ns: u64) {
        if self.nodes.lives[i].is_none() {
            return;
        }
        self.nodes.kill(i);
        match self.below(4) {
            0 => self.nodes.disks[i] = SimDisk::new(),
            1 => self.nodes.disks[i] = self.nodes.disks[i].crash(self.below(1 << 32)),
            _ => {}
        }
        self.until[i] = until_ns;
        self.did.kills += 1;
    }

    fn farewell(&mut self, until_ns: u64) {
        let Some((i, _)) = self.owner.filter(|(i, _)| self.is_well(*i)) else {
            return;
        };
        let life = self.nodes.life(i);
        let Some(tablet) = life.owned() else { return };
        if tablet.log().queued_bytes() > 0 {
            return;
        }
        let position = life.db().durable_position().0;
        life.farewell();
        self.ledger.acknowledge(position, self.nodes.now_ns());
        self.nodes.kill(i);
        self.until[i] = until_ns;
        self.did.farewells += 1;
    }

    /// What is over by now.
    pub(super) fn mend(&mut self) {
        let now_ns = self.nodes.now_ns();
        if self.nodes.stall.is_on() && now_ns >= self.stalled_until {
            self.end_stall();
        }
        for i in 0..NODES {
            if now_ns < self.until[i] {
                continue;
            }
            match &mut self.nodes.lives[i] {
                None => {
                    // A start waits for the store, which does not change while it does.
                    if self.nodes.store_refuses.load(Ordering::Relaxed) < 1_000 {
                        self.nodes.start(i);
                    }
                }
                Some(life) => {
                    life.net.cut(false);
                    if std::mem::take(&mut life.is_suspended) {
                        life.net.suspend(false);
                    }
                }
            }
        }
        // Since when the owner is well.
        if let Some((i, well_ns)) = self.owner
            && !self.is_well(i)
        {
            self.owner = Some((i, now_ns.max(well_ns)));
        }
    }

    fn end_stall(&mut self) {
        let (kafka, partition) = (&self.nodes.world.kafka, self.nodes.partition());
        let random = &self.random;
        self.nodes.stall.end(kafka, &partition, |left| {
            (random.below(3) > 0).then(|| random.below(left as u64) as usize)
        });
    }
}
