//! Search of the states of a model: all of them, breadth first, or some of them, by chance.
//!
//! A state is known by 64 bits of its hash, so that a search of a million states fits in memory;
//! that two states are taken for one has a chance of 1 in 10^7.

use crate::ledger::number;
use crate::ledger::turns::Chance;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::time::{Duration, Instant};

/// For tables of what a model knows.
pub(crate) type Mixed = BuildHasherDefault<Mix>;

/// A hash of small numbers. That of the standard library takes a third of a search, as it is
/// compiled without optimisation here.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // Another number is another state at each step, and each bit matters to all.
        let mixed = (self.0 ^ number).wrapping_add(1);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// What can happen, and what must not be.
pub(crate) trait Model {
    type World: Clone + Hash;
    /// What follows from a state, worked out once for all questions about it.
    type Seen;
    type Step: Copy + fmt::Debug;
    type Violation: Copy + fmt::Debug;

    fn start(&self) -> Self::World;
    fn look(&mut self, world: &Self::World) -> Self::Seen;
    /// The states one step behind `world`.
    fn steps(&mut self, world: &Self::World, seen: &Self::Seen) -> Vec<(Self::Step, Self::World)>;
    fn violations(&mut self, world: &Self::World, seen: &Self::Seen) -> Vec<Self::Violation>;
    /// How often a walk takes this step, beside others.
    fn weight(&self, _step: Self::Step) -> u64 {
        1
    }
    /// Counts what a search must have come by, or else it shows nothing.
    fn note(&mut self, _world: &Self::World, _seen: &Self::Seen) {}
}

/// What a search found.
pub(crate) struct Outcome<S, V> {
    /// States that were looked at.
    pub(crate) states: usize,
    /// The first violation, and the way to it.
    pub(crate) violation: Option<(V, Trace<S>)>,
}

/// Steps from the start.
pub(crate) struct Trace<S>(Vec<S>);

impl<S: fmt::Debug> fmt::Display for Trace<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| writeln!(f, "  {step:?}"))
    }
}

impl<S: fmt::Debug, V: fmt::Debug> Outcome<S, V> {
    /// Panics with the way to the violation, if there is one.
    #[track_caller]
    pub(crate) fn holds(&self, what: &dyn fmt::Debug) {
        if let Some((violation, trace)) = &self.violation {
            panic!("{violation:?} with {what:?}:\n{trace}");
        }
    }

    /// Panics if no violation was found; prints the way to it.
    #[track_caller]
    pub(crate) fn finds(&self, what: &dyn fmt::Debug) {
        let states = self.states;
        let Some((violation, trace)) = &self.violation else {
            panic!("{what:?} is not found in {states} states");
        };
        println!("{what:?}: {violation:?} after {states} states:\n{trace}");
    }
}

/// Looks at all states, those that are fewer steps from the start first, until one violates a
/// property of those watched.
pub(crate) fn search<M: Model>(
    model: &mut M,
    watched: impl Fn(M::Violation) -> bool,
) -> Outcome<M::Step, M::Violation> {
    let hasher = Mixed::default();
    let start = model.start();
    let mut known = HashSet::<u64, Mixed>::default();
    known.insert(hasher.hash_one(&start));
    // Those that are not looked at yet, in the order of discovery; for each state, the one before
    // it and the step between.
    let mut queue = VecDeque::from([start]);
    let mut ways: Vec<Option<(usize, M::Step)>> = vec![None];
    let mut states = 0;
    while let Some(world) = queue.pop_front() {
        let seen = model.look(&world);
        let violations = model.violations(&world, &seen);
        if let Some(violation) = violations.into_iter().find(|&found| watched(found)) {
            let violation = Some((violation, way(&ways, states)));
            return Outcome { states, violation };
        }
        model.note(&world, &seen);
        for (step, then) in model.steps(&world, &seen) {
            if known.insert(hasher.hash_one(&then)) {
                ways.push(Some((states, step)));
                queue.push_back(then);
            }
        }
        states += 1;
    }
    let violation = None;
    Outcome { states, violation }
}

fn way<S: Copy>(ways: &[Option<(usize, S)>], mut index: usize) -> Trace<S> {
    let mut steps = Vec::new();
    while let Some((before, step)) = ways[index] {
        steps.push(step);
        index = before;
    }
    steps.reverse();
    Trace(steps)
}

/// Walks of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walks {
    /// From each seed.
    pub(crate) walks: usize,
    /// Steps of each.
    pub(crate) length: usize,
    /// At least; a soak takes more.
    pub(crate) seeds: u64,
}

/// Walks by chance and finds nothing. `LATEWOOD_SEED` and `LATEWOOD_SOAK_SECONDS` as in
/// [`crate::ledger`].
#[track_caller]
pub(crate) fn walks_hold<M: Model>(model: &mut M, walks: Walks) {
    let limit = Duration::from_secs(number("LATEWOOD_SOAK_SECONDS").unwrap_or(0));
    let first = number("LATEWOOD_SEED").unwrap_or(1);
    let (begun, mut done) = (Instant::now(), 0);
    while done < walks.seeds || begun.elapsed() < limit {
        let seed = first.wrapping_add(done);
        walk(model, seed, walks, |_| true).holds(&("LATEWOOD_SEED", seed));
        done += 1;
    }
    println!("{walks:?}: {done} seeds from {first}");
}

/// All of it follows from `seed`.
pub(crate) fn walk<M: Model>(
    model: &mut M,
    seed: u64,
    Walks { walks, length, .. }: Walks,
    watched: impl Fn(M::Violation) -> bool,
) -> Outcome<M::Step, M::Violation> {
    let mut chance = Chance(seed);
    let mut states = 0;
    for _ in 0..walks {
        let mut world = model.start();
        let mut way = Vec::new();
        loop {
            let seen = model.look(&world);
            states += 1;
            let violations = model.violations(&world, &seen);
            if let Some(violation) = violations.into_iter().find(|&found| watched(found)) {
                let violation = Some((violation, Trace(way)));
                return Outcome { states, violation };
            }
            let mut steps = model.steps(&world, &seen);
            if steps.is_empty() || way.len() == length {
                break;
            }
            let weights: Vec<u64> = steps.iter().map(|(step, _)| model.weight(*step)).collect();
            let (step, then) = steps.swap_remove(choose(&mut chance, &weights));
            way.push(step);
            world = then;
        }
    }
    let violation = None;
    Outcome { states, violation }
}

fn choose(chance: &mut Chance, weights: &[u64]) -> usize {
    let mut left = chance.below(weights.iter().sum());
    let is_passed = |weight: &u64| {
        let passed = left >= *weight;
        left = left.saturating_sub(*weight);
        passed
    };
    weights.iter().copied().take_while(is_passed).count()
}
