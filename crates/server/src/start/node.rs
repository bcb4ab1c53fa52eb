//! A node of a cluster: it follows the log, owns it when nobody else does, and begins anew when it
//! lost it.
//!
//! ```text
//! open      the newest checkpoint; from then on a thread applies the log
//! Follows   reads are right: clients are answered
//! Owns      the tablet is kept as that of a single server (tablet.rs)
//! Ended     what is in memory is no beginning of the log: the process begins anew, or ends
//! ```
//! Tested by `tests/clients/test_cluster.py` with brokers.

use super::downloading::downloading;
use super::server;
use super::tablet::{self, Home, Keeper};
use super::watching;
use crate::state::{Settings, Shared, Stop};
use latewood_cluster::node::{Member, Node, NodeId};
use latewood_cluster::standby::{Change, Ended, Standby};
use latewood_engine::Options;
use latewood_engine::io::Env;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// How soon a stop is noticed.
const TURN: Duration = Duration::from_millis(50);
/// How long a node that is stopped waits until the others are told.
const LEAVE_WAIT: Duration = Duration::from_secs(1);

/// A node that was opened.
pub(super) struct Joined {
    standby: Standby,
    home: Home,
    changes: Receiver<Change>,
}

/// What this process is to its tablet, before anything of it is known.
///
/// # Errors
/// Why others could not reach it.
pub(super) fn introduce(settings: &Settings) -> Result<Arc<Node>, String> {
    let env = Env::real();
    let me = myself(settings, &env)?;
    let staleness_max = Duration::from_millis(settings.cluster.nodes.staleness_max_ms);
    Ok(Arc::new(Node::new(me, staleness_max, env.clock)))
}

/// Opens the database that `settings` name as `node` of its cluster. It follows from then on.
///
/// # Errors
/// Why it cannot be opened. The log is as it was.
pub(super) fn open(
    settings: &Settings,
    options: Options,
    node: Arc<Node>,
    shared: Weak<Shared>,
) -> Result<Joined, Stop> {
    let (home, mut place) = tablet::find(settings)?;
    let me = &node.standing().members[0];
    place.claimant.address.clone_from(&me.addresses.redis);
    place.read_lease = true;
    let mut downloaded = downloading(Weak::clone(&shared));
    let caching = Weak::clone(&shared);
    let (tell, changes) = channel();
    let on_change = Box::new(move |change| match (change, shared.upgrade()) {
        (Change::Ended(ended), Some(shared)) => end(&shared, ended),
        (Change::Owns(tablet), Some(shared)) => {
            // Before the first command of an owner.
            shared.keeps(&tablet);
            drop(tell.send(Change::Owns(tablet)));
        }
        // The receiver is gone only when the server is stopping already.
        (change, _) => drop(tell.send(change)),
    });
    let defaults = settings.defaults();
    let standby = Standby::open(place, options, defaults, node, &mut downloaded, on_change)
        .map_err(|error| tablet::not_opened(&settings.dir, &error))?;
    let cache = standby.cache();
    cache.set_bytes_max(settings.cluster.cache_bytes_max);
    if let Some(shared) = caching.upgrade() {
        shared.cache.get_or_init(|| cache);
    }
    Ok(Joined {
        standby,
        home,
        changes,
    })
}

fn myself(settings: &Settings, env: &Env) -> Result<Member, String> {
    let mut id = [0; 20];
    for bytes in id.chunks_mut(8) {
        bytes.copy_from_slice(&env.random.next_u64().to_le_bytes()[..bytes.len()]);
    }
    Ok(Member {
        addresses: settings.advertised()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digests: settings.digests(),
        ..Member::new(NodeId(id))
    })
}

impl Joined {
    /// Lives as the node until the server stops.
    pub(super) fn run(self, shared: &Shared, addresses: &server::Addresses) {
        let Self {
            standby,
            home,
            changes,
        } = self;
        if let Err(error) = standby.start() {
            return shared.lifetime.stop(Stop::Crashed(error.to_string()));
        }
        let (node, mut home) = (Arc::clone(standby.node()), Some(home));
        thread::scope(|scope| {
            scope.spawn(|| watching::run(shared, &node));
            while !tablet::is_stopping(shared) {
                match changes.recv_timeout(TURN) {
                    Ok(Change::Follows) => serve(shared, &standby, addresses),
                    Ok(Change::Owns(owned)) => {
                        serve(shared, &standby, addresses);
                        if let Some(home) = home.take() {
                            let keeper = Keeper::new(owned, home, Some(Arc::clone(&node)));
                            tracing::info!("this node owns the log from now on");
                            keeper.run(shared);
                        }
                    }
                    Ok(Change::Ended(_)) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        if standby.tablet().is_none() {
            standby.leave(LEAVE_WAIT);
            standby.abandon();
        }
    }
}

/// Answers clients from now on.
fn serve(shared: &Shared, standby: &Standby, addresses: &server::Addresses) {
    if shared.db.is_loading() {
        shared.opened(Arc::clone(standby.db()));
        server::announce(shared, addresses);
        standby.fetch_all();
    }
}

fn end(shared: &Shared, ended: Ended) {
    shared.lifetime.stop(match ended {
        Ended::LoadAnew(reason) => Stop::Anew(reason),
        Ended::Log(error) if error.loses_records() => Stop::LogLost(error.to_string()),
        Ended::Log(error) => Stop::Crashed(error.to_string()),
        Ended::Failed(reason) => Stop::Crashed(reason),
        Ended::Stopped => return,
    });
}
