//! Running a job: writing the outputs and publishing them in place of the inputs.
//!
//! Inputs are read and outputs written with no lock held except the turn of
//! merging. Before publication the inputs are compared with the current manifest:
//! if all series were removed meanwhile, the outputs are garbage and nothing is
//! published.
//!
//! Tested by `tests/merge`.

use crate::background::merge::living::Living;
use crate::background::merge::output::{Outputs, Target};
use crate::background::merge::plan::{BlockUsage, Job};
use crate::background::merge::rewrite::Stretch;
use crate::background::merge::state::{Counters, Merger, PartitionMemory, over_bytes};
use crate::background::merge::step::{Chosen, PartitionState};
use crate::background::merge::usage::borders;
use crate::base::error::{Error, ErrorKind, Result};
use crate::storage::block::{BlockMeta, Family};
use crate::storage::files::Manifest;
use std::ops::Range;

/// Adjacent blocks of a list, and the blocks that replace them.
struct Change {
    family: Family,
    old: Vec<u64>,
    new: Vec<BlockMeta>,
}

impl Merger {
    /// Runs the job. Returns false if the blocks changed meanwhile.
    pub(crate) fn carry_out(
        &self,
        found: &PartitionState,
        chosen: Chosen,
        known: &mut PartitionMemory,
    ) -> Result<bool> {
        let Chosen { job, living, usage } = chosen;
        if let Job::Drop { base, late } = job {
            if let Some(living) = &living {
                self.sync_for(living)?;
            }
            return self.drop_blocks(found, &base, &late);
        }
        let living = match living {
            Some(living) => living,
            None => self.living(found.partition, found.floor)?,
        };
        let new_file = || {
            let number = self.core.store.new_file_number();
            (number, self.core.store.block_path(number))
        };
        let on_written = |bytes| self.merge_goes_on(bytes);
        let mut outputs = Outputs::new(Target {
            env: &self.core.env,
            new_file: &new_file,
            on_written: &on_written,
        });
        let changes = self.write(found, &living, usage.as_ref(), &job, &mut outputs)?;
        self.sync_for(&living)?;
        let published = self.replace(found, &changes);
        if !matches!(published, Ok(true)) && self.core.check_writable().is_ok() {
            // The outputs are certainly not in the manifest and are removed.
            return published;
        }
        outputs.keep();
        if published.is_ok() {
            self.note_done(&job, &changes, known);
        }
        published
    }

    /// Writes the outputs of a job.
    fn write(
        &self,
        found: &PartitionState,
        living: &Living,
        usage: Option<&BlockUsage>,
        job: &Job,
        outputs: &mut Outputs<'_>,
    ) -> Result<Vec<Change>> {
        Ok(match job {
            Job::MergeBase(places) => {
                let stretch = Stretch {
                    places: places.clone(),
                    borders: Vec::new(),
                };
                let done = found.rewrite(living, &[]).base(&[stretch], outputs)?;
                let new = done.base.into_iter().flatten().collect();
                vec![Change::new(Family::Base, &found.base[places.clone()], new)]
            }
            Job::MergeLate(places) => {
                let inputs = &found.blocks.late[places.clone()];
                let new = found.rewrite(living, inputs).late(outputs)?;
                let (inputs, new) = (&found.late[places.clone()], new.into_iter().collect());
                vec![Change::new(Family::Late, inputs, new)]
            }
            Job::Fold(groups) => self.fold(found, living, usage, groups, outputs)?,
            Job::Drop { .. } => Vec::new(),
        })
    }

    fn note_done(&self, job: &Job, changes: &[Change], known: &mut PartitionMemory) {
        let counters = &self.counters;
        let counter = match job {
            Job::MergeBase(_) => &counters.base_merges,
            Job::MergeLate(_) => &counters.late_merges,
            Job::Fold(_) => {
                let late = changes
                    .iter()
                    .filter(|change| change.family == Family::Late);
                let left = late.flat_map(|change| &change.new);
                known.late_bytes_seen = left.map(|meta| meta.len_bytes).sum();
                &counters.folds
            }
            Job::Drop { .. } => return,
        };
        Counters::add(counter, 1);
    }

    fn fold(
        &self,
        found: &PartitionState,
        living: &Living,
        usage: Option<&BlockUsage>,
        groups: &[Range<usize>],
        outputs: &mut Outputs<'_>,
    ) -> Result<Vec<Change>> {
        let blocks = &found.blocks;
        let cap_bytes = self.block_bytes_max();
        let stretches = groups.iter().map(|places| {
            let over = usage.map_or(0, |usage| over_bytes(usage, places));
            Ok(Stretch {
                places: places.clone(),
                borders: borders(&blocks.base, places, &blocks.late, over, cap_bytes)?,
            })
        });
        let stretches = stretches.collect::<Result<Vec<Stretch>>>()?;
        let rewrite = found.rewrite(living, &blocks.late);
        let done = rewrite.base(&stretches, outputs)?;
        let base = groups.iter().zip(done.base);
        let base =
            base.map(|(places, new)| Change::new(Family::Base, &found.base[places.clone()], new));
        let mut changes: Vec<Change> = base.collect();
        let left = done.late.into_iter().collect();
        changes.push(Change::new(Family::Late, &found.late, left));
        Ok(changes)
    }

    /// Makes the log durable up to the position of the live series: samples may be
    /// dropped only if the removal of their series survives a power cut.
    fn sync_for(&self, living: &Living) -> Result<()> {
        match self.core.log() {
            Some(log) => log.sync_to(living.position),
            None => Ok(()),
        }
    }

    fn drop_blocks(&self, found: &PartitionState, base: &[usize], late: &[usize]) -> Result<bool> {
        let base = base.iter().map(|&place| &found.base[place]);
        let late = late.iter().map(|&place| &found.late[place]);
        let gone: Vec<&BlockMeta> = base.chain(late).collect();
        let change =
            |meta: &&BlockMeta| Change::new(meta.family, std::slice::from_ref(*meta), Vec::new());
        let changes: Vec<Change> = gone.iter().map(change).collect();
        let done = self.replace(found, &changes)?;
        if done {
            let counters = &self.counters;
            let bytes = gone.iter().map(|meta| meta.len_bytes).sum();
            Counters::add(&counters.blocks_dropped, gone.len() as u64);
            Counters::add(&counters.bytes_dropped, bytes);
        }
        Ok(done)
    }

    /// Publishes the changes. Returns false if they no longer fit the manifest.
    fn replace(&self, found: &PartitionState, changes: &[Change]) -> Result<bool> {
        let mut fits = true;
        let published = self.core.publish(&mut |manifest| {
            fits = manifest.epoch == found.epoch
                && changes
                    .iter()
                    .all(|change| change.apply(manifest, found.partition));
            if fits {
                Ok(())
            } else {
                Err(Error::new(
                    ErrorKind::Invalid,
                    "the blocks changed meanwhile",
                ))
            }
        });
        let counters = &self.counters;
        if !fits {
            Counters::add(&counters.abandoned, 1);
            return Ok(false);
        }
        published?;
        let numbers = |change: &Change| change.old.clone();
        let old: Vec<u64> = changes.iter().flat_map(numbers).collect();
        let metas = found.base.iter().chain(&found.late);
        let read = metas.filter(|meta| old.contains(&meta.number));
        let written = changes.iter().flat_map(|change| &change.new);
        if written.clone().next().is_some() {
            Counters::add(&counters.bytes_read, read.map(|meta| meta.len_bytes).sum());
        }
        Counters::add(
            &counters.bytes_written,
            written.map(|meta| meta.len_bytes).sum(),
        );
        Ok(true)
    }
}

impl Change {
    fn new(family: Family, old: &[BlockMeta], new: Vec<BlockMeta>) -> Self {
        Self {
            family,
            old: old.iter().map(|meta| meta.number).collect(),
            new,
        }
    }

    /// Replaces the old blocks with the new ones. Returns false if the old ones are
    /// not adjacent in the list.
    fn apply(&self, manifest: &mut Manifest, partition: u32) -> bool {
        let files = manifest.partition(partition);
        let list = match self.family {
            Family::Base => &mut files.base,
            Family::Late => &mut files.late,
        };
        // Without old blocks, the new ones go before blocks added meanwhile.
        let start = match self.old.first() {
            None => Some(0),
            Some(first) => list.iter().position(|meta| meta.number == *first),
        };
        let Some(start) = start else { return false };
        let end = start + self.old.len();
        let there = list.get(start..end).is_some_and(|there| {
            there
                .iter()
                .zip(&self.old)
                .all(|(meta, old)| meta.number == *old)
        });
        if there {
            list.splice(start..end, self.new.iter().cloned());
        }
        there
    }
}
