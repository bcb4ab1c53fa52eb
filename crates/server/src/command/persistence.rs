//! What is on disk, and the end: `SAVE`, `BGSAVE [SCHEDULE]`, `LASTSAVE`,
//! `WAITAOF numlocal numreplicas timeout`, `WAIT numreplicas timeout`,
//! `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] | ABORT`.
//!
//! SAVE and BGSAVE write what is in memory into blocks, and these into the object store
//! where the log is in Kafka. SAVE runs on a reader thread, or waits for the checkpoint without one:
//! other connections go on.
//! SHUTDOWN writes blocks too unless asked not to. WAIT waits for what followers say that they have
//! applied, without a thread; without other nodes it answers 0 at once instead of waiting for replicas
//! that will not come. WAIT and WAITAOF wait as
//! TS.READ does for samples: other connections go on. In EXEC it answers at
//! once, as in Redis. Tested by `tests/resp/admin.rs` and `net/tests/disk_waits.rs`.

use super::call::{Call, Outcome};
use super::fault::{Fault, NOT_AN_INTEGER, SYNTAX};
use super::spec::Spec;
use super::{read, work};
use crate::client::{BlockedCommand, Session, What, later};
use crate::messaging::{Message, Why};
use crate::state::{Shared, Stop};
use latewood_cluster::node::{Node, Role};
use latewood_engine::{Position, Stats};
use latewood_wire::resp::Reply;
use latewood_wire::resp::number::parse_i64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

/// How often WAIT looks what followers have.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A stop that leaves what is in memory to the log.
pub(crate) const SHUTDOWN_NOSAVE: &str = "SHUTDOWN NOSAVE";

const SAVE: Spec = Spec::of_group("server", &["admin", "noscript", "no_multi"]).named("save", save).about("Flushes everything in memory into blocks and returns when it is on disk; with a log in Kafka, saves a checkpoint.");

pub(crate) const SPECS: &[Spec] = &[
    SAVE,
    SAVE.flags(&["admin", "noscript"])
        .named("bgsave", background_save)
        .words(-1, "[SCHEDULE]")
        .about("The same as SAVE, in the background."),
    SAVE.flags(&["loading", "stale", "fast"])
        .named("lastsave", last_save)
        .about("Returns the time of the last completed SAVE or BGSAVE, or of the start."),
    SAVE.flags(&["blocking"])
        .named("wait", wait)
        .words(3, "numreplicas timeout")
        .about("Waits until followers have the writes of this connection; returns how many."),
    SAVE.flags(&["blocking"])
        .named("waitaof", wait_for_log)
        .words(4, "numlocal numreplicas timeout")
        .about("Waits until the writes of this connection are on disk."),
    SAVE.flags(&["admin", "noscript", "loading", "stale", "no_multi"])
        .named("shutdown", shutdown)
        .words(-1, "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]")
        .about("Stops the server; acknowledged writes are kept."),
];

fn save(call: &mut Call<'_>) -> Outcome {
    let Some(remote) = call.shared.remote.get() else {
        return call.finish(work::UNKNOWN, |call| {
            call.shared.db.flush()?;
            call.shared.db.sync()?;
            call.ok()
        });
    };
    // It flushes, and its record is durable.
    let asked = remote.ask();
    call.finish_after(remote.answered(asked), move |call| {
        let remote = call.shared.remote.get();
        let outcome = remote.map_or(Ok(()), |remote| remote.outcome(asked));
        outcome.map_err(|reason| {
            Fault::Line(format!("ERR cannot save a checkpoint: {reason}").into())
        })?;
        call.ok()
    })
}

fn background_save(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() > 2 || (args.len() == 2 && !args.is(1, "SCHEDULE")) {
        return Err(SYNTAX);
    }
    match call.shared.remote.get() {
        Some(remote) => {
            remote.ask();
        }
        None => call.shared.db.flush_soon(),
    }
    call.reply().simple("Background saving started");
    Ok(())
}

fn last_save(call: &mut Call<'_>) -> Outcome {
    let saved_s = last_save_s(call.shared, &call.shared.db.shown().stats());
    call.integer(saved_s)
}

/// Seconds since the epoch of the last SAVE or BGSAVE that is done, or of the
/// start.
pub(super) fn last_save_s(shared: &Shared, stats: &Stats) -> i64 {
    let started_s = shared.jobs.last_save_s.load(Ordering::Relaxed);
    let saved_at_ms = match shared.remote() {
        Some(remote) => remote
            .checkpoints
            .newest
            .map_or(0, |newest| newest.made_at_ms),
        None => stats.flush.saved_at_ms,
    };
    started_s.max(saved_at_ms / 1000)
}

/// Milliseconds; 0 is for ever.
fn timeout(word: &[u8]) -> Result<u64, Fault> {
    let out_of_range = Fault::line("ERR timeout is not an integer or out of range");
    let timeout_ms = parse_i64(word).ok_or(out_of_range)?;
    u64::try_from(timeout_ms).map_err(|_| Fault::line("ERR timeout is negative"))
}

fn wait(call: &mut Call<'_>) -> Outcome {
    let wanted = parse_i64(call.args.word(1)).ok_or(NOT_AN_INTEGER)?;
    let timeout_ms = timeout(call.args.word(2))?;
    let Some(node) = call.shared.node.get() else {
        return call.integer(0);
    };
    let wait = FollowersWait {
        node: Arc::clone(node),
        position: call.session.writes.newest(),
        wanted: usize::try_from(wanted).unwrap_or(0),
        alive: Arc::default(),
    };
    if wait.is_met() || call.session.in_exec() {
        return call.count(wait.count());
    }
    wait.look(call);
    let what = What::Command(Box::new(wait));
    call.session
        .wait(call.shared, read::deadline(timeout_ms), what);
    Ok(())
}

/// A WAIT under way. A task looks what followers have, and wakes the connection.
#[derive(Debug)]
struct FollowersWait {
    node: Arc<Node>,
    /// The newest write of its connection.
    position: Position,
    wanted: usize,
    /// The task ends with it.
    alive: Arc<()>,
}

impl FollowersWait {
    fn count(&self) -> usize {
        self.node.followers_at(self.position.0)
    }

    fn is_met(&self) -> bool {
        self.count() >= self.wanted
    }

    /// Wakes the connection of `call` again and again once the wait is met or in vain, until it is
    /// over.
    fn look(&self, call: &Call<'_>) {
        let (events, client) = (Arc::clone(&call.shared.events), call.session.info.clone());
        let (node, alive) = (Arc::clone(&self.node), Arc::downgrade(&self.alive));
        let (position, wanted) = (self.position.0, self.wanted);
        later(async move {
            while alive.strong_count() > 0 {
                if node.role() != Role::Owner || node.followers_at(position) >= wanted {
                    let message = Message::Resume(client.id, Why::News);
                    let mailboxes = events.channels.mailboxes();
                    mailboxes.send(client.event_loop, message);
                }
                sleep(LOOK_EVERY).await;
            }
        });
    }
}

impl BlockedCommand for FollowersWait {
    fn resume(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        out: &mut Vec<u8>,
        why: Why,
    ) -> bool {
        let mut reply = Reply::new(out, session.protocol());
        if why == Why::Refused {
            reply.error(read::UNBLOCKED);
            return true;
        }
        let taken = shared.takes_writes();
        if why == Why::News && taken.is_ok() && !self.is_met() {
            return false;
        }
        if why != Why::Unblocked && !session.info.figures.claim_unblock() {
            // CLIENT UNBLOCK was first; its message is on the way.
            return false;
        }
        match taken {
            // What there is by now is the answer.
            Ok(()) => reply.count(self.count()),
            Err(to) => {
                let text = format!("UNBLOCKED this node has lost the log; {to}");
                shared.observe.errors.note(&text, 1);
                reply.error(text);
            }
        }
        true
    }

    fn forget(&self, _: &Shared) {}

    /// It is a few words, whatever it waits for.
    fn held_bytes(&self) -> usize {
        0
    }
}

fn wait_for_log(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let local = match parse_i64(args.word(1)) {
        Some(local @ (0 | 1)) => local,
        Some(_) => {
            return Fault::refuse("ERR value is out of range, value must between 0 and 1");
        }
        None => return Err(NOT_AN_INTEGER),
    };
    if parse_i64(args.word(2)).is_none_or(|replicas| replicas < 0) {
        return Fault::refuse("ERR value is out of range, must be positive");
    }
    let timeout_ms = timeout(args.word(3))?;
    if local == 1 && !call.shared.settings.wal {
        return Fault::refuse(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        );
    }
    let (shared, position) = (call.shared, call.session.writes.newest());
    let is_durable = shared.db.durable_position() >= position;
    if local == 1 && !is_durable && !call.session.in_exec() {
        let what = What::Command(Box::new(LogWait { position }));
        call.session.wait(shared, read::deadline(timeout_ms), what);
    } else {
        tell_of_log(call.reply(), shared.settings.wal && is_durable);
    }
    Ok(())
}

/// How many machines have it on disk: this one or none, and none of the replicas.
fn tell_of_log(mut reply: Reply<'_>, is_durable: bool) {
    reply.array(2);
    reply.integer(i64::from(is_durable));
    reply.integer(0);
}

/// A WAITAOF under way.
#[derive(Debug)]
struct LogWait {
    /// The newest write of its connection.
    position: Position,
}

impl BlockedCommand for LogWait {
    fn resume(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        out: &mut Vec<u8>,
        why: Why,
    ) -> bool {
        let mut reply = Reply::new(out, session.protocol());
        if why == Why::Refused {
            reply.error(read::UNBLOCKED);
            return true;
        }
        let is_durable = shared.db.is_durable(self.position);
        if why == Why::News && matches!(is_durable, Ok(false)) {
            return false;
        }
        if why != Why::Unblocked && !session.info.figures.claim_unblock() {
            // CLIENT UNBLOCK was first; its message is on the way.
            return false;
        }
        match is_durable {
            Ok(is_durable) => tell_of_log(reply, is_durable),
            Err(error) => {
                let text = match shared.takes_writes() {
                    Ok(()) => Fault::from(error).text("waitaof").into_owned(),
                    Err(to) => format!(
                        "UNBLOCKED this node has lost the log: unknown whether the writes of this \
                         connection are in it; {to}"
                    ),
                };
                shared.observe.errors.note(&text, 1);
                reply.error(text);
            }
        }
        true
    }

    fn forget(&self, _: &Shared) {}

    /// It is a few words, whatever it waits for.
    fn held_bytes(&self) -> usize {
        0
    }

    fn awaited(&self) -> Option<Position> {
        Some(self.position)
    }
}

fn shutdown(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut modes = 0;
    for at in 1..args.len() {
        if args.is(at, "ABORT") && args.len() == 2 {
            return Fault::refuse("ERR No shutdown in progress.");
        }
        if args.is(at, "SAVE") || args.is(at, "NOSAVE") {
            modes += 1;
        } else if !args.is(at, "NOW") && !args.is(at, "FORCE") {
            return Err(SYNTAX);
        }
    }
    if modes > 1 {
        return Err(SYNTAX);
    }
    call.session.close();
    let keeps_log_only = (1..args.len()).any(|at| args.is(at, "NOSAVE"));
    let by = ["SHUTDOWN", SHUTDOWN_NOSAVE][usize::from(keeps_log_only)];
    call.shared.lifetime.stop(Stop::Asked(by));
    Ok(())
}
