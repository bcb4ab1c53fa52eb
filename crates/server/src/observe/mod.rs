//! What the server knows about its own work: commands by count, time and
//! outcome, errors by code, slow commands, long delays, rates.
//!
//! Fed by dispatch for each command and by the groups of samples off the
//! wire, which are timed as a whole; read by INFO, SLOWLOG and LATENCY.
//! Nothing here locks on the path of a command that is neither slow nor
//! wrong.

mod ages;
mod arrivals;
mod commands;
mod connections;
mod counters;
mod errors;
mod intake;
mod latency;
mod lateness;
pub(crate) mod process;
mod rates;
pub(crate) mod reads;
mod refused;
mod slowlog;

pub(crate) use ages::{AGE_BOUNDS_MS, AgeCounters, Ages};
pub(crate) use arrivals::{Arrivals, Picked};
pub(crate) use commands::{CommandId, CommandRow, Commands};
pub(crate) use connections::{Connections, Listeners};
pub(crate) use counters::Counters;
pub(crate) use errors::Errors;
pub(crate) use intake::{IntakeCounters, IntakeFigures, Protocol};
#[cfg(test)]
pub(crate) use latency::Delay;
pub(crate) use latency::{Event, History, Latency};
pub(crate) use lateness::{
    BLOCK_MINUTES, HOUR_MINUTES, LateSum, Lateness, MINUTE_MS, MINUTES, Origin, QUANTILE_ERROR,
    ROWS_MAX, RankedRow, Route,
};
pub(crate) use rates::Rates;
pub(crate) use reads::{Endpoint, ReadCounters, Reads};
pub(crate) use refused::{Limit, Refused};
pub(crate) use slowlog::{SlowEntry, SlowLog, cut};

use crate::base::clock::now_ms;
use crate::clients::ClientInfo;
use latewood_engine::{Append, Db, Scratch};
use parking_lot::RwLock;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// All that is observed.
#[derive(Debug)]
pub(crate) struct Observe {
    /// Names this run of the process: 40 hexadecimal digits.
    pub(crate) run_id: String,
    /// Each command's figures.
    pub(crate) commands: Commands,
    /// Error replies.
    pub(crate) errors: Errors,
    /// Ages of the samples of TS.ADD and TS.MADD.
    pub(crate) ages: AgeCounters,
    /// How late samples come.
    pub(crate) lateness: Lateness,
    /// Some of the samples that come.
    pub(crate) arrivals: Arrivals,
    /// Requests over a limit.
    pub(crate) refused: Refused,
    /// Slow commands.
    pub(crate) slowlog: SlowLog,
    /// Long delays; the engine's threads note theirs too.
    pub(crate) latency: Arc<Latency>,
    /// What a second brings.
    pub(crate) rates: Rates,
    /// Whether durations of commands are counted in histograms.
    pub(crate) tracks_durations: AtomicBool,
    /// The percentiles of INFO latencystats.
    pub(crate) percentiles: RwLock<Vec<f64>>,
}

/// A command that ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    /// How long that took.
    pub(crate) took: Duration,
    /// Whether it was answered with an error.
    pub(crate) failed: bool,
}

/// Who sends samples over the Redis port.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    /// The connection.
    pub(crate) client: &'a ClientInfo,
    /// The name of its user.
    pub(crate) user: &'a [u8],
}

/// When samples of the Redis port arrived, and how old they were.
pub(crate) struct Arrival {
    ages: Ages,
    now_ms: i64,
}

/// Samples off the wire that were applied together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupWork<'a> {
    /// TS.ADD commands.
    pub(crate) adds: u64,
    /// Those answered with an error.
    pub(crate) adds_failed: u64,
    /// TS.MADD commands.
    pub(crate) madds: u64,
    /// A key of the group, to know it by.
    pub(crate) key: &'a [u8],
    /// How long it all took.
    pub(crate) duration_ns: u64,
}

impl Observe {
    /// Nothing observed yet; `commands` are all commands with their full names.
    pub(crate) fn new(commands: impl Iterator<Item = (CommandId, String)>) -> Self {
        Self {
            run_id: run_id(),
            commands: Commands::new(commands),
            errors: Errors::default(),
            ages: AgeCounters::default(),
            lateness: Lateness::default(),
            arrivals: Arrivals::default(),
            refused: Refused::default(),
            slowlog: SlowLog::default(),
            latency: Arc::default(),
            rates: Rates::new(Instant::now()),
            tracks_durations: AtomicBool::new(true),
            percentiles: RwLock::new(vec![50.0, 99.0, 99.9]),
        }
    }

    /// Notes a command that ran; `words` gives it as
    /// the slow log shows it.
    pub(crate) fn ran(
        &self,
        command: CommandId,
        words: impl FnOnce() -> Vec<Vec<u8>>,
        client: &ClientInfo,
        ran: Ran,
    ) {
        let duration_ns = nanoseconds(ran.took);
        if let Some(row) = self.commands.row(command) {
            row.ran(duration_ns, 1, ran.failed.into(), self.tracks());
        }
        let event = if command.is_fast {
            Event::FastCommand
        } else {
            Event::Command
        };
        self.latency.note(event, duration_ns);
        if self.slowlog.is_slow(duration_ns) {
            self.keep_slow(duration_ns, words(), client);
        }
    }

    /// Notes a command that was refused before it ran.
    #[cold]
    pub(crate) fn rejected(&self, command: CommandId) {
        if let Some(row) = self.commands.row(command) {
            row.rejected();
        }
    }

    /// Notes a group of samples. Its time is shared out evenly: commands that
    /// are applied together have none of their own.
    #[inline]
    pub(crate) fn ran_group(&self, work: GroupWork<'_>, client: &ClientInfo) {
        let commands = (work.adds + work.madds).max(1);
        let each_ns = work.duration_ns / commands;
        let tracked = self.tracks();
        let (add, madd) = (self.commands.add(), self.commands.madd());
        add.ran(each_ns * work.adds, work.adds, work.adds_failed, tracked);
        madd.ran(each_ns * work.madds, work.madds, 0, tracked);
        self.latency.note(Event::Command, work.duration_ns);
        if self.slowlog.is_slow(work.duration_ns) {
            self.keep_slow(work.duration_ns, group_words(&work), client);
        }
    }

    #[inline]
    fn tracks(&self) -> bool {
        self.tracks_durations.load(Ordering::Relaxed)
    }

    #[cold]
    fn keep_slow(&self, duration_ns: u64, words: Vec<Vec<u8>>, client: &ClientInfo) {
        self.slowlog.add(SlowEntry {
            id: 0,
            time_s: now_ms() / 1000,
            duration_us: i64::try_from(duration_ns / 1000).unwrap_or(i64::MAX),
            words,
            peer: client.peer.clone(),
            name: client.name(),
        });
    }

    /// Counts samples by their age.
    #[inline]
    pub(crate) fn note_ages(&self, batch: &[Append<'_>]) -> Arrival {
        let (mut ages, now_ms) = (Ages::default(), now_ms());
        for append in batch {
            ages.note(now_ms.saturating_sub(append.timestamp));
        }
        self.ages.add(&ages);
        self.arrivals.came(batch.len(), |at| {
            let append = &batch[at];
            (append.key, now_ms.saturating_sub(append.timestamp))
        });
        Arrival { ages, now_ms }
    }

    /// Counts the late ones of a batch that `client` sent.
    #[inline]
    pub(crate) fn note_late(
        &self,
        arrival: &Arrival,
        batch: &[Append<'_>],
        (scratch, db): (&Scratch, &Db),
        sender: Sender<'_>,
    ) {
        if scratch.late().is_empty() {
            return;
        }
        let origin = Origin {
            route: Route::Resp,
            address: sender.client.address(),
            user: sender.user,
        };
        let late = scratch.late().iter();
        let late = late.map(|one| (batch[one.index as usize].key, one.age_ms));
        self.lateness.late(&origin, arrival.now_ms, late.clone());
        self.lateness.late_by_label(db, arrival.now_ms, late);
    }

    /// Counts those that were accepted of all that arrived, and the late ones.
    #[inline]
    pub(crate) fn note_batch(
        &self,
        arrival: &Arrival,
        batch: &[Append<'_>],
        (scratch, db): (&Scratch, &Db),
        sender: Sender<'_>,
    ) {
        let accepted = scratch.outcomes().iter().filter(|outcome| outcome.is_ok());
        self.note_accepted(arrival, accepted.count() as u64);
        self.note_late(arrival, batch, (scratch, db), sender);
    }

    /// Counts how many of them were accepted.
    #[inline]
    pub(crate) fn note_accepted(&self, arrival: &Arrival, samples: u64) {
        let Arrival { ages, now_ms } = arrival;
        self.lateness.arrived(Route::Resp, samples, ages, *now_ms);
    }

    /// Sets all counters to zero. The slow log and the delays have resets of
    /// their own, as in Redis.
    pub(crate) fn reset(&self) {
        self.commands.reset();
        self.errors.reset();
        self.rates.reset(Instant::now());
    }
}

/// Random digits: each state has keys of its own, seeded by the system.
fn run_id() -> String {
    let digits: String = (0..3)
        .map(|_| format!("{:016x}", RandomState::new().build_hasher().finish()))
        .collect();
    digits[..40].to_owned()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How a group stands in the slow log.
fn group_words(work: &GroupWork<'_>) -> Vec<Vec<u8>> {
    let name: &[u8] = if work.adds > 0 { b"TS.ADD" } else { b"TS.MADD" };
    let mut words = vec![name.to_vec(), slowlog::cut(work.key)];
    let more = (work.adds + work.madds).saturating_sub(1);
    if more > 0 {
        let note = format!("... ({more} more commands of the pipeline, applied together)");
        words.push(note.into_bytes());
    }
    words
}
