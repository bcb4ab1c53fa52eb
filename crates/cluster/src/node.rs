//! What a node is to its tablet, and what it knows of the other nodes: for whoever asks, at any
//! time.
//!
//! The thread that follows or owns the log changes it; those that answer clients look at it before
//! each command. A look costs a load from memory.
//!
//! Invariants: at most one member is the owner. A read is fresh only if the node had applied, at
//! some moment within the bound, all that the log held then ([`Node::set_fresh`]); never by the
//! arrival of records, never by comparing clocks of machines.
//!
//! Tested by its own tests.

mod member;

use latewood_engine::io::Clock;
pub use member::{Addresses, Member, NodeId, Twin};
use parking_lot::RwLock;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// What a node is to its tablet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// It has not applied what its files need yet, and answers nothing.
    Loading,
    /// It applies the log, and answers reads.
    Follower,
    /// It appends to the log.
    Owner,
}

impl Role {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Follower => "follower",
            Self::Owner => "owner",
        }
    }
}

/// A member as this node sees it at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// What it said of itself.
    pub member: &'a Member,
    /// Its role. Others that do not own the log are followers: they do not say whether they load.
    pub role: Role,
    /// Since when it has the role, as far as this node heard; milliseconds since 1970.
    pub since_ms: i64,
    /// How long ago it had all of the log; `None` if it never had. Of others: how long ago they said
    /// last that they are caught up, which they say while they may answer reads.
    pub behind: Option<Duration>,
    /// How long ago it was heard.
    pub heard: Duration,
}

/// A node and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The role of this node.
    pub role: Role,
    /// Since when, milliseconds since 1970.
    pub since_ms: i64,
    /// The epoch of the log, if it has one.
    pub epoch: Option<u64>,
    /// Who owns it, as far as that is known: it said no farewell, and was heard lately.
    pub owner: Option<NodeId>,
    /// The newest group that this node knows to be in the log; 0 before the first.
    pub newest: u64,
    /// The newest owner that was known, also after it is gone.
    pub last_owner: Option<Member>,
    /// Another process that tells others the address of this one, if there is one.
    pub twin: Option<Twin>,
    /// All that were heard lately, this one first: it is always there.
    pub members: Vec<Member>,
}

impl Standing {
    /// Groups of the log that this node knows of and has not applied.
    pub fn unapplied(&self) -> u64 {
        let applied = self.members.first().map_or(0, |me| me.applied);
        self.newest.saturating_sub(applied)
    }

    /// The owner, where it is reached.
    pub fn owner(&self) -> Option<&Member> {
        let owner = self.owner?;
        self.members.iter().find(|member| member.id == owner)
    }

    /// How many others have other users than this node, and how many other settings.
    pub fn differing(&self) -> [usize; 2] {
        let Some((me, others)) = self.members.split_first() else {
            return [0; 2];
        };
        let differ = |at: usize| move |other: &&Member| other.digests[at] != me.digests[at];
        [0, 1].map(|at| others.iter().filter(differ(at)).count())
    }
}

/// Why a command is not for this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// The owner answers it.
    Owner(Addresses),
    /// Nobody does for now; the same command may be answered later.
    Nobody(&'static str),
}

/// A node of a tablet.
pub struct Node {
    id: NodeId,
    clock: Arc<dyn Clock>,
    /// How old an answer of a follower may be.
    staleness_max: Duration,
    role: AtomicU8,
    /// A follower had applied all that was in the log at this moment, by the clock that goes on
    /// while the machine is suspended; 0 before the first.
    fresh_ns: AtomicU64,
    standing: RwLock<Arc<Standing>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({:?})", self.role())
    }
}

impl Node {
    /// One that is loading, and knows of nobody but itself.
    pub fn new(me: Member, staleness_max: Duration, clock: Arc<dyn Clock>) -> Self {
        let id = me.id;
        let standing = Standing {
            role: Role::Loading,
            since_ms: clock.now_ms(),
            epoch: None,
            owner: None,
            newest: 0,
            last_owner: None,
            twin: None,
            members: vec![me],
        };
        Self {
            id,
            clock,
            staleness_max,
            role: AtomicU8::new(Role::Loading as u8),
            fresh_ns: AtomicU64::new(0),
            standing: RwLock::new(Arc::new(standing)),
        }
    }

    /// Its name.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Its role.
    pub fn role(&self) -> Role {
        match self.role.load(Ordering::Acquire) {
            0 => Role::Loading,
            1 => Role::Follower,
            _ => Role::Owner,
        }
    }

    /// It and the others.
    pub fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.standing.read())
    }

    /// It, as it says itself.
    pub(crate) fn me(&self) -> Member {
        self.standing().members[0].clone()
    }

    /// Changes what is known. A new role holds for all commands that begin later.
    pub fn change(&self, change: impl FnOnce(&mut Standing)) {
        let mut held = self.standing.write();
        let mut next = Standing::clone(&held);
        change(&mut next);
        if let Some(owner) = next.owner() {
            next.last_owner = Some(owner.clone());
        }
        if next.role != held.role {
            next.since_ms = self.clock.now_ms();
        }
        self.role.store(next.role as u8, Ordering::Release);
        *held = Arc::new(next);
    }

    /// All that the log held at `at_ns`, by [`Clock::boottime_ns`], is applied.
    pub fn set_fresh(&self, at_ns: u64) {
        self.fresh_ns.fetch_max(at_ns, Ordering::AcqRel);
    }

    /// How long ago a follower had applied all that the log held; `None` if it never had.
    pub fn behind(&self) -> Option<Duration> {
        let fresh_ns = self.fresh_ns.load(Ordering::Acquire);
        let now_ns = self.clock.boottime_ns();
        (fresh_ns > 0).then(|| Duration::from_nanos(now_ns.saturating_sub(fresh_ns)))
    }

    /// Whether another node, which was heard lately, has all that this one has.
    pub fn has_heir(&self) -> bool {
        let standing = self.standing();
        let mut others = standing.members.iter().skip(1);
        others.any(|other| other.is_caught_up && self.heard_ago(other) <= self.staleness_max)
    }

    /// How many others had applied the group at `position` when they were heard last.
    pub fn followers_at(&self, position: u64) -> usize {
        let standing = self.standing();
        let others = standing.members.iter().skip(1);
        others.filter(|other| other.applied >= position).count()
    }

    /// How long ago a member was heard.
    pub fn heard_ago(&self, member: &Member) -> Duration {
        self.ago(member.heard_ns)
    }

    /// The members of `standing`, which is that of this node, as they are now.
    pub fn see<'a>(&self, standing: &'a Standing) -> Vec<Seen<'a>> {
        let now_ms = self.clock.now_ms();
        let see = |member: &'a Member| {
            let is_me = member.id == self.id;
            let role = match standing.owner {
                _ if is_me => standing.role,
                Some(owner) if owner == member.id => Role::Owner,
                _ => Role::Follower,
            };
            let since = self.ago(member.since_ns).as_millis();
            Seen {
                member,
                role,
                since_ms: if is_me {
                    standing.since_ms
                } else {
                    now_ms.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX))
                },
                behind: match role {
                    Role::Owner => Some(Duration::ZERO),
                    _ if is_me => self.behind(),
                    _ => member.caught_up_ns.map(|at_ns| self.ago(at_ns)),
                },
                heard: self.heard_ago(member),
            }
        };
        standing.members.iter().map(see).collect()
    }

    /// How long ago a moment of the monotonic clock was.
    fn ago(&self, at_ns: u64) -> Duration {
        Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(at_ns))
    }

    /// How old an answer of a follower may be.
    pub fn staleness_max(&self) -> Duration {
        self.staleness_max
    }

    /// Whether writes are for this node.
    ///
    /// # Errors
    /// Where they are to go.
    pub fn takes_writes(&self) -> Result<(), Elsewhere> {
        match self.role() {
            Role::Owner => Ok(()),
            Role::Loading | Role::Follower => Err(self.elsewhere()),
        }
    }

    /// Whether reads of a client that accepts answers of followers are for this node. Asked once
    /// more after the snapshot was taken, as what was fresh may not be any more.
    ///
    /// # Errors
    /// Where they are to go.
    pub fn takes_reads(&self) -> Result<(), Elsewhere> {
        match self.role() {
            Role::Owner => Ok(()),
            Role::Follower if self.is_fresh() => Ok(()),
            Role::Loading | Role::Follower => Err(self.elsewhere()),
        }
    }

    fn is_fresh(&self) -> bool {
        self.behind()
            .is_some_and(|behind| behind <= self.staleness_max)
    }

    /// Where clients are to go instead.
    pub fn elsewhere(&self) -> Elsewhere {
        let standing = self.standing();
        let me = standing.members.first().map(|me| me.id);
        match (standing.owner(), standing.role) {
            (Some(owner), _) if Some(owner.id) != me => Elsewhere::Owner(owner.addresses.clone()),
            (Some(_), _) => Elsewhere::Nobody("this node is taking the log over"),
            (None, Role::Loading) => Elsewhere::Nobody("this node is loading the database"),
            (None, _) => Elsewhere::Nobody("no node owns the log at the moment"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_engine::io::sim::SimClock;

    fn member(id: u8) -> Member {
        Member {
            addresses: Addresses {
                redis: format!("node{id}:6379"),
                ..Addresses::default()
            },
            version: "1".to_owned(),
            is_caught_up: true,
            ..Member::new(NodeId([id; 20]))
        }
    }

    #[test]
    fn an_heir_was_heard_lately_and_has_it_all() {
        let clock = Arc::new(SimClock::default());
        let node = Node::new(member(1), Duration::from_secs(5), clock.clone());
        assert!(!node.has_heir(), "it is alone");
        let (has_not, has) = (Member::new(NodeId([2; 20])), member(3));
        node.change(|standing| standing.members.push(has_not));
        assert!(!node.has_heir());
        node.change(|standing| standing.members.push(has));
        clock.advance_ms(5_000);
        assert!(node.has_heir());
        clock.advance_ms(1);
        assert!(!node.has_heir(), "it may be dead");
    }

    #[test]
    fn answers_are_as_old_as_the_bound_and_not_older() {
        let clock = Arc::new(SimClock::default());
        let node = Node::new(member(1), Duration::from_secs(5), clock.clone());
        let nobody = Elsewhere::Nobody("this node is loading the database");
        assert_eq!(node.takes_reads(), Err(nobody));
        node.change(|standing| standing.role = Role::Follower);
        let nobody = Err(Elsewhere::Nobody("no node owns the log at the moment"));
        assert_eq!(node.takes_reads(), nobody.clone());
        clock.advance_ms(1_000);
        node.set_fresh(clock.boottime_ns());
        assert_eq!(node.takes_reads(), Ok(()));
        assert_eq!(node.takes_writes(), nobody.clone());
        clock.advance_ms(5_000);
        assert_eq!(node.takes_reads(), Ok(()));
        clock.advance_ms(1);
        assert_eq!(node.takes_reads(), nobody);
        node.change(|standing| {
            standing.members.push(member(2));
            standing.owner = Some(NodeId([2; 20]));
        });
        assert_eq!(
            node.takes_reads(),
            Err(Elsewhere::Owner(member(2).addresses))
        );
        node.change(|standing| standing.owner = Some(NodeId([1; 20])));
        let taking = Elsewhere::Nobody("this node is taking the log over");
        assert_eq!(node.takes_writes(), Err(taking));
        node.change(|standing| standing.role = Role::Owner);
        assert_eq!((node.takes_reads(), node.takes_writes()), (Ok(()), Ok(())));
    }

    #[test]
    fn members_are_seen_as_they_said_and_when() {
        let clock = Arc::new(SimClock::default());
        let node = Node::new(member(1), Duration::from_secs(5), clock.clone());
        clock.advance_ms(10_000);
        let now_ns = clock.monotonic_ns();
        node.set_fresh(clock.boottime_ns());
        node.change(|standing| {
            standing.role = Role::Follower;
            standing.owner = Some(NodeId([2; 20]));
            standing.newest = 9;
            standing.members[0].applied = 7;
            let heard = |id, caught_up_ns| Member {
                heard_ns: now_ns,
                since_ns: now_ns,
                caught_up_ns,
                ..member(id)
            };
            let others = [heard(2, None), heard(3, Some(now_ns)), heard(4, None)];
            standing.members.extend(others);
        });
        let since_ms = clock.now_ms();
        clock.advance_ms(2_000);
        let standing = node.standing();
        assert_eq!(standing.unapplied(), 2);
        let (now, ago) = (Some(Duration::ZERO), Some(Duration::from_secs(2)));
        let expected = [
            (Role::Follower, ago),
            (Role::Owner, now),
            (Role::Follower, ago),
            (Role::Follower, None),
        ];
        let seen = node.see(&standing);
        for (seen, (role, behind)) in seen.iter().zip(expected) {
            assert_eq!((seen.role, seen.behind), (role, behind), "{seen:?}");
            assert_eq!(seen.since_ms, since_ms, "{seen:?}");
        }
        assert_eq!(seen[1].heard, Duration::from_secs(2));
        node.change(|standing| standing.role = Role::Owner);
        assert_eq!(node.see(&node.standing())[0].behind, now);
    }
}
