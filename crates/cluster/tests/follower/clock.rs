//! Nodes without threads over a log without brokers: time goes on in steps, Kafka stalls when it is
//! told to, and everybody reads at once.

use crate::ledger::turns::Chance;
use latewood_cluster::envelope::{Body, Claimant, Envelope, Hello, State};
use latewood_cluster::follower::core::{Act, Change, Claim, Core, Ready};
use latewood_cluster::node::{Member, NodeId};
use latewood_cluster::presence::Presence;
use latewood_cluster::scan::{Scan, Verdict};
use std::time::Duration;

/// The oldest answer of a follower.
pub(super) const STALENESS_MAX: Duration = Duration::from_secs(5);
pub(super) const STEP_MS: u64 = 50;
const TICK_MS: u64 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Follows,
    Owns,
    /// It keeps its memory and does nothing: killed, or stopped.
    Still,
}

pub(super) struct Node {
    pub(super) core: Core,
    pub(super) role: Role,
    pub(super) ready: Ready,
    scan: Scan,
    next: usize,
    /// When the newest record as an owner was sent, and whether it is proven.
    ticked: Option<(u64, bool)>,
    id: u8,
}

/// On its way to the log.
struct Sent {
    due_ms: u64,
    by: usize,
    act: Option<Act>,
    value: Vec<u8>,
}

pub(super) struct World {
    pub(super) now_ms: u64,
    /// Kafka appends nothing, and keeps what is on its way.
    pub(super) stalls: bool,
    /// How long a request is on its way.
    pub(super) delay_ms: u64,
    /// Adds to it, for each request, up to a little less than a tick.
    pub(super) chance: Option<Chance>,
    /// Requests of this node are lost, and it is told that they may be.
    pub(super) loses: Option<usize>,
    pub(super) log: Vec<Vec<u8>>,
    pub(super) nodes: Vec<Node>,
    sent: Vec<Sent>,
    /// Who claimed and when, as far as it counts.
    pub(super) owners: Vec<(usize, u64)>,
    pub(super) claims_sent: usize,
}

pub(super) const READY: Ready = Ready {
    is_loaded: true,
    stands: true,
    lacks_files: false,
};

impl World {
    /// Node 0 owns a log that the others follow; all is settled.
    pub(super) fn new(nodes: usize) -> Self {
        let mut world = Self {
            now_ms: 1_000_000,
            stalls: false,
            delay_ms: 0,
            chance: None,
            loses: None,
            log: Vec::new(),
            nodes: Vec::new(),
            sent: Vec::new(),
            owners: Vec::new(),
            claims_sent: 0,
        };
        world.nodes = (0..nodes).map(|id| world.node(id as u8)).collect();
        world.nodes[0].core.force();
        world.run(10_000);
        assert_eq!(world.owner(), Some(0));
        world.owners.clear();
        world.claims_sent = 0;
        world
    }

    fn node(&self, id: u8) -> Node {
        let presence = Presence::new(NodeId([id; 20]), [id; 12]);
        let at = (State::START, false);
        Node {
            core: Core::new(presence, STALENESS_MAX, at, self.now_ns()),
            role: Role::Follows,
            ready: READY,
            scan: Scan::new(State::START),
            next: 0,
            ticked: None,
            id,
        }
    }

    fn now_ns(&self) -> u64 {
        self.now_ms * 1_000_000
    }

    /// Who owns the log and knows it.
    pub(super) fn owner(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.role == Role::Owns)
    }

    pub(super) fn run(&mut self, time_ms: u64) {
        let until = self.now_ms + time_ms;
        while self.now_ms < until {
            self.step();
        }
    }

    /// Until somebody else owns the log; how long that takes.
    pub(super) fn until_claimed(&mut self, limit_ms: u64) -> (usize, u64) {
        let (begun, before) = (self.now_ms, self.owners.len());
        while self.owners.len() == before {
            assert!(self.now_ms < begun + limit_ms, "nobody claims");
            self.step();
        }
        (self.owners[before].0, self.now_ms - begun)
    }

    /// Everybody sends what is to be sent, Kafka appends it, everybody reads.
    pub(super) fn step(&mut self) {
        self.now_ms += STEP_MS;
        if self.stalls {
            // Each takes its time once it goes on.
            for i in 0..self.sent.len() {
                self.sent[i].due_ms = self.due_ms();
            }
        } else {
            self.land();
        }
        for i in 0..self.nodes.len() {
            self.read(i);
        }
        for i in 0..self.nodes.len() {
            match self.nodes[i].role {
                Role::Follows => self.follow(i),
                Role::Owns => self.own(i),
                Role::Still => {}
            }
        }
    }

    pub(super) fn land(&mut self) {
        let now_ms = self.now_ms;
        let due = |sent: &mut Sent| sent.due_ms < now_ms;
        let landed: Vec<Sent> = self.sent.extract_if(.., due).collect();
        for sent in landed {
            if self.loses == Some(sent.by) {
                if let Some(act) = sent.act {
                    self.nodes[sent.by].core.failed(act);
                }
                continue;
            }
            self.log.push(sent.value);
        }
    }

    fn read(&mut self, i: usize) {
        let (now_ms, now_ns) = (self.now_ms, self.now_ns());
        let node = &mut self.nodes[i];
        if node.role == Role::Still {
            return;
        }
        while let Some(value) = self.log.get(node.next) {
            let offset = node.next as u64;
            node.next += 1;
            let verdict = node.scan.next(offset, value);
            let change = node
                .core
                .read((offset, &verdict), node.scan.state(), now_ns);
            match verdict {
                _ if change == Change::Owner => {
                    self.owners.push((i, now_ms));
                    node.role = Role::Owns;
                    node.ticked = None;
                }
                Verdict::Epoch(_) if node.role == Role::Owns => node.role = Role::Follows,
                Verdict::Counts { .. } if node.role == Role::Owns => {
                    if let Some((_, is_proven)) = &mut node.ticked {
                        *is_proven = true;
                    }
                }
                _ => {}
            }
        }
    }

    fn follow(&mut self, i: usize) {
        let now_ns = self.now_ns();
        let Node { core, ready, .. } = &mut self.nodes[i];
        let act = core.tick(now_ns, *ready);
        let is_caught_up = core.myself(0, *ready, now_ns).is_caught_up;
        match act {
            Act::Nothing => {}
            Act::Hello(nonce) => {
                let value = self.hello(i, nonce, is_caught_up, None);
                self.send(i, Some(act), value);
            }
            Act::Claim(claim) => {
                self.claims_sent += 1;
                self.send(i, Some(act), claim_bytes(claim));
            }
        }
    }

    fn own(&mut self, i: usize) {
        let node = &self.nodes[i];
        let is_due = match node.ticked {
            None => true,
            Some((at_ms, is_proven)) => is_proven && self.now_ms - at_ms >= TICK_MS,
        };
        if is_due {
            let at = node.scan.state();
            let owns = at.epoch;
            let hello = self.hello(i, [self.nodes[i].id; 16], true, owns);
            self.send(i, None, hello);
            self.append(i, at, Body::Tick);
            self.nodes[i].ticked = Some((self.now_ms, false));
        }
    }

    /// The owner gives the log up.
    pub(super) fn farewell(&mut self) {
        let i = self.owner().unwrap();
        let at = self.nodes[i].scan.state();
        self.sent.retain(|sent| sent.by != i);
        self.append(i, at, Body::Farewell);
        self.nodes[i].role = Role::Still;
    }

    fn append(&mut self, i: usize, at: State, body: Body<'_>) {
        let value = Envelope::Record { at, body }.encode().unwrap();
        self.send(i, None, value);
    }

    fn hello(&self, i: usize, nonce: [u8; 16], is_caught_up: bool, owns: Option<u64>) -> Vec<u8> {
        let by = Member {
            is_caught_up,
            ..member(self.nodes[i].id)
        };
        let leaves = false;
        let hello = Hello {
            nonce,
            by,
            owns,
            leaves,
        };
        Envelope::Hello(hello).encode().unwrap()
    }

    fn due_ms(&mut self) -> u64 {
        let more_ms = self.chance.as_mut().map(|chance| chance.below(9) * STEP_MS);
        self.now_ms + self.delay_ms + more_ms.unwrap_or(0)
    }

    fn send(&mut self, by: usize, act: Option<Act>, value: Vec<u8>) {
        let due_ms = self.due_ms();
        self.sent.push(Sent {
            due_ms,
            by,
            act,
            value,
        });
    }
}

/// A node that no client can reach.
pub(super) fn member(id: u8) -> Member {
    Member::new(NodeId([id; 20]))
}

pub(super) fn claim_bytes(claim: Claim) -> Vec<u8> {
    let Claim { nonce, after, n } = claim;
    let claimant = Claimant {
        nonce,
        node: 0,
        address: String::new(),
    };
    let epoch = Envelope::Epoch { after, n, claimant };
    epoch.encode().unwrap()
}
