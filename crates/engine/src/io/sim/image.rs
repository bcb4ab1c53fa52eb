//! What the simulated disk holds: files as sectors, names as changes.

use super::SimRandom;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the disk writes as one; torn writes tear inside.
const SECTOR_BYTES: usize = 512;

/// In sectors, what may be kept or lost as one: a sector, a page, the pages that a
/// file system writes together. Small units tear every long group, and only large
/// ones leave whole groups behind one that is lost.
const UNITS: [usize; 3] = [1, 8, 128];

/// One file: what readers see, what is durable, and where the two may differ.
#[derive(Clone, Debug, Default)]
pub(super) struct FileImage {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last sync.
    dirty: BTreeSet<usize>,
    /// Sectors whose sync failed: readers see them, the disk never will.
    doomed: BTreeSet<usize>,
}

impl FileImage {
    /// A new file of zeros, none of it durable.
    pub(super) fn zeros(len_bytes: u64) -> Self {
        // Tests make small files.
        Self {
            live: vec![0; len_bytes as usize],
            ..Self::default()
        }
    }

    /// A file that is durable as it is.
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self {
            live: bytes.clone(),
            durable: bytes,
            ..Self::default()
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn unsynced_sectors(&self) -> usize {
        let length_differs = usize::from(self.live.len() != self.durable.len());
        self.dirty.len() + length_differs
    }

    /// Whether a sync would make any byte durable.
    pub(super) fn owes_writes(&self) -> bool {
        !self.dirty.is_empty() || self.live.len() > self.durable.len()
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        let start = offset as usize;
        let end = start + bytes.len();
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[start..end].copy_from_slice(bytes);
        let sectors = start / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES;
        self.dirty.extend(sectors);
    }

    pub(super) fn truncate(&mut self, len_bytes: u64) {
        self.live.truncate(len_bytes as usize);
        let sectors = self.live.len().div_ceil(SECTOR_BYTES);
        self.dirty.retain(|&sector| sector < sectors);
    }

    pub(super) fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            if !self.doomed.contains(&sector) {
                copy_sector(&mut self.durable, &self.live, sector);
            }
        }
    }

    /// After a failed sync the kernel drops the dirty flags: a later sync
    /// succeeds and writes nothing of it.
    pub(super) fn fail_sync(&mut self) {
        self.doomed.append(&mut self.dirty);
    }

    /// What a failed sync lost is written once more.
    pub(super) fn find_lost(&mut self) {
        self.dirty.append(&mut self.doomed);
    }

    /// The file after a power cut.
    pub(super) fn crash(&self, random: &SimRandom) -> Self {
        let mut bytes = self.durable.clone();
        // The length is metadata of its own: the old or the new.
        if random.below(2) == 0 {
            bytes.resize(self.live.len(), 0);
        }
        let sectors = bytes.len().div_ceil(SECTOR_BYTES);
        // Some cuts lose almost everything or almost nothing.
        let odds = random.below(5);
        let unit = UNITS[random.below(UNITS.len() as u64) as usize];
        let (mut last_unit, mut fate) = (None, 0);
        for &sector in self.dirty.iter().filter(|&&sector| sector < sectors) {
            if last_unit.replace(sector / unit) != Some(sector / unit) {
                fate = match odds {
                    0 => 0,
                    1 => 1,
                    _ => random.below(3),
                };
            }
            match fate {
                0 => {}
                2 if unit > 1 && random.below(unit as u64) > 0 => {}
                1 => copy_sector(&mut bytes, &self.live, sector),
                _ => {
                    let torn = random.below(SECTOR_BYTES as u64) as usize;
                    tear_sector(&mut bytes, &self.live, sector, torn, random.below(2) == 0);
                }
            }
        }
        Self::durable(bytes)
    }
}

fn copy_sector(to: &mut [u8], from: &[u8], sector: usize) {
    let start = sector * SECTOR_BYTES;
    let end = (start + SECTOR_BYTES).min(to.len()).min(from.len());
    if start < end {
        to[start..end].copy_from_slice(&from[start..end]);
    }
}

/// Takes the bytes of one sector before (or from) `torn` on from the new.
fn tear_sector(to: &mut [u8], from: &[u8], sector: usize, torn: usize, front: bool) {
    let start = sector * SECTOR_BYTES;
    let end = (start + SECTOR_BYTES).min(to.len()).min(from.len());
    let cut = (start + torn).min(end);
    let new = if front { start..cut } else { cut..end };
    if !new.is_empty() {
        to[new.clone()].copy_from_slice(&from[new]);
    }
}

/// A change of one directory's names.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Set(PathBuf, u64),
    Move(PathBuf, PathBuf, u64),
    Clear(PathBuf),
    /// A directory is made.
    Directory(PathBuf),
}

impl NameChange {
    /// The directory whose sync makes the change durable.
    pub(super) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Set(path, _)
            | Self::Move(_, path, _)
            | Self::Clear(path)
            | Self::Directory(path) => path.parent(),
        }
    }
}

/// Applies a change where what it depends on is there.
pub(super) fn apply_change(
    names: &mut BTreeMap<PathBuf, u64>,
    directories: &mut BTreeSet<PathBuf>,
    change: &NameChange,
) {
    match change {
        NameChange::Set(path, id) => {
            names.insert(path.clone(), *id);
        }
        NameChange::Move(from, to, id) => {
            // A file whose creation was lost cannot be moved.
            if names.get(from) == Some(id) {
                names.remove(from);
                names.insert(to.clone(), *id);
            }
        }
        NameChange::Clear(path) => {
            names.remove(path);
        }
        NameChange::Directory(path) => {
            directories.insert(path.clone());
        }
    }
}
