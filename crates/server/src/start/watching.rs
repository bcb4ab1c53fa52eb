//! What a node of a cluster tells its operator of itself and the others, in the log of the server:
//! whom it follows, when its reads are fresh, who is set up otherwise, who has its address.
//!
//! Each is told once, when it changes. A process that is started at the address of another one that
//! lives refuses to start: clients would reach now the one, now the other.
//!
//! Tested by its own tests.

use super::tablet::is_stopping;
use crate::state::{Shared, Stop, differing, options_of};
use latewood_cluster::node::{Member, Node, NodeId, Role, Standing, Twin};
use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked.
const TURN: Duration = Duration::from_millis(100);
/// A node starts for this time: it ends if its address is taken.
const STARTS_FOR: Duration = Duration::from_secs(60);

/// Tells until the server stops.
pub(super) fn run(shared: &Shared, node: &Node) {
    let (began, mut told) = (Instant::now(), Told::default());
    while !is_stopping(shared) {
        let standing = node.standing();
        let is_starting = began.elapsed() < STARTS_FOR;
        for news in told.look(&standing, node.takes_reads().is_ok(), is_starting) {
            news.tell();
            if let News::AddressTaken(Address { own, .. }) = &news {
                shared.lifetime.stop(Stop::NotOpened(taken(own)));
            }
        }
        thread::sleep(TURN);
    }
}

/// What is known to the operator.
#[derive(Default)]
struct Told {
    owner: Option<NodeId>,
    /// It followed somebody since it is no owner.
    followed: bool,
    is_fresh: bool,
    twin: Option<NodeId>,
    /// How the others that differ do.
    differing: BTreeMap<NodeId, Vec<&'static str>>,
}

/// An own address that another process tells, too.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    own: String,
    other: NodeId,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum News {
    Follows {
        owner: String,
        epoch: Option<u64>,
    },
    FollowsNobody,
    Fresh {
        applied: u64,
    },
    Stale,
    /// Another process has it.
    AddressShared(Address),
    /// The same, and it was there first.
    AddressTaken(Address),
    AddressFree,
    Differs {
        other: String,
        what: Vec<&'static str>,
    },
}

impl Told {
    fn look(&mut self, standing: &Standing, takes_reads: bool, is_starting: bool) -> Vec<News> {
        let mut news = Vec::new();
        self.look_at_owner(standing, &mut news);
        let is_fresh = standing.role == Role::Follower && takes_reads;
        if is_fresh && !self.is_fresh {
            let applied = standing.members.first().map_or(0, |me| me.applied);
            news.push(News::Fresh { applied });
        } else if self.is_fresh && standing.role == Role::Follower && !takes_reads {
            news.push(News::Stale);
        }
        self.is_fresh = is_fresh;
        self.look_at_twin(standing, is_starting, &mut news);
        self.look_at_others(standing, &mut news);
        news
    }

    fn look_at_owner(&mut self, standing: &Standing, news: &mut Vec<News>) {
        if standing.role == Role::Owner {
            (self.owner, self.followed) = (standing.owner, false);
            return;
        }
        let me = standing.members.first().map(|me| me.id);
        let owner = standing.owner().filter(|owner| Some(owner.id) != me);
        let id = owner.map(|owner| owner.id);
        match owner {
            Some(owner) if self.owner != id => {
                self.followed = true;
                news.push(News::Follows {
                    owner: owner.addresses.redis.clone(),
                    epoch: standing.epoch,
                });
            }
            None if self.followed => {
                self.followed = false;
                news.push(News::FollowsNobody);
            }
            _ => {}
        }
        self.owner = id;
    }

    fn look_at_twin(&mut self, standing: &Standing, is_starting: bool, news: &mut Vec<News>) {
        let id = standing.twin.map(|twin| twin.id);
        let before = std::mem::replace(&mut self.twin, id);
        match standing.twin {
            _ if before == id => {}
            None => news.push(News::AddressFree),
            Some(Twin { id, is_older }) => {
                let me = standing.members.first();
                let address = Address {
                    own: me.map_or_else(String::new, |me| me.addresses.redis.clone()),
                    other: id,
                };
                let ends = is_older && is_starting && standing.role != Role::Owner;
                news.push(if ends {
                    News::AddressTaken(address)
                } else {
                    News::AddressShared(address)
                });
            }
        }
    }

    fn look_at_others(&mut self, standing: &Standing, news: &mut Vec<News>) {
        let Some((me, others)) = standing.members.split_first() else {
            return;
        };
        self.differing
            .retain(|id, _| others.iter().any(|other| other.id == *id));
        for other in others {
            let what = what_differs(me, other);
            let before = self.differing.insert(other.id, what.clone());
            if !what.is_empty() && before.as_ref() != Some(&what) {
                let other = other.addresses.redis.clone();
                news.push(News::Differs { other, what });
            }
        }
    }
}

/// In what two members differ that should be alike.
fn what_differs(me: &Member, other: &Member) -> Vec<&'static str> {
    let mut what = differing(me.digests[1], other.digests[1]);
    if me.digests[0] != other.digests[0] {
        what.push("users");
    }
    what
}

/// Why a process does not start.
fn taken(own: &str) -> String {
    format!(
        "another living process tells others that it is reached at {own}, as this one does: give \
         each server an --advertise (or --listen) of its own, or stop the other one"
    )
}

impl News {
    fn tell(&self) {
        match self {
            Self::Follows { owner, epoch } => {
                tracing::info!(owner, epoch, "this node follows the owner of the log");
            }
            Self::FollowsNobody => tracing::info!("no node is known that owns the log"),
            Self::Fresh { applied } => {
                tracing::info!(
                    group = applied,
                    "this node has all of the log: its reads are fresh"
                );
            }
            Self::Stale => tracing::warn!(
                "this node does not have all of the log any more, or cannot see whether it has: it \
                 answers no reads for now"
            ),
            Self::AddressShared(address) | Self::AddressTaken(address) => {
                tracing::error!("{address}");
            }
            Self::AddressFree => {
                tracing::info!("no other process has the address of this node any more");
            }
            Self::Differs { other, what } => {
                let options: Vec<_> = what.iter().map(|part| options_of(part)).collect();
                let options = options.join("; ");
                let differs = what.join(", ");
                tracing::warn!(
                    other,
                    differs,
                    options,
                    "another node has other users, settings or rule files: what clients see will \
                     change when it owns the log"
                );
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "two living processes tell others that they are reached at {}: this one and {}. Clients \
             reach one of them for both: give each its own --advertise",
            self.own, self.other
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_cluster::node::Addresses;
    use latewood_engine::io::sim::SimClock;
    use std::sync::Arc;

    fn member(id: u8) -> Member {
        Member {
            addresses: Addresses {
                redis: format!("db-{id}:6379"),
                ..Addresses::default()
            },
            ..Member::new(NodeId([id; 20]))
        }
    }

    /// The node `db-1`, which follows `db-2`.
    fn standing() -> Standing {
        let clock = Arc::<SimClock>::default();
        let node = Node::new(member(1), Duration::from_secs(5), clock);
        node.change(|standing| {
            standing.role = Role::Follower;
            standing.members.push(member(2));
            standing.owner = Some(NodeId([2; 20]));
            standing.epoch = Some(7);
        });
        Standing::clone(&node.standing())
    }

    fn follows() -> News {
        News::Follows {
            owner: "db-2:6379".to_owned(),
            epoch: Some(7),
        }
    }

    #[test]
    fn each_change_is_told_once() {
        let (mut told, mut now) = (Told::default(), standing());
        assert_eq!(told.look(&now, false, false), [follows()]);
        now.members[0].applied = 9;
        let fresh = News::Fresh { applied: 9 };
        assert_eq!(told.look(&now, true, false), [fresh]);
        assert_eq!(told.look(&now, true, false), []);
        now.owner = None;
        assert_eq!(told.look(&now, true, false), [News::FollowsNobody]);
        assert_eq!(told.look(&now, false, false), [News::Stale]);
        assert_eq!(told.look(&now, false, false), []);
        // It owns the log for a while.
        (now.role, now.owner) = (Role::Owner, Some(NodeId([1; 20])));
        assert_eq!(told.look(&now, true, false), []);
    }

    #[test]
    fn a_process_at_a_taken_address_does_not_start() {
        let id = NodeId([9; 20]);
        let address = Address {
            own: "db-1:6379".to_owned(),
            other: id,
        };
        let (shared, taken) = (
            News::AddressShared(address.clone()),
            News::AddressTaken(address),
        );
        for (role, is_older, is_starting, news) in [
            (Role::Follower, true, true, &taken),
            (Role::Loading, true, true, &taken),
            (Role::Follower, false, true, &shared),
            (Role::Follower, true, false, &shared),
            (Role::Owner, true, true, &shared),
        ] {
            let (mut told, mut now) = (Told::default(), standing());
            told.look(&now, false, is_starting);
            now.role = role;
            now.twin = Some(Twin { id, is_older });
            let heard = told.look(&now, false, is_starting);
            assert!(heard.contains(news), "{role:?} {is_older} {heard:?}");
            assert!(!told.look(&now, false, is_starting).contains(news));
            now.twin = None;
            assert!(told.look(&now, false, false).contains(&News::AddressFree));
        }
    }

    #[test]
    fn what_differs_is_named() {
        let (mut told, mut now) = (Told::default(), standing());
        now.members[1].digests = [0, 1 << 36];
        let differs = News::Differs {
            other: "db-2:6379".to_owned(),
            what: vec!["reads"],
        };
        assert_eq!(told.look(&now, false, false), [follows(), differs]);
        assert_eq!(told.look(&now, false, false), []);
        now.members[1].digests = [0; 2];
        assert_eq!(told.look(&now, false, false), []);
        now.members[1].digests = [1, 1];
        let differs = News::Differs {
            other: "db-2:6379".to_owned(),
            what: vec!["series", "users"],
        };
        assert_eq!(told.look(&now, false, false), [differs]);
    }
}
