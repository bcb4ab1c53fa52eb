//! The numbers that stand for series lines on one connection.

use super::error::MessageError;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Bytes of all series lines of one dictionary.
pub(super) const TEXT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What an entry takes beside its text, roughly: its place in two tables.
const ENTRY_BYTES: usize = 64;

/// Series lines by number. Entries are counted from 0 in the order they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Dictionary {
    places: HashMap<u64, u32>,
    lines: Vec<Box<[u8]>>,
    bytes: usize,
}

impl Dictionary {
    /// The place of the entry with this number.
    #[inline]
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        self.places.get(&id).copied()
    }

    /// The series line at a place.
    #[inline]
    pub(super) fn line(&self, place: u32) -> &[u8] {
        self.lines.get(place as usize).map_or(&[], |line| line)
    }

    /// Lets `id` stand for `line`; once more is no error.
    pub(super) fn insert(&mut self, id: u64, line: &[u8]) -> Result<(), MessageError> {
        match self.places.entry(id) {
            Entry::Occupied(taken) => match *self.lines[*taken.get() as usize] == *line {
                true => Ok(()),
                false => Err(MessageError::TakenId(id)),
            },
            Entry::Vacant(vacant) => {
                let bytes = self.bytes + line.len() + ENTRY_BYTES;
                if bytes > TEXT_BYTES_MAX {
                    return Err(MessageError::DictionaryFull);
                }
                self.bytes = bytes;
                // ENTRY_BYTES bounds the number of entries.
                vacant.insert(self.lines.len() as u32);
                self.lines.push(line.into());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_one_series_and_the_text_is_bounded() {
        let mut dictionary = Dictionary::default();
        assert_eq!(dictionary.insert(7, b"a x=y"), Ok(()));
        assert_eq!(dictionary.insert(7, b"a x=y"), Ok(()));
        assert_eq!(
            dictionary.insert(7, b"b x=y"),
            Err(MessageError::TakenId(7))
        );
        assert_eq!(
            dictionary.find(7).map(|place| dictionary.line(place)),
            Some(&b"a x=y"[..])
        );
        let long = vec![b'x'; TEXT_BYTES_MAX];
        assert_eq!(
            dictionary.insert(8, &long),
            Err(MessageError::DictionaryFull)
        );
        assert_eq!(dictionary.find(8), None);
    }
}
