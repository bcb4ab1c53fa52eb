//! Samples on their way from the read buffer to the engine, many at a time.
//!
//! A group holds the samples of consecutive TS.ADD and TS.MADD commands of one
//! connection, borrowing their keys from its read buffer, and beside them the
//! shape of the replies. It is applied with one call of the engine when
//! another command comes, when the buffer ends or when it is full; then the
//! replies are written in the order of the commands. A command that its user
//! may not run is such another one. A group that needs rows of parked series is held back as a
//! whole, and its commands are read again. The outcome is that of running the commands
//! one by one; `tests/resp/fast_path.rs` compares the two.

use super::fast::{self, Fast, Words};
use crate::acl::User;
use crate::base::clock::now_ms;
use crate::base::slot::slot_of;
use crate::base::time_limits::TimeLimits;
use crate::client::Session;
use crate::command::{engine_text, lost, refusal_text, sample};
use crate::messaging::{ADD_EVENT, Class};
use crate::observe::GroupWork;
use crate::state::Shared;
use latewood_engine::{Append, Create, Position, Result, Scratch, Stage, Timer};
use latewood_model::limits::APPEND_BATCH_MAX;
use latewood_wire::resp::Reply;
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// One piece of the replies of a group.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The header of a TS.MADD reply, with the number of samples.
    Array(u32),
    /// The outcome of the next sample, which is all of a TS.ADD.
    Add,
    /// The outcome of the next sample, which is one of a TS.MADD.
    Item,
}

/// Samples that were read and not yet applied.
#[derive(Debug, Default)]
pub(super) struct Group<'a> {
    appends: Vec<Append<'a>>,
    steps: Vec<Step>,
    /// All commands of the group.
    commands: u64,
    /// Those that are TS.MADD.
    madds: u64,
    /// The bytes of all of them.
    bytes: usize,
    /// The next command has no room in it.
    is_cut: bool,
    /// Timestamps beyond them are left to the commands, which refuse them.
    limits: TimeLimits,
    /// Times the group stage by stage, if it is one of those that are timed.
    pub(super) timer: Timer,
}

impl<'a> Group<'a> {
    /// Says that the next command may be the first of the group: whether it is
    /// timed is decided before it is parsed.
    #[inline]
    pub(super) fn begin(&mut self, shared: &Shared) {
        if self.steps.is_empty() {
            self.limits = shared.settings.time_limits;
            self.timer = shared.db.stages().due();
        }
    }

    /// Takes the command at the start of `buffer` into the group; its length
    /// in bytes, or `None` if it is not one for a group, or not one that `user`
    /// may run. Without a user all are allowed. A command that has no room makes the group full, and
    /// nothing of it is taken.
    #[inline]
    pub(super) fn take(&mut self, buffer: &'a [u8], user: Option<&User>) -> Option<usize> {
        let mut words = Words::new(buffer);
        match words.command()? {
            Fast::Add {
                key,
                timestamp,
                value,
                on_duplicate,
                labels,
            } => {
                let (timestamp, value) = self.sample(timestamp, value)?;
                if user.is_some_and(|user| !user.may_run_add(key)) {
                    return None;
                }
                self.steps.push(Step::Add);
                self.appends.push(Append {
                    key,
                    timestamp,
                    value,
                    on_duplicate,
                    create: match labels {
                        Some(encoded) => Create::Labelled(encoded, fast::labels),
                        None => Create::Defaults,
                    },
                });
            }
            Fast::Madd(samples) if samples > self.room() && !self.appends.is_empty() => {
                self.is_cut = true;
                return Some(0);
            }
            Fast::Madd(samples) => {
                self.take_samples(&mut words, samples, user)?;
                self.madds += 1;
            }
        }
        self.commands += 1;
        let bytes = buffer.len() - words.len_bytes();
        self.bytes += bytes;
        Some(bytes)
    }

    /// How many samples it takes yet.
    fn room(&self) -> usize {
        APPEND_BATCH_MAX.saturating_sub(self.appends.len())
    }

    /// Reads a sample that is not refused for its words or its time.
    #[inline]
    fn sample(&self, timestamp: &[u8], value: &[u8]) -> Option<(i64, f64)> {
        let sample = sample(timestamp, value, now_ms).ok()?;
        self.limits.admits(sample.0, now_ms).then_some(sample)
    }

    /// Takes the samples of a TS.MADD, all or none.
    fn take_samples(
        &mut self,
        words: &mut Words<'a>,
        samples: usize,
        user: Option<&User>,
    ) -> Option<()> {
        if samples > APPEND_BATCH_MAX {
            return None;
        }
        let (appends, steps) = (self.appends.len(), self.steps.len());
        let taken = self.read_samples(words, samples).filter(|()| {
            let keys = self.appends[appends..].iter().map(|append| append.key);
            user.is_none_or(|user| user.may_run_madd(keys))
        });
        if taken.is_none() {
            self.appends.truncate(appends);
            self.steps.truncate(steps);
        }
        taken
    }

    /// Takes those in front of the first that cannot be read; whether that is
    /// all of them.
    fn read_samples(&mut self, words: &mut Words<'a>, samples: usize) -> Option<()> {
        self.steps.push(Step::Array(u32::try_from(samples).ok()?));
        for _ in 0..samples {
            let (key, timestamp, value) = words.sample()?;
            let (timestamp, value) = self.sample(timestamp, value)?;
            self.steps.push(Step::Item);
            self.appends.push(Append {
                key,
                timestamp,
                value,
                on_duplicate: None,
                create: Create::Never,
            });
        }
        Some(())
    }

    /// Whether it is time to apply the group.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.is_cut || self.room() == 0 || self.steps.len() >= 2 * APPEND_BATCH_MAX
    }

    /// Applies the samples, writes the replies and empties the group. Returns the bytes of its commands
    /// if these are held back, because rows of parked series are not at hand: then nothing is done.
    #[inline]
    pub(super) fn apply(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> usize {
        if self.steps.is_empty() {
            return 0;
        }
        let is_madd = self
            .appends
            .last()
            .map(|last| matches!(last.create, Create::Never));
        session.info.figures.set_fast_command(is_madd);
        self.timer.end_for(Stage::Parse, self.appends.len());
        scratch.lend(std::mem::take(&mut self.timer));
        let begun = Instant::now();
        scratch.leave_rows(session.may_hold_back());
        let appended = shared.db.append(&self.appends, scratch);
        if session.hold_back(shared, scratch.away()) {
            scratch.give_back();
            return self.clear();
        }
        let adds_failed = self.answer(shared, session, (appended, scratch), out);
        self.count(shared, session, begun, adds_failed);
        scratch.give_back().end_for(Stage::Reply, 0);
        self.clear();
        0
    }

    /// Writes the replies to what was `appended`, and notes how it went. Returns how many TS.ADD
    /// failed.
    #[inline]
    fn answer(
        &self,
        shared: &Shared,
        session: &mut Session,
        (appended, scratch): (Result<Position>, &mut Scratch),
        out: &mut Vec<u8>,
    ) -> u64 {
        let mut replies = Replies {
            steps: self.steps.iter(),
            reply: Reply::new(out, session.protocol()),
            adds_failed: 0,
        };
        let (batch, mut refused) = (&self.appends, 0);
        let arrival = shared.observe.note_ages(batch);
        let accepted = match appended {
            Ok(position) => {
                session.wrote(position);
                let sender = session.sender();
                shared
                    .observe
                    .note_late(&arrival, batch, (scratch, &shared.db), sender);
                if shared.events.is_listening() {
                    tell(shared, batch);
                }
                for (append, outcome) in batch.iter().zip(scratch.outcomes()) {
                    match outcome {
                        Ok(timestamp) => replies.next().integer(*timestamp),
                        Err(refusal) => {
                            replies.refuse(&refusal_text(refusal, append.key, &shared.db));
                            refused += 1;
                        }
                    }
                }
                batch.len() as u64 - refused
            }
            Err(error) => {
                let lost = lost(shared, &error, slot_of(batch[0].key), false);
                let text = lost.map_or_else(|| engine_text(&error), Cow::Owned);
                batch.iter().for_each(|_| replies.refuse(&text));
                shared.observe.errors.note(&text, batch.len() as u64);
                0
            }
        };
        scratch.timer().end_for(Stage::Reply, batch.len());
        shared.observe.note_accepted(&arrival, accepted);
        replies.skip_to_sample();
        note_refused(shared, refused);
        replies.adds_failed
    }

    /// Empties it; the bytes of its commands.
    fn clear(&mut self) -> usize {
        self.commands = 0;
        self.madds = 0;
        self.is_cut = false;
        self.appends.clear();
        self.steps.clear();
        std::mem::take(&mut self.bytes)
    }

    /// Counts the commands, of which `adds_failed` failed, since `begun`.
    fn count(&self, shared: &Shared, session: &Session, begun: Instant, adds_failed: u64) {
        let commands = &shared.counters.commands;
        commands.fetch_add(self.commands, Ordering::Relaxed);
        let work = GroupWork {
            adds: self.commands - self.madds,
            adds_failed,
            madds: self.madds,
            key: self.appends.first().map_or(&[], |append| append.key),
            duration_ns: begun.elapsed().as_nanos() as u64,
        };
        shared.observe.ran_group(work, &session.info);
    }

    /// The same memory, empty, for a buffer of another life.
    pub(super) fn recycle<'b>(mut self) -> Group<'b> {
        self.clear();
        Group {
            // Collecting a vector's own iterator into items of the same size
            // keeps its memory; there are no items to convert.
            appends: self
                .appends
                .into_iter()
                .map_while(|_| None::<Append<'b>>)
                .collect(),
            steps: self.steps,
            commands: 0,
            madds: 0,
            bytes: 0,
            is_cut: false,
            limits: self.limits,
            timer: Timer::default(),
        }
    }
}

/// Counts samples of whose refusals the texts all begin alike.
fn note_refused(shared: &Shared, refused: u64) {
    if refused > 0 {
        shared.observe.errors.note("ERR", refused);
    }
}

/// Tells of the samples of a batch, refused ones too, as RedisTimeSeries does.
#[cold]
fn tell(shared: &Shared, batch: &[Append<'_>]) {
    for append in batch {
        shared.changed(Class::Module, ADD_EVENT, append.key);
    }
}

/// The replies of a group being written, and how many of them are errors.
struct Replies<'a> {
    steps: std::slice::Iter<'a, Step>,
    reply: Reply<'a>,
    adds_failed: u64,
}

impl<'a> Replies<'a> {
    /// Where the reply to the next sample goes.
    #[inline]
    fn next(&mut self) -> &mut Reply<'a> {
        self.skip_to_sample();
        &mut self.reply
    }

    /// Answers the next sample with an error.
    fn refuse(&mut self, text: &str) {
        let is_add = self.skip_to_sample();
        self.adds_failed += u64::from(is_add);
        self.reply.error(text);
    }

    /// Writes steps up to and without the next sample, whose step is passed
    /// over; whether it is a whole TS.ADD.
    #[inline]
    fn skip_to_sample(&mut self) -> bool {
        for step in self.steps.by_ref() {
            match step {
                Step::Add => return true,
                Step::Item => return false,
                Step::Array(samples) => self.reply.array(*samples as usize),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycling_keeps_the_memory() {
        let mut group = Group::default();
        let buffer = b"*4\r\n$6\r\nTS.ADD\r\n$1\r\nk\r\n$1\r\n1\r\n$1\r\n2\r\n".to_vec();
        for _ in 0..100 {
            assert_eq!(group.take(&buffer, None), Some(buffer.len()));
        }
        let before = group.appends.capacity();
        assert!(before >= 100);
        let recycled: Group<'static> = group.recycle();
        assert_eq!(recycled.appends.capacity(), before);
        assert!(recycled.appends.is_empty() && recycled.steps.is_empty());
    }

    #[test]
    fn a_madd_that_has_no_room_is_for_the_next_group() {
        let samples = "$1\r\nk\r\n$1\r\n1\r\n$1\r\n2\r\n".repeat(3000);
        let buffer = format!("*9001\r\n$7\r\nTS.MADD\r\n{samples}").into_bytes();
        let mut group = Group::default();
        assert_eq!(group.take(&buffer, None), Some(buffer.len()));
        assert!(!group.is_full());
        assert_eq!(group.take(&buffer, None), Some(0));
        assert!(group.is_full());
        assert_eq!(group.clear(), buffer.len());
        assert!(!group.is_full());
        assert_eq!(group.take(&buffer, None), Some(buffer.len()));
    }

    #[test]
    fn half_a_madd_leaves_nothing_behind() {
        let buffer = b"*4\r\n$7\r\nTS.MADD\r\n$1\r\nk\r\n$1\r\n1\r\n$1\r\n2\r\n".to_vec();
        let mut group = Group::default();
        assert_eq!(group.take(&buffer[..buffer.len() - 1], None), None);
        assert!(group.appends.is_empty() && group.steps.is_empty());
        assert_eq!(group.take(&buffer, None), Some(buffer.len()));
        assert_eq!((group.appends.len(), group.steps.len()), (1, 2));
    }
}
