//! Entries on their way into a part of a table, in the order in which they came: a start that finds a
//! hundred million writes each twice, one behind the other, in place of two calls of the disk for each.
//!
//! Invariant: what `push` took is in memory until a file has it. Tested with the table.

use super::{EMPTY, Scratch, WORD_BYTES, lost, offset, stored};
use crate::io::File;
use std::io;
use std::sync::Arc;

/// Words that go to the file together, once a part has one.
const HELD_WORDS: usize = if cfg!(test) { 16 } else { 1024 };
/// Words that are read from the file at a time.
const READ_WORDS: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Gathered {
    /// The words that came last.
    held: Vec<u64>,
    /// The file of the words before them, and how many it has.
    file: Option<(Arc<dyn File>, usize)>,
    /// The disk took no file, or not all of it: the others stay in memory.
    is_refused: bool,
}

impl Gathered {
    /// # Errors
    /// Once, when they cannot be written: they are in memory from then on.
    pub(super) fn push(&mut self, word: u64, scratch: &Scratch) -> io::Result<()> {
        self.held.push(word);
        // Of a part that is small in the end, all stay in memory.
        let is_few = self.file.is_none() && self.held.len() < scratch.from_places;
        if self.held.len() < HELD_WORDS || is_few || self.is_refused {
            return Ok(());
        }
        self.write(scratch).inspect_err(|_| self.is_refused = true)
    }

    fn write(&mut self, scratch: &Scratch) -> io::Result<()> {
        let (file, filed) = match &mut self.file {
            Some(file) => file,
            none => none.insert((scratch.nameless(|disk, path| disk.create(path, 0))?, 0)),
        };
        let bytes: Vec<u8> = self.held.iter().flat_map(|word| stored(*word)).collect();
        file.write_at(&bytes, offset(*filed))?;
        *filed += self.held.len();
        self.held.clear();
        self.held.shrink_to(HELD_WORDS);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.file.is_none()
    }

    /// Adds all of them to `words`.
    ///
    /// # Errors
    /// When the file cannot be read, or has not what was written.
    pub(super) fn read(&self, words: &mut Vec<u64>) -> io::Result<()> {
        if let Some((file, filed)) = &self.file {
            words.reserve(*filed + self.held.len());
            for at in (0..*filed).step_by(READ_WORDS) {
                let mut bytes = vec![0; READ_WORDS.min(filed - at) * WORD_BYTES];
                file.read_at(&mut bytes, offset(at))?;
                for word in bytes.as_chunks().0 {
                    let word = !u64::from_le_bytes(*word);
                    if word == EMPTY {
                        return Err(lost());
                    }
                    words.push(word);
                }
            }
        }
        words.extend_from_slice(&self.held);
        Ok(())
    }
}
