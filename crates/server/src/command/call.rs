//! One command on its way through the server.

use super::args::Args;
use super::fault::Fault;
use super::spec::Table;
use super::work::LOOP_SAMPLES_MAX;
use crate::client::{Part, Session, Stream};
use crate::state::Shared;
use futures_util::future::BoxFuture;
use latewood_engine::Cancelled;
use latewood_model::Compatibility;
use latewood_wire::resp::Reply;

/// What a command ends with.
pub(crate) type Outcome = Result<(), Fault>;

/// One command on its way through the server.
pub(crate) struct Call<'a> {
    pub(crate) commands: &'static Table,
    /// Its words, the name first.
    pub(crate) args: Args<'a>,
    /// Where the reply goes.
    pub(crate) out: &'a mut Vec<u8>,
    /// The connection it came from.
    pub(crate) session: &'a mut Session,
    pub(crate) shared: &'a Shared,
    /// On a reader thread: whether nobody wants the reply any more.
    pub(crate) cancelled: Cancelled<'a>,
    /// What is left to do on a reader thread.
    pub(crate) rest: Option<Rest>,
}

/// The long part of a command.
pub(crate) struct Rest {
    /// About how much it is.
    pub(crate) samples: u64,
    /// What it waits for, which takes no thread.
    pub(crate) wait: Option<BoxFuture<'static, ()>>,
    /// Does it. The words are there once more.
    pub(crate) work: Work,
}

type Work = Box<dyn FnOnce(&mut Call<'_>) -> Outcome + Send>;

impl<'a> Call<'a> {
    /// What writing its reply takes.
    pub(crate) fn part(&self) -> Part<'a> {
        Part::new(self.shared, self.session.protocol(), self.cancelled)
    }

    /// Ends a command that only reads, or COPY, with `rest`, whose work is about `samples`
    /// samples: here if that is short, on a reader thread otherwise. EXEC does all
    /// of its commands here.
    pub(crate) fn finish(
        &mut self,
        samples: u64,
        rest: impl FnOnce(&mut Call<'_>) -> Outcome + Send + 'static,
    ) -> Outcome {
        if self.leaves(samples) {
            self.rest = Some(Rest {
                samples,
                wait: None,
                work: Box::new(rest),
            });
            return Ok(());
        }
        self.stays(samples);
        rest(self)
    }

    /// Ends a command with `rest`, which is done in a moment, once `wait` is over. Not in EXEC.
    pub(crate) fn finish_after(
        &mut self,
        wait: impl Future<Output = ()> + Send + 'static,
        rest: impl FnOnce(&mut Call<'_>) -> Outcome + Send + 'static,
    ) -> Outcome {
        self.rest = Some(Rest {
            samples: 0,
            wait: Some(Box::pin(wait)),
            work: Box::new(rest),
        });
        Ok(())
    }

    /// Notes the work of a read that is done here, in samples.
    pub(crate) fn stays(&mut self, samples: u64) {
        self.session.note_work(samples);
    }

    /// Whether [`Call::finish`] leaves this work, in samples, to a reader thread.
    pub(crate) fn leaves(&self, samples: u64) -> bool {
        let is_beside = self.cancelled.is_some();
        samples > LOOP_SAMPLES_MAX && !is_beside && !self.session.in_exec()
    }

    /// The version of RedisTimeSeries that the answer is like.
    pub(crate) fn compatibility(&self) -> Compatibility {
        let chosen = self.session.compatibility;
        chosen.unwrap_or_else(|| self.shared.runtime.compatibility())
    }

    /// Writes to the reply in the connection's protocol.
    pub(crate) fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.out, self.session.protocol())
    }

    pub(crate) fn ok(&mut self) -> Outcome {
        self.reply().ok();
        Ok(())
    }

    /// Answers with a number.
    pub(crate) fn integer(&mut self, number: i64) -> Outcome {
        self.reply().integer(number);
        Ok(())
    }

    /// Answers how many of something there are.
    pub(crate) fn count(&mut self, number: impl TryInto<i64>) -> Outcome {
        self.reply().count(number);
        Ok(())
    }

    /// Begins the reply `stream`; what does not fit its first part follows when
    /// the connection has room.
    pub(crate) fn begin_stream(&mut self, mut stream: impl Stream + 'static) {
        if stream.more(self.part(), self.out) {
            self.session.long_reply.begin(stream);
        }
    }
}
