//! The dictionary of one connection: numbers for series lines.

use super::error::MessageError;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Default limit in bytes.
pub const DICTIONARY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Approximate overhead of an entry: its place in two tables.
const ENTRY_BYTES: usize = 64;

/// Series lines by number. Entries count from 0 in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Dictionary {
    places: HashMap<u64, u32>,
    lines: Vec<Box<[u8]>>,
    bytes: usize,
    bytes_max: usize,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            lines: Vec::new(),
            bytes: 0,
            bytes_max: DICTIONARY_BYTES_MAX,
        }
    }
}

impl Dictionary {
    /// Approximate size in bytes.
    pub(super) fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the limit in bytes.
    pub(super) fn limit(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

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

    /// Maps `id` to `line`; repeating an entry is allowed.
    pub(super) fn insert(&mut self, id: u64, line: &[u8]) -> Result<(), MessageError> {
        match self.places.entry(id) {
            Entry::Occupied(taken) => {
                if *self.lines[*taken.get() as usize] == *line {
                    Ok(())
                } else {
                    Err(MessageError::TakenId(id))
                }
            }
            Entry::Vacant(vacant) => {
                let bytes = self.bytes + line.len() + ENTRY_BYTES;
                if bytes > self.bytes_max {
                    return Err(MessageError::DictionaryFull(self.bytes_max));
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
        let long = vec![b'x'; DICTIONARY_BYTES_MAX];
        assert_eq!(
            dictionary.insert(8, &long),
            Err(MessageError::DictionaryFull(DICTIONARY_BYTES_MAX))
        );
        assert_eq!(dictionary.find(8), None);
        dictionary.limit(dictionary.len_bytes() + ENTRY_BYTES + 4);
        assert_eq!(
            dictionary.insert(9, b"c x=y"),
            Err(MessageError::DictionaryFull(137))
        );
        assert_eq!(dictionary.insert(9, b"c=y"), Ok(()));
    }
}
