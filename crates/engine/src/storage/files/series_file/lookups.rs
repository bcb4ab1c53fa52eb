//! What is looked up in a file of parked series beside rows: labels and keys, collected from row to
//! row by its writer, and by a reader that verifies what the file says. Tested with the files.

use crate::base::key_hash::key_hash;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::pairs::Pairs;

/// It takes the memory of each label of the rows once, a few bytes for each time that one is
/// carried, and a hash for each row.
pub(super) struct Lookups {
    key_seed: u64,
    pub(super) pairs: Pairs,
    /// As their section has them.
    pub(super) hashes: Vec<u8>,
}

impl Lookups {
    pub(super) fn new(key_seed: u64) -> Self {
        Self {
            key_seed,
            pairs: Pairs::default(),
            hashes: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, row: &SeriesRow) {
        self.pairs.note(row);
        let hash = key_hash(self.key_seed, &row.key);
        self.hashes.extend(hash.to_le_bytes());
    }
}
