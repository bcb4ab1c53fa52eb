//! The time that retention and expiry trust. A wall clock may jump; samples must not
//! go by it.
//!
//! A database has one such clock for `--retention`, which goes on from the published
//! floor ([`TrustedClock`]), and one for what has times of its own ([`Time`]): series
//! that expire, and the samples that count for the retention of their series
//! ([`Horizon`]). Both follow one rule, below; [`Time`] believes the wall clock of the
//! start.
//!
//! The trusted time moves on while the database runs and follows the wall clock as
//! long as both agree within a tolerance. A wall clock that is ahead by more is
//! believed only up to where the data agree: the newest samples of several series
//! ([`Newest`]). Then the trusted time waits, so that an operator can stop it, and
//! moves towards them over a while. After a start it goes on from the published floor.
//!
//! Invariants: it never goes back, and never beyond what running time, or the wall
//! clock and the data together, justify. Times are in milliseconds since the epoch.
//! Tested below and by `tests/merge/clock.rs` and `tests/merge/far.rs`.

use crate::io::Clock;
use latewood_model::Timestamp;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Maximum time a jump that the data justify is held, and is then spread over.
const HOLD_MS_MAX: i64 = 3_600_000;
const CATCH_UP_MS_MAX: i64 = 3 * 3_600_000;
/// The least difference of the clocks that is a jump.
const TOLERANCE_MS_MIN: i64 = 300_000;
/// Interval at which the series are asked for their newest samples during a jump.
const ASK_NS: u64 = 60_000_000_000;
/// How far ahead of the trusted time a sample may be and count for the retention of its
/// series.
const HORIZON_MS: i64 = 86_400_000;
/// What [`Time`] follows a jump by, as `--retention` does with 90 days.
const SPREAD_MS: i64 = 90 * 86_400_000;

/// What the clocks and the configuration say at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall_ms: i64,
    pub(crate) monotonic_ns: u64,
    pub(crate) retention_ms: i64,
    /// By how much the floor rises at a time.
    pub(crate) step_ms: i64,
    /// How often everything was removed.
    pub(crate) epoch: u64,
}

impl Moment {
    fn tolerance_ms(self) -> i64 {
        TOLERANCE_MS_MIN.max(self.step_ms.saturating_mul(2))
    }

    fn catch_up_ms(self) -> i64 {
        CATCH_UP_MS_MAX.min(self.retention_ms / 4).max(1)
    }
}

/// How the wall clock stands to the trusted time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Jump {
    /// They agree.
    #[default]
    None,
    /// The wall clock is ahead by this time, and the data do not justify it.
    Ahead(i64),
    /// It is ahead by this time, the data justify it, and the trusted time follows.
    Followed(i64),
    /// The wall clock is behind by this time.
    Behind(i64),
}

impl Jump {
    /// By how much the wall clock is ahead (positive) or behind (negative).
    pub(crate) fn ms(self) -> i64 {
        match self {
            Self::None => 0,
            Self::Ahead(ms) | Self::Followed(ms) => ms,
            Self::Behind(ms) => -ms,
        }
    }

    /// Whether both are the same kind of jump.
    pub(crate) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.ms().unsigned_abs() / 1000;
        match self {
            Self::None => write!(
                f,
                "the wall clock agrees with the samples and running time again"
            ),
            Self::Ahead(_) => write!(
                f,
                "the wall clock is {seconds} s ahead of the newest samples and of running time: \
                 retention and expiry do not follow it"
            ),
            Self::Followed(_) => write!(
                f,
                "the wall clock and the newest samples are {seconds} s ahead of running time: \
                 retention, unless it is set to 0, and expiry follow them slowly"
            ),
            Self::Behind(_) => write!(
                f,
                "the wall clock is {seconds} s behind running time: retention and expiry wait for it"
            ),
        }
    }
}

/// The trusted time, once there is one.
#[derive(Clone, Copy, Debug)]
struct Trusted {
    now_ms: i64,
    /// The monotonic clock at that time.
    at_ns: u64,
    /// What the data justified, and when they were asked.
    data: Option<(i64, u64)>,
    /// The trusted and the monotonic time at which it began to follow a jump.
    followed_since: Option<(i64, u64)>,
}

/// The rule of the trusted time.
#[derive(Debug, Default)]
pub(crate) struct TrustedClock {
    trusted: Option<Trusted>,
    /// That of the samples it knows.
    epoch: u64,
    pub(crate) jump: Jump,
}

impl TrustedClock {
    /// Trusts `now_ms` from that moment on.
    pub(crate) fn begin(&mut self, now_ms: i64, moment: Moment) {
        *self = Self {
            trusted: Some(Trusted {
                now_ms,
                at_ns: moment.monotonic_ns,
                data: None,
                followed_since: None,
            }),
            epoch: moment.epoch,
            jump: Jump::None,
        };
    }

    /// Trusts nothing until there are samples.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The time to which retention may go, if any; `newest` asks the data.
    pub(crate) fn now_ms(
        &mut self,
        moment: Moment,
        newest: impl Fn() -> Option<i64>,
    ) -> Option<i64> {
        if self.epoch != moment.epoch {
            self.forget();
        }
        if self.trusted.is_none() {
            self.begin(newest()?.min(moment.wall_ms), moment);
        }
        let trusted = self.trusted.as_mut()?;
        trusted.run(moment.monotonic_ns);
        let limit_ms = trusted.now_ms.saturating_add(moment.tolerance_ms());
        self.jump = if moment.wall_ms > limit_ms {
            trusted.approach(moment, newest)
        } else {
            trusted.followed_since = None;
            trusted.now_ms = trusted.now_ms.max(moment.wall_ms);
            match trusted.now_ms.saturating_sub(moment.wall_ms) {
                behind if behind > moment.tolerance_ms() => Jump::Behind(behind),
                _ => Jump::None,
            }
        };
        Some(trusted.now_ms.min(moment.wall_ms))
    }
}

impl Trusted {
    /// Moves on with the running time.
    fn run(&mut self, monotonic_ns: u64) {
        let elapsed_ms = monotonic_ns.saturating_sub(self.at_ns) / 1_000_000;
        self.at_ns += elapsed_ms * 1_000_000;
        self.now_ms = self.now_ms.saturating_add_unsigned(elapsed_ms);
    }

    /// Moves towards a wall clock that is ahead.
    fn approach(&mut self, moment: Moment, newest: impl Fn() -> Option<i64>) -> Jump {
        let at_ns = moment.monotonic_ns;
        let known = self
            .data
            .filter(|(_, asked_ns)| at_ns.saturating_sub(*asked_ns) < ASK_NS);
        let (data_ms, asked_ns) = known.unwrap_or_else(|| (newest().unwrap_or(i64::MIN), at_ns));
        self.data = Some((data_ms, asked_ns));
        let target_ms = moment.wall_ms.min(data_ms);
        let ahead_ms = moment.wall_ms.saturating_sub(self.now_ms);
        if target_ms <= self.now_ms.saturating_add(moment.tolerance_ms()) {
            self.followed_since = None;
            self.now_ms = self.now_ms.max(target_ms);
            return Jump::Ahead(ahead_ms);
        }
        let (from_ms, since_ns) = *self.followed_since.get_or_insert((self.now_ms, at_ns));
        let waited_ms = at_ns.saturating_sub(since_ns) / 1_000_000;
        let waited_ms = i64::try_from(waited_ms).unwrap_or(i64::MAX);
        let followed_ms = waited_ms.saturating_sub(HOLD_MS_MAX.min(moment.retention_ms / 16));
        let reached_ms = if followed_ms >= moment.catch_up_ms() {
            target_ms
        } else {
            let share = followed_ms.max(0) as f64 / moment.catch_up_ms() as f64;
            let part_ms = (moment.retention_ms as f64 * share) as i64;
            from_ms.saturating_add(waited_ms).saturating_add(part_ms)
        };
        self.now_ms = self.now_ms.max(reached_ms.min(target_ms));
        Jump::Followed(ahead_ms)
    }
}

/// The trusted time of everything that is not `--retention`: of series that expire, and
/// of [`Horizon`].
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    trusted: Mutex<TrustedClock>,
    /// The trusted time at 0 of the monotonic clock.
    origin_ms: AtomicI64,
    jump_ms: AtomicI64,
}

impl Time {
    /// Believes the wall clock as it stands.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let time = Self {
            clock,
            trusted: Mutex::default(),
            origin_ms: AtomicI64::new(0),
            jump_ms: AtomicI64::new(0),
        };
        time.accept();
        Arc::new(time)
    }

    /// Believes the wall clock as it stands.
    pub(crate) fn accept(&self) {
        let moment = self.moment();
        self.trusted.lock().begin(moment.wall_ms, moment);
        self.settle(moment, moment.wall_ms, Jump::None);
    }

    /// Follows the clocks, which is due about every second; `newest` asks the data.
    /// Returns the jump if it is another kind than before.
    pub(crate) fn tick(&self, newest: impl Fn() -> Option<i64>) -> Option<Jump> {
        let mut trusted = self.trusted.lock();
        let (before, moment) = (trusted.jump, self.moment());
        trusted.now_ms(moment, newest);
        let jump = trusted.jump;
        if let Some(now) = trusted.trusted {
            self.settle(moment, now.now_ms, jump);
        }
        (!jump.is_like(before)).then_some(jump)
    }

    /// The trusted time in milliseconds since the epoch: the wall clock, unless that has
    /// jumped ahead.
    pub(crate) fn now_ms(&self) -> i64 {
        let wall_ms = self.clock.now_ms();
        let running_ms = self.running_ms(self.clock.monotonic_ns());
        if wall_ms.saturating_sub(running_ms) > TOLERANCE_MS_MIN {
            running_ms
        } else {
            wall_ms
        }
    }

    /// By how much the wall clock is ahead of it; negative if it is behind.
    pub(crate) fn jump_ms(&self) -> i64 {
        self.jump_ms.load(Ordering::Relaxed)
    }

    fn running_ms(&self, monotonic_ns: u64) -> i64 {
        let origin_ms = self.origin_ms.load(Ordering::Relaxed);
        origin_ms.saturating_add_unsigned(monotonic_ns / 1_000_000)
    }

    fn settle(&self, moment: Moment, now_ms: i64, jump: Jump) {
        let origin_ms = now_ms.saturating_sub_unsigned(moment.monotonic_ns / 1_000_000);
        self.origin_ms.store(origin_ms, Ordering::Relaxed);
        self.jump_ms.store(jump.ms(), Ordering::Relaxed);
    }

    fn moment(&self) -> Moment {
        Moment {
            wall_ms: self.clock.now_ms(),
            monotonic_ns: self.clock.monotonic_ns(),
            retention_ms: SPREAD_MS,
            step_ms: 0,
            epoch: 0,
        }
    }
}

/// The newest timestamp that counts for the retention of a series: a day after the
/// trusted time. A shard keeps what it last was, so that writes need no clock; it only
/// rises.
pub(crate) struct Horizon {
    known: Timestamp,
    time: Option<Arc<Time>>,
}

impl Default for Horizon {
    /// At the end of time, for single series in tests.
    fn default() -> Self {
        Self {
            known: Timestamp::MAX,
            time: None,
        }
    }
}

impl Horizon {
    pub(crate) fn new(time: &Arc<Time>) -> Self {
        Self {
            known: Timestamp::MIN,
            time: Some(Arc::clone(time)),
        }
    }

    /// Where it was when it was last asked for.
    #[inline]
    pub(crate) fn known(&self) -> Timestamp {
        self.known
    }

    pub(crate) fn now(&mut self) -> Timestamp {
        if let Some(time) = &self.time {
            let now = time.now_ms().saturating_add(HORIZON_MS);
            self.known = self.known.max(now);
        }
        self.known
    }
}

/// The newest samples of the series that have the newest ones.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// The three newest, newest first.
    newest: [Option<i64>; 3],
    series: usize,
}

impl Newest {
    /// Counts a series whose newest sample is at `at`.
    pub(crate) fn note(&mut self, at: i64) {
        self.series += 1;
        let mut at = Some(at);
        for place in &mut self.newest {
            if at > *place {
                std::mem::swap(place, &mut at);
            }
        }
    }

    /// Notes series whose newest samples are not among the newest ones.
    pub(crate) fn note_others(&mut self, series: usize) {
        self.series += series;
    }

    /// The time on which series agree: three of them have samples as new as this; of
    /// fewer than five series, half of them.
    pub(crate) fn agreed(&self) -> Option<i64> {
        let needed = self.series.div_ceil(2).clamp(1, 3);
        self.newest[needed - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;
    const START: i64 = 1_700_000_000_000;

    fn moment(wall_ms: i64, running_ms: i64) -> Moment {
        Moment {
            wall_ms: START + wall_ms,
            monotonic_ns: running_ms as u64 * 1_000_000,
            retention_ms: 90 * DAY,
            step_ms: HOUR,
            epoch: 0,
        }
    }

    fn begun() -> TrustedClock {
        let mut clock = TrustedClock::default();
        clock.begin(START, moment(0, 0));
        clock
    }

    fn at(clock: &mut TrustedClock, wall: i64, running: i64, data: i64) -> i64 {
        clock
            .now_ms(moment(wall, running), || Some(START + data))
            .unwrap()
            - START
    }

    #[test]
    fn nothing_is_trusted_before_there_are_samples() {
        let mut clock = TrustedClock::default();
        assert_eq!(clock.now_ms(moment(0, 0), || None), None);
        assert_eq!(at(&mut clock, 20 * 365 * DAY, 0, -5), -5);
    }

    #[test]
    fn running_time_and_a_clock_that_drifts_are_followed() {
        let mut clock = begun();
        let unasked = |clock: &mut TrustedClock, wall, running| {
            clock
                .now_ms(moment(wall, running), || panic!("asked"))
                .unwrap()
                - START
        };
        assert_eq!(unasked(&mut clock, 10, 10), 10);
        assert_eq!(unasked(&mut clock, HOUR + 10, 10), HOUR + 10);
        assert_eq!(unasked(&mut clock, 30 * DAY, 30 * DAY), 30 * DAY);
        assert_eq!(clock.jump, Jump::None);
    }

    #[test]
    fn a_clock_ahead_of_the_data_moves_nothing() {
        let mut clock = begun();
        let jumped = 20 * 365 * DAY;
        for running in [0, HOUR, 10 * DAY] {
            assert_eq!(at(&mut clock, jumped + running, running, 0), running);
            assert_eq!(clock.jump, Jump::Ahead(jumped));
        }
        // Mended.
        assert_eq!(at(&mut clock, 10 * DAY, 10 * DAY, 0), 10 * DAY);
        assert_eq!(clock.jump, Jump::None);
    }

    #[test]
    fn a_jump_with_the_data_is_held_and_then_followed_in_part() {
        let mut clock = begun();
        let jumped = 20 * 365 * DAY;
        for running in [0, 1, HOUR] {
            assert_eq!(at(&mut clock, jumped, running, jumped), running);
            assert_eq!(clock.jump, Jump::Followed(jumped - running));
        }
        let mut last = HOUR;
        for minute in 1..180 {
            let running = HOUR + minute * 60_000;
            let now = at(&mut clock, jumped, running, jumped);
            assert!(now > last && now - last <= DAY, "minute {minute}: {now}");
            last = now;
        }
        assert_eq!(at(&mut clock, jumped, 4 * HOUR, jumped), jumped);
    }

    #[test]
    fn a_jump_that_is_mended_while_it_is_held_moves_nothing() {
        let mut clock = begun();
        let jumped = 20 * 365 * DAY;
        assert_eq!(at(&mut clock, jumped, 0, jumped), 0);
        let minute = 60_000;
        assert_eq!(at(&mut clock, minute, minute, jumped), minute);
        assert_eq!(at(&mut clock, jumped, 2 * minute, jumped), 2 * minute);
        assert_eq!(at(&mut clock, jumped, HOUR, jumped), HOUR);
    }

    #[test]
    fn a_clock_that_goes_back_takes_nothing_back() {
        let mut clock = begun();
        assert_eq!(at(&mut clock, -30 * DAY, 5, 0), -30 * DAY);
        assert_eq!(clock.jump, Jump::Behind(30 * DAY + 5));
        assert_eq!(at(&mut clock, 10, 10, 0), 10);
    }

    #[test]
    fn several_series_must_agree() {
        let agreed = |series: &[i64]| {
            let mut newest = Newest::default();
            series.iter().for_each(|at| newest.note(*at));
            newest.agreed()
        };
        assert_eq!(agreed(&[]), None);
        assert_eq!(agreed(&[7]), Some(7));
        assert_eq!(agreed(&[7, 9]), Some(9));
        assert_eq!(agreed(&[7, 9, 8]), Some(8));
        assert_eq!(agreed(&[1, 2, 3, 900, 800, 4]), Some(4));
        assert_eq!(agreed(&[5, 5, 5, 5, 5]), Some(5));
    }
}
