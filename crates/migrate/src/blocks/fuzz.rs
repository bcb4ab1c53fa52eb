//! Any files of a block, for the fuzz target.

use super::index::Index;
use super::{chunk, parse_tombstones};
use std::io::Cursor;

/// Reads a chunk, an index or tombstones, as `kind` says: what is damaged is an error.
pub fn fuzz_prometheus(kind: u8, bytes: &[u8]) {
    match kind % 3 {
        0 => {
            let mut samples = Vec::new();
            let whole = chunk::decode(bytes, &mut samples);
            let count = bytes
                .first_chunk()
                .map_or(0, |count| u16::from_be_bytes(*count));
            assert!(whole.is_none() || samples.len() == usize::from(count));
        }
        1 => {
            let Ok(mut index) = Index::new(Cursor::new(bytes), bytes.len() as u64) else {
                return;
            };
            while let Ok(Some(series)) = index.next() {
                assert!(series.labels.len() + series.chunks.len() <= bytes.len());
            }
        }
        _ => drop(parse_tombstones(bytes)),
    }
}
