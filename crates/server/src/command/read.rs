//! `TS.READ key timestamp|-|+|$ [BLOCK milliseconds min-count] [MAX_COUNT n]`
//! gives the samples from a cursor on: `-` all, `+` from the newest on, `$`
//! those that are newer. Reply: an array of samples.
//!
//! With BLOCK it waits until there are `min-count` of them, for ever with 0
//! milliseconds; when the time is up, or the key goes away, it answers what
//! there is. The cursor is fixed when the command comes in. A key that is not
//! there has no samples.
//!
//! A follower wakes who waits as it applies the log (`Events::of_follower`). Who waits at a node that
//! may not answer any more is sent on within a second (`net/connection.rs`).

use super::args::Args;
use super::call::{Call, Outcome};
use super::fault::Fault;
use super::roles;
use super::rows::{self, Shape};
use super::spec::{Keys, Spec};
use super::work;
use crate::acl::{Denied, Refusal};
use crate::client::{Arrived, Beside, BlockedCommand, Part, Session, What};
use crate::messaging::{Listener, Why};
use crate::observe::CommandId;
use crate::state::Shared;
use latewood_engine::query::{Aggregation, BucketStamp, RangeQuery, Sink};
use latewood_engine::{ErrorKind, View};
use latewood_model::Aggregator;
use latewood_wire::resp::Reply;
use latewood_wire::resp::number::{parse_i64, parse_timestamp};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["readonly", "module", "blocking"])
    .named("ts.read", apply)
    .words(
        -3,
        "key timestamp|-|+|$ [BLOCK milliseconds min-count] [MAX_COUNT n]",
    )
    .keys(Keys::ONE)
    .about("Read: return up to max_count samples with timestamp >= timestamp. With BLOCK, waits up to milliseconds ms until at least min_count qualifying samples exist");

/// What a client is told whose wait CLIENT UNBLOCK ERROR ended.
pub(super) const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// Samples that are counted one by one at every look; of more, whole frames are
/// counted by what they say of themselves.
const COUNTED_SINGLY_MAX: u64 = 4096;

/// A read that waits for samples.
#[derive(Clone, Debug)]
struct SampleReader {
    key: Box<[u8]>,
    query: RangeQuery,
    min_count: u64,
    /// The command, for its figures.
    command: Option<CommandId>,
    /// The key was there when it was last looked at.
    was_there: bool,
    listener: Arc<Listener>,
}

/// The words behind the cursor.
#[derive(Default)]
struct ReadOptions {
    /// Milliseconds and samples to wait for.
    block: Option<(u64, u64)>,
    max_count: Option<u64>,
}

fn apply(call: &mut Call<'_>) -> Outcome {
    let options = parse(call.args)?;
    let (key, word) = (call.args.word(1), call.args.word(2));
    let is_timestamp = parse_timestamp(word).is_some() || [&b"-"[..], b"+", b"$"].contains(&word);
    if !is_timestamp {
        return Fault::refuse("TSDB: invalid timestamp");
    }
    let from = cursor(call.shared, key, word)?;
    let query = RangeQuery {
        from: from.unwrap_or(i64::MAX),
        // Nothing lies past the end of time.
        to: from.map_or(i64::MIN, |_| i64::MAX),
        count: options.max_count,
        ..RangeQuery::default()
    };
    let Some((block_ms, min_count)) = options.block else {
        return answer(call, key, query);
    };
    let reader = SampleReader {
        key: key.into(),
        query,
        min_count,
        command: call.commands.find(SPEC.name.as_bytes()).map(Spec::id),
        was_there: false,
        listener: Arc::new(Listener::of_reader(Arc::clone(&call.session.info))),
    };
    block(call, reader, block_ms)
}

/// Answers at once where that can be done; otherwise waits.
fn block(call: &mut Call<'_>, mut reader: SampleReader, block_ms: u64) -> Outcome {
    if call.session.in_exec() {
        return Fault::refuse(
            "TSDB: blocking TS.READ (with BLOCK) is not allowed inside MULTI, EVAL, or a \
             deny-blocking context",
        );
    }
    let shared = call.shared;
    // From here on nothing is missed that the look below does not see.
    shared.events.listen(&reader.key, &reader.listener);
    reader.was_there = shared.db.contains(&reader.key);
    let found = reader.has_enough(shared);
    if !matches!(found, Ok(false)) {
        reader.forget(shared);
        found?;
        return answer(call, &reader.key, reader.query);
    }
    if let Err(over) = call.session.hold(shared, reader.held_bytes()) {
        reader.forget(shared);
        return Err(over.into());
    }
    let what = What::Command(Box::new(reader));
    call.session.wait(shared, deadline(block_ms), what);
    Ok(())
}

/// When a wait of `wait_ms` milliseconds is over: never for 0, and for more than
/// the clock can hold.
pub(super) fn deadline(wait_ms: u64) -> Option<Instant> {
    let deadline = Instant::now().checked_add(Duration::from_millis(wait_ms));
    deadline.filter(|_| wait_ms > 0)
}

/// Each option is found by a scan over the words, and no word may be left over.
fn parse(args: Args<'_>) -> Result<ReadOptions, Fault> {
    let number = |at: usize| args.get(at).and_then(parse_i64);
    let (block, max_count) = (args.find("BLOCK", 3), args.find("MAX_COUNT", 3));
    let words = 3 + block.map_or(0, |_| 3) + max_count.map_or(0, |_| 2);
    if args.len() != words {
        return Err(Fault::Arity);
    }
    let mut options = ReadOptions::default();
    if let Some(at) = block {
        let wait = number(at + 1).and_then(|wait| u64::try_from(wait).ok());
        let (wait, count) = wait.zip(number(at + 2)).ok_or(Fault::line(
            "TSDB: BLOCK milliseconds must be a non-negative integer",
        ))?;
        let count = positive(Some(count)).ok_or(Fault::line(
            "TSDB: BLOCK min_count must be a positive integer",
        ))?;
        options.block = Some((wait, count));
    }
    if let Some(at) = max_count {
        let count = positive(number(at + 1))
            .ok_or(Fault::line("TSDB: MAX_COUNT must be a positive integer"))?;
        options.max_count = Some(count);
    }
    match (options.block, options.max_count) {
        (Some((_, min)), Some(max)) if min > max => {
            Fault::refuse("TSDB: BLOCK min_count must be <= MAX_COUNT")
        }
        _ => Ok(options),
    }
}

fn positive(number: Option<i64>) -> Option<u64> {
    number
        .and_then(|number| u64::try_from(number).ok())
        .filter(|number| *number > 0)
}

/// The oldest timestamp asked for; `None` where it lies past the end of time.
fn cursor(shared: &Shared, key: &[u8], word: &[u8]) -> Result<Option<i64>, Fault> {
    if let Some(timestamp) = parse_timestamp(word) {
        return Ok(Some(timestamp));
    }
    if word == b"-" {
        return Ok(Some(0));
    }
    let last = match shared.db.last_sample(key) {
        Ok(last) => last.map(|sample| sample.timestamp),
        Err(error) if error.kind() == ErrorKind::NoSuchKey => None,
        Err(error) => return Err(error.into()),
    };
    let beyond = i64::from(word == b"$");
    Ok(last.map_or(Some(0), |last| last.checked_add(beyond)))
}

/// Answers with the samples that there are.
fn answer(call: &mut Call<'_>, key: &[u8], query: RangeQuery) -> Outcome {
    let view = match call.shared.db.view(key, &query) {
        Err(error) if error.kind() == ErrorKind::NoSuchKey => {
            call.reply().array(0);
            return Ok(());
        }
        view => view?,
    };
    call.finish(work::of_view(&query, &view), move |call| {
        let part = call.part();
        rows::of_view(call.out, part, Shape::Flat, &query, view)
    })
}

/// The same at the end of a wait, where an error is a reply too.
fn write(part: Part<'_>, view: View, query: &RangeQuery, out: &mut Vec<u8>) {
    let start = out.len();
    let written = rows::of_view(out, part, Shape::Flat, query, view);
    if let Err(fault) = written {
        out.truncate(start);
        Reply::new(out, part.protocol).error(&*fault.text("ts.read"));
    }
}

impl BlockedCommand for SampleReader {
    fn resume(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        out: &mut Vec<u8>,
        why: Why,
    ) -> bool {
        let protocol = session.protocol();
        if why == Why::Refused {
            Reply::new(out, protocol).error(UNBLOCKED);
            return true;
        }
        if why == Why::News && !self.is_answered(shared) {
            return false;
        }
        if why != Why::Unblocked && !session.info.figures.claim_unblock() {
            // CLIENT UNBLOCK was first; its letter is on the way.
            return false;
        }
        // What it may has perhaps changed since it began to wait.
        if !self.refused(shared, session, out) {
            self.write(shared, session, out);
        }
        true
    }

    fn forget(&self, shared: &Shared) {
        shared.events.unlisten(&self.key, &self.listener);
    }

    fn is_read(&self) -> bool {
        true
    }

    /// Its key, here and in the table of listeners.
    fn held_bytes(&self) -> usize {
        2 * self.key.len() + size_of::<Self>()
    }
}

impl SampleReader {
    /// Answers at the end of the wait, here or on a reader thread.
    fn write(&self, shared: &Shared, session: &mut Session, out: &mut Vec<u8>) {
        let protocol = session.protocol();
        let view = match shared.db.view(&self.key, &self.query) {
            Err(error) if error.kind() == ErrorKind::NoSuchKey => {
                return Reply::new(out, protocol).array(0);
            }
            Err(error) => {
                let lost = roles::lost(shared, &error, session.slot(), false);
                let text = lost.unwrap_or_else(|| Fault::from(error).text("ts.read").into_owned());
                return Reply::new(out, protocol).error(text);
            }
            Ok(view) => view,
        };
        let about = work::of_view(&self.query, &view);
        if about <= work::LOOP_SAMPLES_MAX {
            let part = Part::new(shared, protocol, None);
            return write(part, view, &self.query, out);
        }
        let (reader, mut beside) = (self.clone(), session.of_reader());
        let kind = Beside {
            is_brief: work::is_brief(about),
            ..Beside::READ
        };
        session.read_beside(shared, kind, 0, move |shared, cancelled| {
            let mut arrived = Arrived::default();
            let out = &mut arrived.bytes;
            beside.renew_permit(shared);
            if !reader.refused(shared, &beside, out) {
                let part = Part::new(shared, protocol, Some(cancelled));
                write(part, view, &reader.query, out);
            }
            arrived
        });
    }

    /// Whether the session's user may not read the key; then says so.
    fn refused(&self, shared: &Shared, session: &Session, out: &mut Vec<u8>) -> bool {
        let user = session.user();
        if user.may_read("ts.read", &self.key) {
            return false;
        }
        let refusal = Refusal {
            what: Denied::Key,
            object: self.key.to_vec(),
        };
        let text = refusal.text(&user.name);
        if let Some(command) = self.command {
            shared.observe.rejected(command);
        }
        shared.observe.errors.note(&text, 1);
        Reply::new(out, session.protocol()).error(text);
        true
    }

    /// Whether a change ends the wait: enough samples, a key that is gone, or
    /// a failure to be told.
    fn is_answered(&mut self, shared: &Shared) -> bool {
        self.listener.take();
        let was_there = self.was_there;
        self.was_there = shared.db.contains(&self.key);
        (was_there && !self.was_there) || !matches!(self.has_enough(shared), Ok(false))
    }

    /// Whether the samples it waits for are there.
    fn has_enough(&self, shared: &Shared) -> Result<bool, Fault> {
        let by_rows = self.min_count <= COUNTED_SINGLY_MAX;
        let mut counted = Counted {
            samples: 0,
            by_rows,
        };
        let query = if by_rows {
            RangeQuery {
                count: Some(self.min_count),
                ..self.query.clone()
            }
        } else {
            RangeQuery {
                count: None,
                aggregation: Some(all_in_one()),
                ..self.query.clone()
            }
        };
        match shared.db.range(&self.key, &query, &mut counted) {
            Ok(()) => Ok(counted.samples >= self.min_count),
            Err(error) if error.kind() == ErrorKind::NoSuchKey => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// How many samples there are, as one row or two.
fn all_in_one() -> Aggregation {
    Aggregation {
        aggregators: vec![Aggregator::CountAll],
        bucket_ms: i64::MAX,
        align: 0,
        stamp: BucketStamp::Start,
        empty: false,
    }
}

/// Counts samples: the value of each row, or one for each row.
struct Counted {
    samples: u64,
    by_rows: bool,
}

impl Sink for Counted {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        self.samples += if self.by_rows {
            timestamps.len() as u64
        } else {
            values.iter().sum::<f64>() as u64
        };
        ControlFlow::Continue(())
    }
}
