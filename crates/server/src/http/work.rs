//! Threads, permits and intakes for requests, each bounded.

use super::context::Context;
use super::metrics::MemoryByPart;
use super::permits::Permits;
use super::read::promql::Registry;
use crate::acl::User;
use crate::acl::log::HTTP;
use crate::intake::{EngineIntake, InPause, Report, Way};
use crate::observe::Protocol;
use crate::state::Promql;
use latewood_promql::engine::Pool;
use parking_lot::Mutex;
use std::sync::Arc;

/// Requests of one side that may wait for a thread, for each thread.
const WAITING_PER_THREAD: usize = 16;
/// Requests at a time that list or end queries, which take no time.
const CONTROL_PLACES: usize = 16;
const CONTROL_THREADS: usize = 1;
/// What all queries may hold, as multiples of what one may.
const QUERY_MEMORY_SHARES: u64 = 4;
/// Intakes that are kept for the next requests.
const KEPT_INTAKES_MAX: usize = 8;

/// What requests share.
pub(crate) struct Work {
    /// For those who write.
    pub(super) writers: Permits,
    /// For those who read.
    pub(super) readers: Permits,
    /// For queries in PromQL.
    pub(super) queries: Permits,
    /// For those who list or end queries, or look at the server: they find room when queries and readers have none.
    pub(super) control: Permits,
    /// What queries hold together while they are evaluated.
    pub(super) query_memory: Arc<Pool>,
    /// Those that run.
    pub(super) registry: Arc<Registry>,
    kept: Mutex<Vec<Kept>>,
    /// For `/metrics`.
    pub(super) memory_by_part: MemoryByPart,
}

/// An intake that knows series already, and for whom.
struct Kept {
    protocol: Protocol,
    label: Vec<u8>,
    intake: EngineIntake,
}

impl Work {
    /// Nothing under way.
    pub(crate) fn new(settings: &Promql) -> Self {
        let queries = settings.queries_max as usize;
        let memory_bytes = settings.memory_bytes.saturating_mul(QUERY_MEMORY_SHARES);
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let threads = threads.max(2);
        Self {
            writers: Permits::new("write", threads * (1 + WAITING_PER_THREAD), threads),
            readers: Permits::new("read", threads * (1 + WAITING_PER_THREAD), threads),
            queries: Permits::new("query", queries * (1 + WAITING_PER_THREAD), queries),
            control: Permits::new("control queries", CONTROL_PLACES, CONTROL_THREADS),
            query_memory: Arc::new(Pool::new(memory_bytes as usize)),
            registry: Arc::default(),
            kept: Mutex::default(),
            memory_by_part: MemoryByPart::default(),
        }
    }

    /// Takes the samples that `decode` brings, of a request of `user`: what became of them.
    pub(crate) fn take<T>(
        &self,
        context: &Context,
        way: Way,
        label: &[u8],
        user: &Arc<User>,
        decode: impl FnOnce(&mut EngineIntake) -> T,
    ) -> (Report, T) {
        let mut intake = self.intake(context, way, label, user);
        let decoded = decode(&mut intake);
        let report = intake.finish();
        self.keep(way.protocol, label.to_vec(), intake);
        (report, decoded)
    }

    /// An intake for a request of `user` by `way`. Those who may write everywhere share
    /// intakes, which know the series of earlier requests; `label` tells apart
    /// requests whose series differ though their lines are alike.
    fn intake(&self, context: &Context, way: Way, label: &[u8], user: &Arc<User>) -> EngineIntake {
        let mut intake = self.intake_of(context, way, label, user);
        intake.sent_by(context.peer, &user.name);
        intake
    }

    fn intake_of(
        &self,
        context: &Context,
        way: Way,
        label: &[u8],
        user: &Arc<User>,
    ) -> EngineIntake {
        if user.adds_anywhere {
            let mut kept = self.kept.lock();
            let is_fit = |kept: &Kept| kept.protocol == way.protocol && kept.label == label;
            if let Some(at) = kept.iter().rposition(is_fit) {
                let mut intake = kept.remove(at).intake;
                intake.begin();
                return intake;
            }
        }
        EngineIntake::new(
            Arc::clone(&context.shared),
            way,
            HTTP,
            Some(Arc::clone(user)),
            InPause::Refuse,
        )
    }

    /// Keeps an intake for later requests.
    fn keep(&self, protocol: Protocol, label: Vec<u8>, intake: EngineIntake) {
        if !intake.is_for_all() {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.len() == KEPT_INTAKES_MAX {
            kept.remove(0);
        }
        kept.push(Kept {
            protocol,
            label,
            intake,
        });
    }
}
