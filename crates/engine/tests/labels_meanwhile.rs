//! Queries by labels while series change, park, wake and go: each finds all that are there throughout, and
//! none that never matched.

use crate::labels_model::labelled;
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_engine::{Db, Values};
use latewood_model::{Labels, Matcher, SeriesOptions, Test};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Series that stay, and others that come and go, while all of them change, park and wake.
struct Meanwhile {
    db: Db,
    seed: u64,
    is_over: AtomicU64,
}

/// How many of either.
const STAY: u64 = 300;

impl Meanwhile {
    fn new(seed: u64) -> Self {
        let all = Self {
            db: crate::db_support::open(&SimDisk::new()).unwrap(),
            seed,
            is_over: AtomicU64::new(0),
        };
        (0..STAY).for_each(|number| all.create("stay", number, 0));
        (STAY..2 * STAY).for_each(|number| all.create("other", number, 0));
        all
    }

    fn key(number: u64) -> Vec<u8> {
        format!("s{number:04}").into_bytes()
    }

    fn options(kind: &str, number: u64, round: u64) -> SeriesOptions {
        let [number, round] = [number, round].map(|one| one.to_string());
        let pairs = [("kind", kind), ("number", &number), ("round", &round)];
        let pairs = pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        labelled(&Labels::new(pairs).unwrap())
    }

    fn create(&self, kind: &str, number: u64, round: u64) {
        let options = Self::options(kind, number, round);
        self.db.create(&Self::key(number), &options).unwrap();
    }

    fn change(&self) {
        const ROUNDS: u64 = 60;
        let random = SimRandom::new(self.seed);
        for round in 1..=ROUNDS {
            for _ in 0..40 {
                let number = random.below(STAY);
                let key = Self::key(number);
                match random.below(4) {
                    // But for the labels that are asked for.
                    0 => {
                        let options = Self::options("stay", number, round);
                        self.db.alter(&key, &options).unwrap();
                    }
                    1 => {
                        self.db.remove(&[&Self::key(STAY + number)]).unwrap();
                        self.create("other", STAY + number, round);
                    }
                    _ => assert_eq!(self.db.last_sample(&key).unwrap(), None),
                }
            }
            self.db.flush().unwrap();
            self.db.park_idle().unwrap();
        }
        self.is_over.store(1, Ordering::Release);
        assert!(self.db.parked_len() as u64 > STAY / 2);
    }

    fn query(&self, seed: u64) {
        let random = SimRandom::new(seed);
        while self.is_over.load(Ordering::Acquire) == 0 {
            self.query_all();
            let number = random.below(STAY);
            let value = Test::AnyOf(vec![number.to_string().as_bytes().into()]);
            let found = self.db.select(&[Matcher::new(b"number", value)]).unwrap();
            let keys: Vec<&[u8]> = found.iter().map(|series| &*series.key).collect();
            assert_eq!(keys, [Self::key(number)]);
        }
    }

    fn query_all(&self) {
        let db = &self.db;
        let stay = Matcher::new(b"kind", Test::AnyOf(vec![b"stay"[..].into()]));
        let other = Matcher::new(b"kind", Test::NoneOf(vec![b"other"[..].into()]));
        for matcher in [&stay, &other] {
            let found = db.select(std::slice::from_ref(matcher)).unwrap();
            let keys = found.iter().map(|series| series.key.to_vec());
            assert!(keys.eq((0..STAY).map(Self::key)));
            let mut labels = vec![None; found.len()];
            let mut each = |at: usize, held: &[u8]| {
                labels[at] = Some(Labels::from_bytes(held).unwrap());
                ControlFlow::Continue(())
            };
            db.labels_of_all(&found, &mut each).unwrap();
            for (number, labels) in labels.iter().enumerate() {
                let mut labels = labels.as_ref().unwrap().iter();
                assert_eq!(labels.nth(1).unwrap().1, number.to_string().as_bytes());
            }
            let groups = db.group_by(found, b"number", None).unwrap();
            assert_eq!(groups.len() as u64, STAY);
        }
        let values = db.label_values(b"number", &[stay], None, None, usize::MAX, None);
        assert_eq!(values.unwrap().len() as u64, STAY);
        let names = db.label_names(&[], None, None, usize::MAX, None).unwrap();
        assert!(names.iter().eq([&b"kind"[..], b"number", b"round"]));
        let is_it = |value: &[u8]| value == b"stay";
        if let Values::Some(values) = db.label_values_where(b"kind", is_it, None, None).unwrap() {
            assert_eq!(values, [b"stay"[..].into()]);
        }
    }
}

#[test]
fn a_query_misses_none_that_parks_or_wakes_meanwhile() {
    let seed = latewood_engine::io::sim::seed();
    println!("seed {seed}");
    let all = Meanwhile::new(seed);
    std::thread::scope(|scope| {
        scope.spawn(|| all.change());
        scope.spawn(|| all.query(seed + 1));
        scope.spawn(|| all.query(seed + 2));
    });
}
