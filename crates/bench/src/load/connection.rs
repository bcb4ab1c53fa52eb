//! One connection of the load generator: a small machine between "batch to send" and
//! "all replies read".

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Instant;

use hdrhistogram::Histogram;
use latewood_tls::{Duplex, Stream};
use latewood_wire::resp::{ReplyKind, skip_reply};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::{LATENCY_MAX_NS, Run, Source, Tally};
use crate::base::address::Address;
use crate::base::error::{Doing, Error, Result};

/// Bytes asked from the kernel at once; the replies of thousands of commands.
const READ_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Connection<S> {
    pub(crate) source: S,
    socket: Box<dyn Duplex>,
    descriptor: RawFd,
    out: Vec<u8>,
    sent_bytes: usize,
    input: Vec<u8>,
    /// Bytes at the start of `input` that hold the beginning of a reply.
    held_bytes: usize,
    /// Commands of the batch under way, and how many of them have no reply yet.
    batch: usize,
    outstanding: usize,
    began: Instant,
    idle_since: Instant,
    due: Option<Instant>,
    finished: bool,
    errors: Tally,
}

/// Where a connection stands.
#[derive(Debug)]
pub(crate) enum State {
    Waiting,
    Finished,
    Lost(String),
}

impl<S: Source> Connection<S> {
    pub(crate) fn open(address: &Address, source: S) -> Result<Self> {
        let (stream, session) = address.agree()?;
        stream.set_nonblocking(true).doing("prepare a connection")?;
        Ok(Connection {
            source,
            descriptor: stream.as_raw_fd(),
            socket: match session {
                Some(session) => Box::new(Stream::client(stream, session)),
                None => Box::new(stream),
            },
            out: Vec::new(),
            sent_bytes: 0,
            input: vec![0; READ_BYTES],
            held_bytes: 0,
            batch: 0,
            outstanding: 0,
            began: Instant::now(),
            idle_since: Instant::now(),
            due: None,
            finished: false,
            errors: Tally::default(),
        })
    }

    /// Joins an event loop at the start of a run.
    pub(crate) fn register(&mut self, registry: &Registry, at: usize, run: Run<'_>) -> Result<()> {
        self.finished = false;
        // Spread over one interval: the golden ratio does that for any number of connections.
        let share = (at as f64 * 0.618_034).fract();
        self.due = Some(Instant::now() + run.between.unwrap_or_default().mul_f64(share));
        let interest = Interest::READABLE | Interest::WRITABLE;
        let mut socket = SourceFd(&self.descriptor);
        let registered = registry.register(&mut socket, Token(at), interest);
        registered.doing("watch a connection")
    }

    /// Leaves the event loop and hands over the errors counted in this run.
    pub(crate) fn deregister(&mut self, registry: &Registry) -> Tally {
        // The event loop ends with the run; a socket that cannot be removed goes with it.
        let _ = registry.deregister(&mut SourceFd(&self.descriptor));
        std::mem::take(&mut self.errors)
    }

    /// When the next batch may go, if the connection waits for that.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| self.outstanding == 0 && !self.finished)
    }

    /// Does all that can be done without waiting: takes the replies that are there and, when the
    /// batch is complete, sends the next.
    pub(crate) fn advance(
        &mut self,
        run: Run<'_>,
        latencies_ns: &mut Histogram<u64>,
    ) -> Result<State> {
        if self.outstanding > 0 {
            if let Some(why) = self.exchange(run)? {
                return Ok(State::Lost(why));
            }
            if self.outstanding > 0 {
                return Ok(State::Waiting);
            }
            self.idle_since = Instant::now();
            let took = (self.idle_since - self.began).as_nanos();
            let took = u64::try_from(took).map_or(LATENCY_MAX_NS, |ns| ns.clamp(1, LATENCY_MAX_NS));
            latencies_ns.saturating_record_n(took, self.batch as u64);
        }
        if self.finished || !self.begin_batch(run) {
            return Ok(State::Waiting);
        }
        if self.batch == 0 {
            self.finished = true;
            return Ok(State::Finished);
        }
        // Nothing can have come back yet: reading now would be a wasted call.
        Ok(match self.write() {
            Ok(()) => State::Waiting,
            Err(error) => State::Lost(error.to_string()),
        })
    }

    /// Puts the next batch together if its time has come; an empty one if the source is empty.
    fn begin_batch(&mut self, run: Run<'_>) -> bool {
        let now = Instant::now();
        let due = self.due.unwrap_or(now);
        if run.between.is_some() && due > now {
            return false;
        }
        let was_busy = run.between.is_some() && self.idle_since > due;
        self.began = if was_busy { due } else { now };
        self.due = Some(due + run.between.unwrap_or_default());
        self.out.clear();
        self.sent_bytes = 0;
        self.batch = self.source.fill(&mut self.out, run.pipeline);
        self.outstanding = self.batch;
        true
    }

    /// Writes what is left of the batch and reads the replies that are there. Returns why the
    /// connection is lost if it is.
    fn exchange(&mut self, run: Run<'_>) -> Result<Option<String>> {
        if let Err(error) = self.write() {
            return Ok(Some(error.to_string()));
        }
        loop {
            let room = &mut self.input[self.held_bytes..];
            let asked = room.len();
            let got = match self.socket.read(room) {
                Ok(0) => return Ok(Some("the server closed a connection".into())),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Some(error.to_string())),
            };
            let answered = self.take_replies(got)?;
            run.answered.fetch_add(answered, Ordering::Relaxed);
            // A short read has emptied the socket: the next reply will wake us again.
            if got < asked {
                return Ok(None);
            }
        }
    }

    fn write(&mut self) -> std::io::Result<()> {
        while self.sent_bytes < self.out.len() {
            match self.socket.write(&self.out[self.sent_bytes..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => self.sent_bytes += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // TLS sends what it took and there was no room for.
        match self.socket.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Counts the whole replies in the input, of which `got` bytes are new.
    fn take_replies(&mut self, got: usize) -> Result<u64> {
        let end = self.held_bytes + got;
        let (mut at, mut count) = (0, 0);
        while let Some((len, kind)) = skip_reply(&self.input[at..end])? {
            if kind == ReplyKind::Error {
                self.errors.count(&self.input[at..at + len]);
            }
            at += len;
            count += 1;
        }
        if count > self.outstanding {
            return Err(Error::new("the server sent more replies than commands"));
        }
        self.outstanding -= count;
        self.source.answered(count);
        self.input.copy_within(at..end, 0);
        self.held_bytes = end - at;
        if self.held_bytes == self.input.len() {
            return Err(Error::new("the server sent a reply longer than 64 KiB"));
        }
        Ok(count as u64)
    }
}
