//! A server's state over a simulated disk, for tests and fuzz targets of the floors above.

mod log;

use crate::acl::Users;
use crate::acl::catalogue::{Catalogue, Entry};
use crate::messaging::{Channels, Events, Mailboxes};
use crate::observe::{CommandId, Observe};
use crate::options::{Given, resolve};
use crate::state::{Database, Jobs, Lifetime, Shared};
use latewood_cluster::node::{Addresses, Member, Node, NodeId, Role};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::{Db, Defaults, Durability, Options};
pub(crate) use log::TestLog;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The two commands that the floors below the registry know by name.
const NAMES: [&str; 2] = ["ts.add", "ts.madd"];

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let entry = |(at, name): (usize, &str)| Entry {
        name: name.to_owned(),
        categories: 0,
        family: at..at + 1,
    };
    Catalogue::new(NAMES.into_iter().enumerate().map(entry).collect())
});

/// How old an answer of the follower that [`follow`] makes may be.
pub(crate) const STALENESS_MS: u32 = 5_000;

/// Users over these commands: the default one alone.
pub(crate) fn users() -> Users {
    Users::new(&CATALOGUE)
}

/// A server's state over a new disk; without event loops.
pub(crate) fn shared() -> Arc<Shared> {
    shared_on(&SimDisk::new(), Mailboxes::default())
}

/// The same over `disk`, with the event loops of `mailboxes`.
pub(crate) fn shared_on(disk: &SimDisk, mailboxes: Mailboxes) -> Arc<Shared> {
    shared_over(open_on(disk, false), mailboxes)
}

/// The same over a database.
pub(crate) fn shared_over(db: Db, mailboxes: Mailboxes) -> Arc<Shared> {
    shared_for(users(), observe(), db, mailboxes)
}

fn observe() -> Observe {
    let rows = NAMES.into_iter().enumerate().map(|(address, name)| {
        let id = CommandId {
            address,
            is_fast: true,
        };
        (id, name.to_owned())
    });
    Observe::new(rows)
}

/// Makes the server a fresh follower of `db-2`, and says by which clock.
pub(crate) fn follow(shared: &Shared) -> (Arc<Node>, Arc<SimClock>) {
    let member = |id: u8| Member {
        addresses: Addresses {
            redis: format!("db-{id}:6379"),
            ..Addresses::default()
        },
        version: "0.1".to_owned(),
        applied: 7,
        is_caught_up: true,
        ..Member::new(NodeId([id; 20]))
    };
    let clock = Arc::<SimClock>::default();
    let staleness_max = Duration::from_millis(u64::from(STALENESS_MS));
    let node = Arc::new(Node::new(member(1), staleness_max, Arc::clone(&clock) as _));
    node.change(|standing| {
        standing.role = Role::Follower;
        standing.owner = Some(NodeId([2; 20]));
        standing.members.push(member(2));
        standing.epoch = Some(5);
    });
    clock.advance_ms(1);
    node.set_fresh(clock.boottime_ns());
    let set = shared.node.set(Arc::clone(&node));
    assert!(set.is_ok(), "it has a role already");
    (node, clock)
}

/// The database on `disk`. With background threads it syncs only what is wanted.
pub(crate) fn open_on(disk: &SimDisk, background: bool) -> Db {
    let options = Options {
        segment_bytes: 1 << 20,
        durability: Durability::None,
        background,
        ..Options::default()
    };
    let db = Db::open(&disk.env(1), Path::new("/db"), options, Defaults::default());
    db.expect("the disk holds a database or nothing")
}

/// A database of its own disk whose log is `log`, and which syncs only what is wanted.
pub(crate) fn open_on_log(log: Arc<TestLog>) -> Db {
    let options = Options {
        durability: Durability::None,
        shards: 4,
        ..Options::default()
    };
    let (disk, defaults) = (SimDisk::new(), Defaults::default());
    let db = Db::open_remote(&disk.env(1), Path::new("/db"), options, defaults, log);
    db.expect("the log is new")
}

/// Has the server promise that what it acknowledges is in the log. Nobody else has it yet.
pub(crate) fn promise_sync(shared: &mut Arc<Shared>) {
    let shared = Arc::get_mut(shared).expect("it is shared already");
    shared.settings.durability = Durability::Sync;
}

/// A server's state over an empty database that follows a log.
pub(crate) fn shared_follower(mailboxes: Mailboxes) -> Arc<Shared> {
    let shared = loading(users(), observe(), mailboxes);
    let options = Options {
        on_follow: Some(shared.events.of_follower()),
        shards: 2,
        ..Options::default()
    };
    let env = SimDisk::new().env(1);
    let db = Db::open_follower(&env, Path::new("/db"), options, Defaults::default());
    shared.opened(Arc::new(db.expect("the disk is empty")));
    Arc::new(shared)
}

/// A server's state over a database for these users, who use the commands that `observe` counts.
pub(crate) fn shared_for(
    users: Users,
    observe: Observe,
    db: Db,
    mailboxes: Mailboxes,
) -> Arc<Shared> {
    let shared = loading(users, observe, mailboxes);
    shared.opened(Arc::new(db));
    Arc::new(shared)
}

/// The same before the database is open.
pub(crate) fn loading(users: Users, observe: Observe, mailboxes: Mailboxes) -> Shared {
    let database = Database::closed(Defaults::default());
    let settings = resolve(Given::default(), |_| None);
    Shared::new(
        database.expect("an empty database takes only memory"),
        settings.expect("the defaults are valid"),
        (users, observe),
        Arc::default(),
        Arc::new(Events::new(Channels::new(Arc::new(mailboxes)))),
        Jobs::new(channel().0),
        Lifetime::new(channel().0),
    )
}
