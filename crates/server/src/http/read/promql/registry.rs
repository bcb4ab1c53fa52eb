//! The queries that run, and those that took most.
//!
//! A query is listed from its request until its answer was taken; whoever may may cancel it. Its
//! time runs while it waits and while it is evaluated, not while its reader takes a piece.
//! What ended is kept by its text, a bounded number of texts; those that cannot be parsed are not.
//!
//! Tested by `tests/http/promql_running.rs`.

use crate::base::clock::now_ms;
use latewood_promql::Times;
use latewood_promql::source::Interrupt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A query that took no longer than this is likely as quick the next time, if its answer was short.
const QUICK_MAX: Duration = Duration::from_micros(500);
/// Bytes of a short answer: to compress more takes longer than a moment.
pub(super) const QUICK_BYTES_MAX: usize = 64 << 10;
/// Texts that are remembered.
const TEXTS_MAX: usize = 1000;
/// Bytes of a text that are shown.
const TEXT_BYTES_MAX: usize = 1024;

/// The queries of the server.
#[derive(Default)]
pub(crate) struct Registry {
    last_id: AtomicU64,
    running: Mutex<BTreeMap<u64, Arc<Running>>>,
    ended: Mutex<HashMap<String, Ended>>,
}

/// A query under way.
pub(crate) struct Running {
    id: u64,
    user: String,
    text: String,
    times: Times,
    began: Instant,
    began_ms: i64,
    /// The time that it may take.
    longest: Duration,
    /// For how long its reader was waited for, in nanoseconds.
    idle_ns: AtomicU64,
    is_cancelled: AtomicBool,
    /// Told when it is cancelled.
    cancelled: Notify,
    /// Whether its text is a query.
    is_parsed: AtomicBool,
    /// Whether one of its text was quick the last time.
    was_quick: bool,
    /// Whether this one was.
    is_quick: AtomicBool,
}

/// What queries of one text took.
#[derive(Clone, Copy)]
struct Ended {
    count: u64,
    total: Duration,
    range_ms: i64,
    last: Instant,
    is_quick: bool,
}

/// A query in the list; dropping it takes it out.
pub(super) struct Listed {
    registry: Arc<Registry>,
    pub(super) running: Arc<Running>,
}

impl Registry {
    /// Lists a query of `user` that began just now and may take `longest`.
    pub(super) fn begin(
        self: &Arc<Self>,
        user: &[u8],
        text: &str,
        times: Times,
        longest: Duration,
    ) -> Listed {
        let began = Instant::now();
        // Of a text that is shortened, others may be shortened to the same.
        let is_whole = text.len() <= TEXT_BYTES_MAX;
        let text = shortened(text);
        let is_quick = |ended: &Ended| is_whole && ended.is_quick;
        let was_quick = self.ended.lock().get(&text).is_some_and(is_quick);
        let running = Arc::new(Running {
            id: self.last_id.fetch_add(1, Ordering::Relaxed) + 1,
            user: String::from_utf8_lossy(user).into_owned(),
            text,
            times,
            began,
            began_ms: now_ms(),
            longest,
            idle_ns: AtomicU64::new(0),
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            is_parsed: AtomicBool::new(false),
            was_quick,
            is_quick: AtomicBool::new(false),
        });
        self.running.lock().insert(running.id, Arc::clone(&running));
        Listed {
            registry: Arc::clone(self),
            running,
        }
    }

    /// Cancels a query; whether there is one of this number.
    pub(super) fn cancel(&self, id: u64) -> bool {
        let running = self.running.lock().get(&id).cloned();
        running.inspect(|running| running.cancel()).is_some()
    }

    /// The user of a query that runs.
    pub(super) fn user_of(&self, id: u64) -> Option<String> {
        let running = self.running.lock();
        running.get(&id).map(|running| running.user.clone())
    }

    /// The number of queries that run or wait.
    pub(in crate::http) fn running(&self) -> usize {
        self.running.lock().len()
    }

    /// The queries that run, the oldest first.
    pub(super) fn active(&self) -> Value {
        let running: Vec<_> = self.running.lock().values().cloned().collect();
        let show = |query: &Arc<Running>| {
            let times = query.times;
            json!({
                "id": query.id.to_string(),
                "user": query.user,
                "query": query.text,
                "start": times.start_ms as f64 / 1000.0,
                "end": times.end_ms as f64 / 1000.0,
                "step": times.step_ms as f64 / 1000.0,
                "startedAt": query.began_ms as f64 / 1000.0,
                "durationSeconds": query.began.elapsed().as_secs_f64(),
                "canceled": query.is_cancelled.load(Ordering::Relaxed),
            })
        };
        running.iter().map(show).collect()
    }

    /// The `most` texts that ran most often, took longest on average, and took longest in all.
    pub(super) fn top(&self, most: usize) -> Value {
        let mut ended: Vec<(String, Ended)> = {
            let ended = self.ended.lock();
            ended
                .iter()
                .map(|(text, one)| (text.clone(), *one))
                .collect()
        };
        let mut sorted_by = |of: fn(&Ended) -> f64| -> Value {
            ended.sort_by(|a, b| of(&b.1).total_cmp(&of(&a.1)).then_with(|| a.0.cmp(&b.0)));
            let show = |(text, one): &(String, Ended)| {
                json!({
                    "query": text,
                    "timeRangeSeconds": one.range_ms as f64 / 1000.0,
                    "count": one.count,
                    "avgDurationSeconds": one.average_s(),
                    "sumDurationSeconds": one.total.as_secs_f64(),
                })
            };
            ended.iter().take(most).map(show).collect()
        };
        json!({
            "topByCount": sorted_by(|one| one.count as f64),
            "topByAvgDuration": sorted_by(Ended::average_s),
            "topBySumDuration": sorted_by(|one| one.total.as_secs_f64()),
        })
    }

    /// Takes a query out, and adds what it took.
    fn end(&self, query: &Running) {
        self.running.lock().remove(&query.id);
        if !query.is_parsed.load(Ordering::Relaxed) {
            return;
        }
        let mut ended = self.ended.lock();
        if ended.len() >= TEXTS_MAX && !ended.contains_key(&query.text) {
            // Whoever ran longest ago gives way.
            let oldest = ended.iter().min_by_key(|(_, one)| one.last);
            if let Some(oldest) = oldest.map(|(text, _)| text.clone()) {
                ended.remove(&oldest);
            }
        }
        let now = Instant::now();
        let one = ended.entry(query.text.clone()).or_insert(Ended {
            count: 0,
            total: Duration::ZERO,
            range_ms: 0,
            last: now,
            is_quick: false,
        });
        one.count += 1;
        one.total += query.worked();
        one.range_ms = query.times.end_ms.saturating_sub(query.times.start_ms);
        one.last = now;
        one.is_quick = query.is_quick.load(Ordering::Relaxed);
    }
}

impl Ended {
    fn average_s(&self) -> f64 {
        self.total.as_secs_f64() / self.count.max(1) as f64
    }
}

impl Running {
    /// Ends it soon.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.cancelled.notify_one();
    }

    /// Says that its text is a query.
    pub(super) fn parsed(&self) {
        self.is_parsed.store(true, Ordering::Relaxed);
    }

    /// Whether it is likely evaluated in a moment.
    pub(super) fn was_quick(&self) -> bool {
        self.was_quick
    }

    /// Says how long its evaluation took, and its answer is.
    pub(super) fn took(&self, time: Duration, bytes: usize) {
        let is_quick = time <= QUICK_MAX && bytes <= QUICK_BYTES_MAX;
        self.is_quick.store(is_quick, Ordering::Relaxed);
    }

    /// Says that its reader was waited for.
    pub(super) fn idled(&self, idle: Duration) {
        let idle_ns = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
        self.idle_ns.fetch_add(idle_ns, Ordering::Relaxed);
    }

    /// For how long its reader was waited for.
    pub(super) fn idle(&self) -> Duration {
        Duration::from_nanos(self.idle_ns.load(Ordering::Relaxed))
    }

    /// The time that it took till now, without that of its reader.
    pub(super) fn worked(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.idle())
    }

    /// Comes when it must end while it waits: for a thread first, where its time runs, or later,
    /// where it does not.
    pub(super) async fn ended(self: Arc<Self>, has_begun: bool) -> Interrupt {
        let time = async {
            if has_begun {
                std::future::pending().await
            } else {
                tokio::time::sleep(self.longest.saturating_sub(self.worked())).await
            }
        };
        tokio::select! {
            () = self.cancelled.notified() => Interrupt::Canceled,
            () = time => Interrupt::Timeout,
        }
    }

    /// Whether somebody ended it.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Since when it runs.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// When it must end, if it waits for nobody from now on.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.longest.saturating_sub(self.worked())
    }

    /// Whether it must end.
    ///
    /// # Errors
    /// Why.
    pub(super) fn check(&self) -> Result<(), Interrupt> {
        match self.is_cancelled() {
            true => Err(Interrupt::Canceled),
            false if self.worked() >= self.longest => Err(Interrupt::Timeout),
            false => Ok(()),
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // Whoever still works on it may stop.
        self.running.cancel();
        self.registry.end(&self.running);
    }
}

/// The text without what is too long to show.
fn shortened(text: &str) -> String {
    if text.len() > TEXT_BYTES_MAX {
        format!("{}...", &text[..text.floor_char_boundary(TEXT_BYTES_MAX)])
    } else {
        text.to_owned()
    }
}
