//! Simulated time and randomness: both repeat.

use crate::io::{Clock, Random};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct SimClock {
    now_ms: AtomicI64,
    monotonic_ns: AtomicU64,
}

impl Default for SimClock {
    fn default() -> Self {
        Self {
            now_ms: AtomicI64::new(1_700_000_000_000),
            monotonic_ns: AtomicU64::new(0),
        }
    }
}

impl SimClock {
    /// Lets the wall clock jump, back where `by_ms` is negative.
    pub fn jump_ms(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    /// Moves both clocks on.
    pub fn advance_ms(&self, by_ms: u32) {
        self.now_ms.fetch_add(i64::from(by_ms), Ordering::SeqCst);
        self.monotonic_ns
            .fetch_add(u64::from(by_ms) * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::SeqCst)
    }
}

/// The seed of a random test: that of `LATEWOOD_SEED`, or always the same. It is printed.
///
/// # Panics
/// If `LATEWOOD_SEED` is not a number.
pub fn seed() -> u64 {
    let given = std::env::var("LATEWOOD_SEED").map(|text| text.parse());
    let seed = given.map_or(1, |given| given.expect("LATEWOOD_SEED is a number"));
    println!("LATEWOOD_SEED={seed} repeats this run");
    seed
}

/// Randomness that a seed repeats (splitmix64: Steele, Lea and Flood, "Fast
/// Splittable Pseudorandom Number Generators", OOPSLA 2014).
#[derive(Debug)]
pub struct SimRandom(AtomicU64);

impl SimRandom {
    /// A generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }
}

impl Random for SimRandom {
    fn next_u64(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut z = self.0.fetch_add(step, Ordering::SeqCst).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
