//! Quarantine of blocks that cannot be opened.
//!
//! A block whose header, footer or root is damaged is left out of the block set and
//! kept in quarantine: it is linked there, then a manifest without it is published,
//! then its old name is removed. After a crash in between it is found damaged
//! again. All other blocks are served; `docs/durability.md` explains what a missing
//! block means. Damage inside a block is reported by the query that reads it.

use crate::base::error::{ErrorKind, Result};
use crate::base::names;
use crate::io::quarantine::Quarantine;
use crate::log::LogHole;
use crate::recovery::Recovery;
use crate::storage::block::{Block, BlockMeta, BlockSet, Family, PartitionBlocks};
use crate::storage::files::LostBlock;
use crate::storage::files::directory::block_path;
use crate::storage::files::doubt::{self, Doubt};
use crate::storage::files::manifest::Manifest;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Recovery<'_> {
    /// Takes over the files of a directory as found, but for damaged blocks.
    pub(crate) fn adopt(&self, mut manifest: Manifest, next_file: u64) -> Result<()> {
        let mut published = self.core.store.published.lock();
        let blocks = Arc::new(self.open_sound_blocks(&mut manifest)?);
        let next_file = next_file.max(manifest.next_file);
        self.core
            .store
            .next_file
            .store(next_file, Ordering::Relaxed);
        self.core.store.blocks.set(blocks);
        let parked = self.core.store.open_parked(&manifest)?;
        self.core.set_parked_files(parked);
        self.core.store.disk_budget.note_catalogue(&manifest);
        if manifest.key_seed == 0 {
            manifest.key_seed = self.core.env.random.next_u64().max(1);
        }
        self.core.parked_keys.set_seed(manifest.key_seed);
        published.manifest = manifest;
        Ok(())
    }

    /// Opens the blocks of `manifest` and takes those out of it that are
    /// damaged.
    ///
    /// # Errors
    /// `Corrupt` for the first damaged one where the options are strict,
    /// `Unsupported`, `Io`.
    pub(crate) fn open_sound_blocks(&self, manifest: &mut Manifest) -> Result<BlockSet> {
        let mut sound = BlockSet::default();
        for (&partition, files) in &mut manifest.partitions {
            let mut blocks = PartitionBlocks::default();
            self.open_list(partition, &mut files.base, &mut blocks.base)?;
            self.open_list(partition, &mut files.late, &mut blocks.late)?;
            sound.partitions.insert(partition, blocks);
        }
        self.core.store.open_blocks(manifest, &sound)
    }

    fn open_list(
        &self,
        partition: u32,
        list: &mut Vec<BlockMeta>,
        opened: &mut Vec<Arc<Block>>,
    ) -> Result<()> {
        let mut kept = Vec::with_capacity(list.len());
        for meta in list.drain(..) {
            let path = block_path(self.core.store.dir(), meta.number);
            match Block::open(&self.core.env, &path, &meta, &self.core.store.cache) {
                Ok(block) => {
                    opened.push(Arc::new(block));
                    kept.push(meta);
                }
                Err(error) if error.kind() == ErrorKind::Corrupt && !self.core.options.strict => {
                    let dir = names::quarantine_dir(self.core.store.dir());
                    let lost = LostBlock {
                        kept_as: Quarantine::new(&self.core.env, &dir).keep(&path)?,
                        reason: error.to_string(),
                        is_late: meta.family == Family::Late,
                        partition,
                        series: meta.series,
                        samples: meta.samples,
                        first: meta.first,
                        last: meta.last,
                    };
                    self.core.store.lost.lock().push(lost);
                }
                Err(error) => return Err(error),
            }
        }
        *list = kept;
        Ok(())
    }

    /// Notes what the operator has to accept: what this start lost, and what earlier ones
    /// lost.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn note_doubts(&self, lost: &[LostBlock], holes: &[LogHole]) -> Result<()> {
        let (env, store) = (&self.core.env, &self.core.store);
        let dir = names::quarantine_dir(store.dir());
        let mut doubts = doubt::read(env, &dir)?;
        let known = doubts.len();
        let new = lost.iter().map(Doubt::of_block);
        for doubt in new.chain(holes.iter().map(Doubt::of_hole)) {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
        if doubts.len() > known {
            doubt::write(env, &dir, &doubts)?;
        }
        *store.doubts.lock() = doubts.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
