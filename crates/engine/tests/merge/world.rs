//! A database and a naive model of its contents.

use crate::db_support::{DIR, append, last_wins, options, read};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Db, Options, Result};
use latewood_model::DuplicatePolicy;
use std::collections::BTreeMap;
use std::path::Path;

/// Seeded random numbers: the splitmix64 generator.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Blocks so small that a few thousand samples make many.
pub(crate) fn small_blocks() -> Options {
    Options {
        block_bytes_max: 16 * 1024,
        ..options(2)
    }
}

pub(crate) fn open_with(disk: &SimDisk, options: Options) -> Result<Db> {
    Db::open(&disk.env(1), Path::new(DIR), options, last_wins())
}

pub(crate) type Samples = BTreeMap<i64, f64>;

/// What each series should hold.
#[derive(Clone, Default)]
pub(crate) struct Expected(pub(crate) BTreeMap<Vec<u8>, Samples>);

impl Expected {
    /// Appends to the database and, where it takes the sample, here.
    pub(crate) fn append(
        &mut self,
        db: &Db,
        key: &[u8],
        (timestamp, value): (i64, f64),
        policy: DuplicatePolicy,
    ) -> Result<()> {
        let one = Append {
            key,
            timestamp,
            value,
            on_duplicate: Some(policy),
            create: Create::Defaults,
        };
        let outcome = append(db, &[one])?;
        let samples = self.0.entry(key.to_vec()).or_default();
        let kept = match samples.get(&timestamp) {
            Some(&old) => policy.resolve(old, value),
            None => Some(value),
        };
        assert_eq!(
            outcome[0].is_ok(),
            kept.is_some(),
            "{timestamp} {value} {policy}"
        );
        if let Some(kept) = kept {
            samples.insert(timestamp, kept);
        }
        Ok(())
    }

    pub(crate) fn delete(&mut self, db: &Db, key: &[u8], from: i64, to: i64) -> Result<()> {
        let Some(samples) = self.0.get_mut(key) else {
            return Ok(());
        };
        let (deleted, _) = db.delete_range(key, from, to)?;
        let before = samples.len();
        samples.retain(|at, _| !(from..=to).contains(at));
        assert_eq!(deleted, (before - samples.len()) as u64, "{from}..={to}");
        Ok(())
    }

    pub(crate) fn remove(&mut self, db: &Db, key: &[u8]) -> Result<()> {
        let (removed, _) = db.remove(&[key])?;
        assert_eq!(removed == 1, self.0.remove(key).is_some());
        Ok(())
    }

    /// Every series holds this and nothing else.
    pub(crate) fn check(&self, db: &Db, what: &str) {
        assert_eq!(db.len(), self.0.len(), "{what}");
        for (key, samples) in &self.0 {
            let bits = |(at, value): (i64, f64)| (at, value.to_bits());
            let seen = read(db, key).unwrap();
            let seen: Vec<_> = seen.iter().map(|s| bits((s.timestamp, s.value))).collect();
            let expected: Vec<_> = samples.iter().map(|(&at, &v)| bits((at, v))).collect();
            assert!(seen == expected, "{what}: {}", difference(&seen, &expected));
        }
    }
}

fn difference(seen: &[(i64, u64)], expected: &[(i64, u64)]) -> String {
    let place = seen.iter().zip(expected).position(|(a, b)| a != b);
    let place = place.unwrap_or(seen.len().min(expected.len()));
    let (seen_at, expected_at) = (seen.get(place), expected.get(place));
    let counts = (seen.len(), expected.len());
    format!("{counts:?} samples, at {place} {seen_at:?} and not {expected_at:?}")
}

/// Bytes of all block files, and how many there are.
pub(crate) fn block_files(disk: &SimDisk) -> (usize, u64) {
    let folder = Path::new(DIR).join("blocks");
    let names = disk.env(1).disk.list(&folder).unwrap_or_default();
    let sizes = names
        .iter()
        .map(|name| disk.bytes(&folder.join(name)).unwrap().len() as u64);
    (names.len(), sizes.sum())
}
