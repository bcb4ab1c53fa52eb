//! Reporting to the embedding program: the duration of background work, and that
//! more of the log is durable.
//!
//! The engine measures and reports; the observer decides what to keep. Tested by
//! the server's tests of LATENCY and by `tests/db_durable.rs`.

use crate::base::opaque::opaque;
use crate::observe::stages::{Stage, Stages};
use latewood_model::named;
use std::sync::{Arc, OnceLock};

named! {
    /// Work of the engine that others may have to wait for.
    pub enum Work {
        /// Bringing the log to disk.
        LogSync = 0 => "wal-sync",
        /// Folding the late samples of one series into its chunks.
        Settle = 1 => "settle",
        /// Bringing what rules come to into the destinations of one source.
        Rules = 2 => "rules",
        /// Removing the series whose time has come, once over all shards.
        ExpireCycle = 3 => "expire-cycle",
        /// Writing one partition into blocks.
        Flush = 4 => "flush",
        /// Removing series of which retention left nothing, a slice of time at once.
        EndCycle = 5 => "series-end",
    }
}

impl Work {
    /// The stage of a write it is, if it is one.
    const fn stage(self) -> Option<Stage> {
        match self {
            Self::LogSync => Some(Stage::LogSync),
            Self::Settle => Some(Stage::Settle),
            Self::Rules => Some(Stage::RuleCompute),
            Self::ExpireCycle | Self::EndCycle => None,
            Self::Flush => Some(Stage::BlockFlush),
        }
    }
}

type Notice = Box<dyn Fn(Work, u64) + Send + Sync>;
type DurableNotice = Box<dyn Fn() + Send + Sync>;

/// Who is told; shared by the database and its log.
#[derive(Clone, Default)]
pub(crate) struct Observer {
    pub(crate) notice: Arc<OnceLock<Notice>>,
    pub(crate) durable: Arc<OnceLock<DurableNotice>>,
    stages: Stages,
}

impl Observer {
    /// Reports to `stages` and to the observer.
    pub(crate) fn new(stages: Stages) -> Self {
        Self {
            notice: Arc::default(),
            durable: Arc::default(),
            stages,
        }
    }

    /// Says that `work` took `duration_ns`.
    pub(crate) fn note(&self, work: Work, duration_ns: u64) {
        if let Some(stage) = work.stage() {
            self.stages.note_ns(stage, duration_ns);
        }
        if let Some(notice) = self.notice.get() {
            notice(work, duration_ns);
        }
    }

    /// Says that more of the log is durable, or that it failed.
    pub(crate) fn tell_durable(&self) {
        if let Some(notice) = self.durable.get() {
            notice();
        }
    }
}

opaque!(Observer);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimDisk;
    use crate::{Db, Defaults, ExpireIf, Options};
    use latewood_model::SeriesOptions;
    use std::path::Path;
    use std::sync::Mutex;

    #[test]
    fn a_round_of_expiry_is_told_where_something_may_expire() {
        let options = Options {
            background: false,
            ..Options::default()
        };
        let env = SimDisk::new().env(1);
        let db = Db::open(&env, Path::new("/db"), options, Defaults::default()).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = heard.clone();
        assert!(db.observe(move |work, _| notes.lock().unwrap().push(work)));
        db.create(b"k", &SeriesOptions::default()).unwrap();
        db.parts().rules.sweep_expired().unwrap();
        assert!(heard.lock().unwrap().is_empty());
        let later_ms = env.clock.now_ms() + 1000;
        db.expire(b"k", later_ms, ExpireIf::default()).unwrap();
        db.parts().rules.sweep_expired().unwrap();
        assert_eq!(*heard.lock().unwrap(), [Work::ExpireCycle]);
    }
}
