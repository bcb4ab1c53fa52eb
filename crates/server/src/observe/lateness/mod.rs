//! How late samples come: by protocol, by metric, by sender and by a chosen label, over the last two
//! hours.
//!
//! A sample is late if it is older than the newest of its series when it arrives; its age is the
//! difference. Samples in order cost one counter a batch. Late ones are counted by age, in
//! buckets of one part in eight ([`ages`]), in a ring of minutes for each route and in a bounded
//! table each for metrics, senders and values of the label ([`ranking`]). The minutes also count them by the bands of
//! the heat map, into which those buckets do not nest.
//!
//! Invariants: [`Lateness::len_bytes`] never exceeds 5 MiB, 4 without a label, whatever is sent. Every late sample is
//! in one minute, in one row of metrics (or their others), and in one of senders. Deleting
//! series does not change what came. Tested by `tests.rs` and `tests/http/lateness.rs`.

mod ages;
mod by_label;
mod ranking;
mod route;
#[cfg(test)]
mod tests;

pub(crate) use ages::{LateSum, QUANTILE_ERROR};
pub(crate) use ranking::{BLOCK_MINUTES, ROWS_MAX, RankedRow};
pub(crate) use route::{Origin, Route};

use super::ages::{AgeCounters, Ages};
use ages::LateAges;
use by_label::{ByLabel, value_of};
use foldhash::fast::RandomState;
use latewood_engine::Db;
use latewood_wire::series_name::{METRIC, SeriesName};
use parking_lot::Mutex;
use ranking::Ranking;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Minutes that are kept.
pub(crate) const MINUTES: usize = 120;
/// Those of an hour.
pub(crate) const HOUR_MINUTES: usize = 60;
/// Milliseconds of a minute.
pub(crate) const MINUTE_MS: i64 = 60_000;

/// The names with most late samples, most first, and the others together.
pub(crate) type Ranked = (Vec<RankedRow>, LateSum);

/// The counts of all routes.
#[derive(Debug)]
pub(crate) struct Lateness {
    minutes: Box<[Minute]>,
    routes: [RouteLate; Route::ALL.len()],
    metrics: Mutex<Ranking>,
    senders: Mutex<Ranking>,
    labels: Mutex<ByLabel>,
}

/// What arrived in one minute.
#[derive(Debug, Default)]
struct Minute {
    /// Minutes from the Unix epoch.
    number: AtomicI64,
    /// Held by who begins the minute.
    begin: Mutex<()>,
    routes: [Arrived; Route::ALL.len()],
}

/// What arrived by one route.
#[derive(Debug, Default)]
struct Arrived {
    samples: AtomicU64,
    ages: AgeCounters,
}

/// Late samples of one route.
#[derive(Debug, Default)]
struct RouteLate {
    /// Since the start.
    total: AtomicU64,
    /// A ring of minutes, empty until there are late samples.
    minutes: Mutex<Vec<LateMinute>>,
}

/// Late samples of one minute of one route.
#[derive(Debug, Default)]
pub(crate) struct LateMinute {
    /// Minutes from the Unix epoch.
    number: i64,
    /// By their age.
    pub(crate) ages: LateAges,
    /// By the bands of [`super::AGE_BOUNDS_MS`].
    pub(crate) bands: Ages,
}

/// One minute of one route.
#[derive(Debug)]
pub(crate) struct MinuteOf<'a> {
    /// Minutes from the Unix epoch.
    pub(crate) number: i64,
    /// The route.
    pub(crate) route: Route,
    /// Samples accepted.
    pub(crate) samples: u64,
    /// Samples received, by the clock's time less theirs, as in [`super::AGE_BOUNDS_MS`].
    pub(crate) arrival: Vec<u64>,
    /// The late ones; `None` if there are none.
    pub(crate) late: Option<&'a LateMinute>,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            minutes: (0..MINUTES).map(|_| Minute::default()).collect(),
            routes: std::array::from_fn(|_| RouteLate::default()),
            metrics: Mutex::default(),
            senders: Mutex::default(),
            labels: Mutex::default(),
        }
    }
}

impl Lateness {
    /// Counts a batch: `samples` were accepted, and `ages` are those of all by the clock.
    #[inline]
    pub(crate) fn arrived(&self, route: Route, samples: u64, ages: &Ages, now_ms: i64) {
        let number = minute_of(now_ms);
        let minute = &self.minutes[place_of(number)];
        if minute.number.load(Ordering::Acquire) != number {
            minute.begin(number);
        }
        let arrived = &minute.routes[route as usize];
        arrived.samples.fetch_add(samples, Ordering::Relaxed);
        arrived.ages.add(ages);
    }

    /// Counts the late samples of a batch: the keys of their series and their ages in
    /// milliseconds.
    #[cold]
    pub(crate) fn late<'a>(
        &self,
        origin: &Origin<'_>,
        now_ms: i64,
        late: impl Iterator<Item = (&'a [u8], u64)> + Clone,
    ) {
        let number = minute_of(now_ms);
        self.routes[origin.route as usize].note(number, late.clone().map(|(_, age_ms)| age_ms));
        let sender = origin.sender();
        let ages_ms = late.clone().map(|(_, age_ms)| age_ms);
        self.senders.lock().note(&sender, ages_ms, number);
        let mut metrics = self.metrics.lock();
        for (key, age_ms) in late {
            metrics.note(&metric_of(key), std::iter::once(age_ms), number);
        }
    }

    /// Counts the same samples by the chosen label, if there is one.
    #[cold]
    pub(crate) fn late_by_label<'a>(
        &self,
        db: &Db,
        now_ms: i64,
        late: impl Iterator<Item = (&'a [u8], u64)>,
    ) {
        let Some(label) = self.labels.lock().name.clone() else {
            return;
        };
        let mut by_key = HashMap::<&[u8], Vec<u64>, RandomState>::default();
        for (key, age_ms) in late {
            by_key.entry(key).or_default().push(age_ms);
        }
        // Values are looked up before the table is locked.
        let by_key = by_key.into_iter();
        let values: Vec<_> = by_key
            .map(|(key, ages_ms)| (value_of(db, key, &label), ages_ms))
            .collect();
        let mut labels = self.labels.lock();
        if labels.name.as_ref() != Some(&label) {
            return;
        }
        for (value, ages_ms) in values {
            labels
                .values
                .note(&value, ages_ms.into_iter(), minute_of(now_ms));
        }
    }

    /// Chooses the label by whose values late samples are counted from now on; an empty one is none.
    pub(crate) fn choose_label(&self, name: &str) {
        self.labels.lock().choose(name);
    }

    /// Late samples of a route since the start.
    pub(crate) fn total(&self, route: Route) -> u64 {
        self.routes[route as usize].total.load(Ordering::Relaxed)
    }

    /// Shows each of the last `minutes`, the current one included, of each route in which
    /// something arrived; those of a route in ascending order.
    pub(crate) fn each(&self, now_ms: i64, minutes: usize, mut show: impl FnMut(MinuteOf<'_>)) {
        let last = minute_of(now_ms);
        for route in Route::ALL {
            let late = self.routes[route as usize].minutes.lock();
            for number in last - minutes.min(MINUTES) as i64 + 1..=last {
                let minute = &self.minutes[place_of(number)];
                let is_there = minute.number.load(Ordering::Acquire) == number;
                let arrived = Some(&minute.routes[route as usize]).filter(|_| is_there);
                let late = late.get(place_of(number));
                let late = late.filter(|late| late.number == number && late.ages.late() > 0);
                let samples = arrived.map_or(0, |one| one.samples.load(Ordering::Relaxed));
                let arrival = arrived.map(|one| one.ages.read().0.collect::<Vec<_>>());
                let arrival = arrival.unwrap_or_default();
                let has_arrived = samples > 0 || arrival.iter().any(|&count| count > 0);
                if late.is_some() || has_arrived {
                    show(MinuteOf {
                        number,
                        route,
                        samples,
                        arrival,
                        late,
                    });
                }
            }
        }
    }

    /// What INFO and `/metrics` tell of.
    pub(crate) fn last_hour(&self, now_ms: i64) -> LateSum {
        self.sum(now_ms, HOUR_MINUTES)
    }

    /// The late samples of the last `minutes`, and how many others there were.
    pub(crate) fn sum(&self, now_ms: i64, minutes: usize) -> LateSum {
        let mut sum = LateSum::default();
        self.each(now_ms, minutes, |minute| {
            sum.samples += minute.samples;
            minute.late.inspect(|late| sum.add(&late.ages));
        });
        sum
    }

    /// The metrics with most late samples in the blocks that the last `minutes` touch.
    pub(crate) fn metrics(&self, now_ms: i64, minutes: usize) -> Ranked {
        self.metrics.lock().read(minute_of(now_ms), minutes)
    }

    /// The same of senders, by [`Origin::sender`].
    pub(crate) fn senders(&self, now_ms: i64, minutes: usize) -> Ranked {
        self.senders.lock().read(minute_of(now_ms), minutes)
    }

    /// The chosen label, if there is one.
    pub(crate) fn label(&self) -> Option<Arc<str>> {
        self.labels.lock().name.clone()
    }

    /// The same of the values of the chosen label, with its name; `None` where there is none.
    pub(crate) fn label_values(&self, now_ms: i64, minutes: usize) -> Option<(Arc<str>, Ranked)> {
        let labels = self.labels.lock();
        let name = labels.name.clone()?;
        Some((name, labels.values.read(minute_of(now_ms), minutes)))
    }

    /// Bytes of memory it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        let routes = self.routes.iter().map(|route| {
            let minutes = route.minutes.lock();
            let ages = minutes.iter().map(|late| late.ages.len_bytes());
            minutes.capacity() * size_of::<LateMinute>() + ages.sum::<usize>()
        });
        let rankings = [&self.metrics, &self.senders].map(|one| one.lock().len_bytes());
        let labels = self.labels.lock().values.len_bytes();
        let rankings = rankings.iter().sum::<usize>() + labels;
        MINUTES * size_of::<Minute>() + routes.sum::<usize>() + rankings
    }
}

impl Minute {
    /// Makes the place that of another minute.
    #[cold]
    fn begin(&self, number: i64) {
        let _begin = self.begin.lock();
        if self.number.load(Ordering::Acquire) != number {
            for arrived in &self.routes {
                arrived.samples.store(0, Ordering::Relaxed);
                arrived.ages.reset();
            }
            self.number.store(number, Ordering::Release);
        }
    }
}

impl RouteLate {
    fn note(&self, number: i64, ages_ms: impl Iterator<Item = u64>) {
        let mut minutes = self.minutes.lock();
        if minutes.is_empty() {
            minutes.resize_with(MINUTES, Default::default);
        }
        let late = &mut minutes[place_of(number)];
        if late.number != number {
            *late = LateMinute {
                number,
                ..LateMinute::default()
            };
        }
        let before = late.ages.late();
        for age_ms in ages_ms {
            late.ages.note(age_ms);
            late.bands.note(age_ms.try_into().unwrap_or(i64::MAX));
        }
        self.total
            .fetch_add(late.ages.late() - before, Ordering::Relaxed);
    }
}

fn minute_of(now_ms: i64) -> i64 {
    now_ms.div_euclid(MINUTE_MS)
}

fn place_of(number: i64) -> usize {
    number.rem_euclid(MINUTES as i64) as usize
}

/// The part of a key that names the metric: what is in front of labels, else all of it.
fn metric_of(key: &[u8]) -> Cow<'_, [u8]> {
    if key.first() == Some(&b'{') {
        return quoted_metric(key);
    }
    let is_labelled = key.last() == Some(&b'}');
    let end = is_labelled.then(|| memchr::memchr(b'{', key)).flatten();
    end.map_or(key, |end| &key[..end]).into()
}

#[cold]
fn quoted_metric(key: &[u8]) -> Cow<'_, [u8]> {
    let mut name = SeriesName::new();
    let is_name = name.read(key);
    let mut labels = name.labels().filter(|_| is_name);
    let metric = labels.find(|(label, _)| *label == METRIC);
    metric.map_or(key.into(), |(_, metric)| metric.to_vec().into())
}
