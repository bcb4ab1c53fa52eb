//! One node of a run: it claims the tablet, recovers, writes, is deposed or killed, and claims
//! again. What it was told about each write goes into the ledger.

use crate::ledger::mortal::{Mortal, Stage};
use crate::ledger::turns::Chance;
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::owner::{Claimed, Error, Owner};
use latewood_cluster::retry::{Cancel, Retry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What clients were told, and what is in the object store. A write is a number of its own; a
/// group holds one.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Writes that were sent.
    pub(crate) sent: u64,
    /// Acknowledged writes, with the sequence of the group.
    pub(crate) acknowledged: Vec<(u64, u64)>,
    /// Writes that were said not to count.
    pub(crate) denied: BTreeSet<u64>,
    /// For each manifest, the writes it covers: those of the groups 1, 2, ...
    pub(crate) manifests: BTreeMap<String, Vec<u64>>,
    /// What each owner recovered.
    pub(crate) recovered: Vec<Vec<u64>>,
    /// Owners that ended because of another, and those that were killed.
    pub(crate) deposed: u64,
    pub(crate) killed: u64,
    pub(crate) trims: u64,
    pub(crate) farewells: u64,
}

pub(crate) struct Node {
    pub(crate) stage: Arc<Stage>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    pub(crate) me: usize,
    pub(crate) chance: Chance,
}

pub(crate) fn partition() -> Partition {
    Partition {
        topic: "t".to_owned(),
        number: 0,
    }
}

/// Claims through `kafka` with waits of no time.
pub(crate) fn claim(
    kafka: Arc<dyn Kafka>,
    nonce: u64,
    cancel: Arc<Cancel>,
) -> Result<Claimed, Error> {
    let claimant = Claimant {
        nonce: u128::from(nonce).to_be_bytes(),
        node: 1,
        address: String::new(),
    };
    let retry = Retry {
        first: std::time::Duration::ZERO,
        longest: std::time::Duration::ZERO,
        cancel,
    };
    Owner::claim(kafka, partition(), None, &claimant, retry)
}

/// The writes of all groups that count: those of the manifest, then those of the log.
pub(crate) fn recover(claimed: &Claimed, ledger: &Mutex<Ledger>) -> Result<Vec<u64>, Error> {
    let named = claimed.checkpoint.as_ref();
    let mut table = named.map_or_else(Vec::new, |checkpoint| {
        let ledger = ledger.lock().expect("no panic before");
        ledger.manifests[&checkpoint.manifest].clone()
    });
    for data in claimed.owner.history() {
        let data = data?;
        let (values, rest) = data.payload.as_chunks::<8>();
        assert!(rest.is_empty() && values.len() == data.groups as usize);
        for (value, at) in values.iter().zip(data.sequence as usize - 1..) {
            let value = u64::from_le_bytes(*value);
            match table.get(at) {
                Some(known) => assert_eq!(*known, value),
                None => {
                    assert_eq!(table.len(), at, "a group is missing");
                    table.push(value);
                }
            }
        }
    }
    assert_eq!(table.len() as u64 + 1, claimed.owner.state().sequence);
    Ok(table)
}

impl Node {
    pub(crate) fn run(mut self) {
        let stage = Arc::clone(&self.stage);
        let _present = stage.turns.join(self.me);
        while stage.calls_left.load(Ordering::Relaxed) > 0 {
            if let Err(error) = self.life() {
                let mut ledger = self.ledger.lock().expect("no panic before");
                match error {
                    Error::Deposed { .. } => ledger.deposed += 1,
                    Error::Cancelled => ledger.killed += 1,
                    // Another owner, of whom this one does not know, trimmed the log.
                    Error::Succeeded { .. } => ledger.deposed += 1,
                    error => panic!("{error}"),
                }
            }
        }
    }

    fn life(&mut self) -> Result<(), Error> {
        let cancel = Arc::new(Cancel::default());
        let calls = [10, 50, 1000][self.chance.below(3) as usize];
        let kafka = Arc::new(Mortal {
            stage: Arc::clone(&self.stage),
            me: self.me,
            calls_left: AtomicU64::new(1 + self.chance.below(calls)),
            cancel: Arc::clone(&cancel),
        });
        let nonce = self.chance.below(u64::MAX);
        let claimed = claim(kafka, nonce, cancel)?;
        let mut table = recover(&claimed, &self.ledger)?;
        let mut ledger = self.ledger.lock().expect("no panic before");
        ledger.recovered.push(table.clone());
        drop(ledger);
        let mut owner = claimed.owner;
        for _ in 0..self.chance.below(40) {
            match self.chance.below(10) {
                0 => self.checkpoint(&mut owner, &table)?,
                1 => drop(owner.tick()?),
                _ => self.write(&mut owner, &mut table)?,
            }
        }
        if self.chance.below(2) == 0 {
            owner.farewell()?;
            self.ledger.lock().expect("no panic before").farewells += 1;
        }
        Ok(())
    }

    fn write(&mut self, owner: &mut Owner, table: &mut Vec<u64>) -> Result<(), Error> {
        let sequence = table.len() as u64 + 1;
        let groups = 1 + self.chance.below(3);
        let mut ledger = self.ledger.lock().expect("no panic before");
        let values: Vec<u64> = (ledger.sent..ledger.sent + groups).collect();
        ledger.sent += groups;
        drop(ledger);
        let payload: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let appended = owner.append(sequence, groups as u32, &payload);
        let mut ledger = self.ledger.lock().expect("no panic before");
        match &appended {
            Ok(_) => {
                ledger
                    .acknowledged
                    .extend(values.iter().copied().zip(sequence..));
                table.extend(values);
            }
            Err(Error::Deposed { .. }) => ledger.denied.extend(values),
            // Killed, or it cannot be told any more.
            Err(_) => {}
        }
        appended.map(drop)
    }

    fn checkpoint(&mut self, owner: &mut Owner, table: &[u64]) -> Result<(), Error> {
        let (first, last) = (owner.begin().1.sequence, owner.state().sequence);
        let sequence = first + self.chance.below(last - first + 1);
        let covered = table[..sequence as usize - 1].to_vec();
        let mut ledger = self.ledger.lock().expect("no panic before");
        let name = format!("m{}", ledger.manifests.len());
        ledger.manifests.insert(name.clone(), covered);
        drop(ledger);
        owner.checkpoint(&name, [0; 32], 1, sequence)?;
        match owner.trimmer().run() {
            Ok(()) => self.ledger.lock().expect("no panic before").trims += 1,
            Err(Error::NotTrimmed(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
