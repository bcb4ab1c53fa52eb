//! Runs the commands that a connection's bytes hold.
//!
//! Bytes in, replies out, no sockets: [`Executor::run`] runs every whole
//! command at the start of a buffer and says how many bytes they were. It
//! stops early when more replies wait than a connection may leave unread, or when
//! its reads have taken as long as others should wait.

use super::group::Group;
use crate::client::{Beside, Session};
use crate::command::{self, Args, LOOP_SAMPLES_MAX};
use crate::messaging::{Publication, Why};
use crate::state::{ExecShared, Redirect, Shared};
use latewood_engine::Scratch;
use latewood_model::limits::{
    ARGUMENT_BYTES_MAX, COMMAND_ARGUMENTS_MAX, COMMAND_BYTES_MAX, INLINE_BYTES_MAX,
    REPLY_BACKLOG_BEFORE_LOGIN_BYTES, REPLY_BACKLOG_BYTES,
};
use latewood_wire::resp::{Limits, Parsed, Parser, ProtocolError, Reply};
use std::sync::atomic::Ordering;

const LIMITS: Limits = Limits {
    arguments_max: COMMAND_ARGUMENTS_MAX,
    argument_bytes_max: ARGUMENT_BYTES_MAX,
    command_bytes_max: COMMAND_BYTES_MAX,
    inline_bytes_max: INLINE_BYTES_MAX,
    authenticated: true,
};

/// The half of a connection that knows commands and not sockets.
#[derive(Debug)]
pub(super) struct Client {
    /// Its state.
    pub(super) session: Session,
    /// Replies, of which the first `sent` bytes are sent.
    pub(super) output: Vec<u8>,
    pub(super) sent: usize,
    /// Unread bytes past which commands wait.
    pub(super) backlog_max: usize,
    /// Messages that wait for the end of a long reply.
    pub(super) deferred: Vec<u8>,
    parser: Parser,
    /// Bytes that the command at the start of the input still lacks; 0 when
    /// no command has begun.
    pub(super) missing_bytes: usize,
    /// Whether whole commands may be left in the input.
    pub(super) has_more: bool,
}

/// Which of the commands that add samples take the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    /// None.
    Off,
    /// All: the user may add anywhere.
    All,
    /// Those that the user may run.
    Allowed,
}

/// What an event loop keeps between buffers to run commands without allocating.
#[derive(Default)]
pub(super) struct Executor {
    event_loop: usize,
    group: Group<'static>,
    scratch: Scratch,
}

impl Client {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session,
            output: Vec::new(),
            sent: 0,
            backlog_max: REPLY_BACKLOG_BYTES,
            deferred: Vec::new(),
            parser: Parser::new(),
            missing_bytes: 0,
            has_more: false,
        }
    }

    /// Writes what there is room for of a long reply; whether all of it is
    /// written, or the next part is made on a reader thread.
    #[inline]
    fn continue_stream(&mut self, shared: &Shared) -> bool {
        while self.session.long_reply.has_more() {
            if self.backlog() > REPLY_BACKLOG_BYTES {
                return false;
            }
            if self.session.long_reply.is_long() {
                self.session.continue_beside(shared);
            } else {
                let start = self.output.len();
                self.session.continue_stream(shared, &mut self.output);
                let out = &mut self.output;
                self.session
                    .answer_proven(shared, out, start, Beside::BEGUN);
            }
            self.end_reply();
        }
        true
    }

    /// Looks whether its wait is over; if so, writes its reply.
    pub(super) fn resume(&mut self, shared: &Shared, why: Why) {
        if self.session.resume(shared, &mut self.output, why) {
            self.has_more = true;
            self.end_reply();
        }
    }

    /// Ends its wait for samples, if it waits for some: it is told where they come.
    pub(super) fn end_wait_for_samples(&mut self, shared: &Shared, to: &Redirect) {
        if self
            .session
            .end_wait_for_samples(shared, &mut self.output, to)
        {
            self.has_more = true;
        }
    }

    /// Writes the messages that waited for the end of a long reply, if it is there.
    fn end_reply(&mut self) {
        if !self.session.is_amid_reply() {
            self.output.append(&mut self.deferred);
        }
    }

    /// Bytes of replies that are not sent. Messages behind a long reply do not
    /// count: they go only when that reply ends.
    pub(super) fn backlog(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Whether its commands wait until the peer has read some replies. A long
    /// reply is made as it is read.
    pub(super) fn is_full(&self) -> bool {
        let backlog_max = if self.session.long_reply.has_more() {
            REPLY_BACKLOG_BYTES
        } else if self.session.is_authenticated() {
            self.backlog_max
        } else {
            REPLY_BACKLOG_BEFORE_LOGIN_BYTES
        };
        self.backlog() > backlog_max
    }

    /// Appends a message to the replies, behind the end of the one that is
    /// being written.
    pub(super) fn deliver(&mut self, publication: &Publication) {
        let subscriptions = self.session.subscriptions();
        if subscriptions.is_some_and(|own| own.has(publication.kind, &publication.name)) {
            let out = if self.session.is_amid_reply() {
                &mut self.deferred
            } else {
                &mut self.output
            };
            publication.write(self.session.protocol(), out);
        }
    }

    /// The fast path leaves out what these states would change.
    #[inline]
    fn grouping(&self, shared: &Shared) -> Grouping {
        let session = &self.session;
        let may_group = session.is_authenticated()
            && session.replies.are_on()
            && !session.in_multi()
            && session.subscriptions().is_none()
            && shared.allows_fast_path();
        match (may_group, session.user().adds_anywhere) {
            (false, _) => Grouping::Off,
            (true, true) => Grouping::All,
            (true, false) => Grouping::Allowed,
        }
    }
}

impl Executor {
    /// For loop number `event_loop`.
    pub(super) fn new(event_loop: usize) -> Self {
        Self {
            event_loop,
            ..Self::default()
        }
    }

    /// Runs the whole commands at the start of `input`; their bytes.
    pub(super) fn run(&mut self, shared: &Shared, client: &mut Client, input: &[u8]) -> usize {
        let mut group: Group<'_> = std::mem::take(&mut self.group);
        let mut at = 0;
        let mut shared_lock = None;
        client.has_more = false;
        client.session.begin_round(shared);
        let mut grouping = Grouping::Off;
        loop {
            // The parts of a long reply are read between EXECs like all else.
            if shared.exec_lock.is_wanted() {
                at -= self.apply(&mut group, shared, client);
                shared_lock = None;
            }
            if shared_lock.is_none() {
                shared_lock = Some(shared.exec_lock.share(self.event_loop));
                // With the exec lock held, or a pause could begin in between.
                grouping = client.grouping(shared);
            }
            if !client.continue_stream(shared) {
                client.has_more = true;
                break;
            }
            let session = &client.session;
            if session.is_closing() || session.is_waiting() || at == input.len() {
                break;
            }
            // After as much as one read may take, it is the turn of others.
            if client.is_full() || client.session.round_samples() > LOOP_SAMPLES_MAX {
                client.has_more = true;
                break;
            }
            let rest = &input[at..];
            group.begin(shared);
            if grouping != Grouping::Off
                && client.missing_bytes == 0
                && let Some(bytes) = group.take(
                    rest,
                    (grouping == Grouping::Allowed).then(|| client.session.user()),
                )
            {
                at += bytes;
                if group.is_full() {
                    at -= self.apply(&mut group, shared, client);
                }
                continue;
            }
            at -= self.apply(&mut group, shared, client);
            if client.session.is_waiting() {
                break;
            }
            client
                .session
                .timing
                .begin(std::mem::take(&mut group.timer));
            match next(shared, client, rest, &mut shared_lock) {
                Some(bytes) => at += bytes,
                None => break,
            }
            grouping = client.grouping(shared);
        }
        at -= self.apply(&mut group, shared, client);
        self.group = group.recycle();
        at
    }

    /// Applies the group. Returns the bytes of its commands if these are held back instead, to be
    /// run later.
    #[inline]
    fn apply(&mut self, group: &mut Group<'_>, shared: &Shared, client: &mut Client) -> usize {
        group.apply(
            shared,
            &mut client.session,
            &mut self.scratch,
            &mut client.output,
        )
    }
}

/// Runs the command at the start of `input`; its bytes, or `None` when it is
/// not whole, the connection must close or the command must wait.
fn next<'a>(
    shared: &'a Shared,
    client: &mut Client,
    input: &[u8],
    shared_lock: &mut Option<ExecShared<'a>>,
) -> Option<usize> {
    let limits = if client.session.is_authenticated() {
        LIMITS
    } else {
        LIMITS.before_authentication()
    };
    client.missing_bytes = 0;
    match client.parser.parse(input, &limits) {
        Ok(Parsed::Command { consumed }) => {
            let args = Args::new(client.parser.command(), input);
            let is_exclusive = runs_exclusive(&client.session, &args);
            if is_exclusive && command::exec_awaits_rows(shared, &mut client.session) {
                return None;
            }
            let _exclusive = is_exclusive.then(|| {
                *shared_lock = None;
                shared.exec_lock.exclude()
            });
            command::execute(shared, &mut client.session, args, &mut client.output);
            client.session.timing.end();
            if client.session.is_held_back() {
                return None;
            }
            shared.counters.commands.fetch_add(1, Ordering::Relaxed);
            Some(consumed)
        }
        Ok(Parsed::Empty { consumed }) => Some(consumed),
        Ok(Parsed::Incomplete { missing }) => {
            client.missing_bytes = missing;
            None
        }
        Err(error) => {
            refuse(client, error);
            None
        }
    }
}

/// Whether a command runs while no other does: EXEC, and CLIENT PAUSE, so that
/// it is answered once no write is under way that has not met it.
fn runs_exclusive(session: &Session, args: &Args<'_>) -> bool {
    (session.in_multi() && args.is(0, "EXEC"))
        || (args.len() > 1 && args.is(0, "CLIENT") && args.is(1, "PAUSE"))
}

#[cold]
fn refuse(client: &mut Client, error: ProtocolError) {
    client.session.close();
    let peer = &client.session.info.peer;
    if error == ProtocolError::Http {
        tracing::warn!(
            peer,
            "closed a connection that spoke HTTP to the Redis port"
        );
        return;
    }
    tracing::debug!(peer, %error, "closed a connection after a protocol error");
    Reply::new(&mut client.output, client.session.protocol()).error(error.to_string());
}
