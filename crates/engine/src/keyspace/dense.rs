//! A hash table of short entries that is nearly full at any size, and on the disk where it is large.
//!
//! Tables that double are half empty for half of the time, and all parts of a spread one double at once.
//! This one grows by a quarter, so that an entry takes 10 bytes on average, and 12 at most: where there
//! are tens of millions, that counts. Entries are a tag and a number of 32 bits each in one word; open
//! addressing, the next free place after the one that the tag names (Knuth, The Art of Computer
//! Programming 3, 6.4, algorithms L and R). Spread over parts by their tag, each of which moves only its own.
//!
//! The words of a part that is no longer small are in a file without a name. Of each place a byte stays in
//! memory, with eight bits of the tag (as the control bytes of Swiss tables,
//! <https://abseil.io/about/design/swisstables>): of a hundred tags that are not there about four have a
//! word read. Nothing of the file outlives the table, so nothing of it is ever synced. Where there
//! can be no file, the words are in memory.
//!
//! Invariants: no word is `EMPTY`, no file can be reached but by its part, and between an entry and the
//! place that its tag names no place is free. Tested below.

use crate::base::table::spread;
use crate::io::{Disk, File};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

/// No entry: neither is the number `u32::MAX`.
const EMPTY: u64 = u64::MAX;
/// Places of a part that are not free at most, of a hundred.
const FULL_PERCENT: usize = 85;
/// A part grows by this share of itself, and by this many.
const GROWTH_SHARE: usize = 4;
const GROWTH: usize = 8;
/// The byte of a place that is free, and of one whose entry was taken out. Those of entries are greater.
const FREE: u8 = 0;
const TAKEN_OUT: u8 = 1;
const WORD_BYTES: usize = size_of::<u64>();

/// Numbers by tag. A tag may be there several times.
pub(crate) struct Dense {
    parts: Box<[Part]>,
    scratch: Scratch,
}

/// Where a table has its files.
#[derive(Clone)]
pub(crate) struct Scratch {
    pub(crate) disk: Arc<dyn Disk>,
    /// The name of a file that is being made; of no other table.
    pub(crate) path: PathBuf,
    /// A part of at least so many places has its words in a file.
    pub(crate) from_places: usize,
}

#[derive(Default)]
struct Part {
    places: Places,
    len: usize,
    /// Places whose entry was taken out, of a part with a file.
    taken_out: usize,
}

enum Places {
    Memory(Box<[u64]>),
    /// A byte and a word of each.
    File {
        bytes: Box<[u8]>,
        words: Arc<dyn File>,
    },
}

impl Default for Places {
    fn default() -> Self {
        Self::Memory(Box::default())
    }
}

impl Dense {
    /// Without entries, in a number of parts that is a power of two up to 16.
    pub(crate) fn new(parts: usize, scratch: Scratch) -> Self {
        debug_assert!(parts.is_power_of_two() && parts <= 16);
        let parts = (0..parts).map(|_| Part::default()).collect();
        Self { parts, scratch }
    }

    /// A number of this tag.
    ///
    /// # Errors
    /// When a word cannot be read.
    #[inline]
    pub(crate) fn find(&self, tag: u32) -> io::Result<Option<u32>> {
        let part = &self.parts[self.part(tag)];
        let found = part.find(tag, |word| tag_of(word) == tag)?;
        Ok(found.map(|(_, word)| word as u32))
    }

    /// Adds a number below `u32::MAX`.
    ///
    /// # Errors
    /// When the file of its part cannot be written, or not be read to make it larger: then it is
    /// as it was.
    pub(crate) fn insert(&mut self, tag: u32, number: u32) -> io::Result<()> {
        debug_assert!(number < u32::MAX);
        let part = self.part(tag);
        let part = &mut self.parts[part];
        let count = part.places.len();
        if (part.len + part.taken_out + 1) * 100 > count * FULL_PERCENT {
            // Those taken out are free again in a part of the same size.
            let growth = count / GROWTH_SHARE + GROWTH;
            let is_full = part.taken_out < growth;
            part.resize(count + if is_full { growth } else { 0 }, &self.scratch)?;
        }
        part.put(u64::from(tag) << u32::BITS | u64::from(number))
    }

    /// Takes a number of this tag out; returns whether it was there. Gives memory back once little
    /// of it is used.
    ///
    /// # Errors
    /// When a word cannot be read: then it is as it was.
    pub(crate) fn remove(&mut self, tag: u32, number: u32) -> io::Result<bool> {
        let part = self.part(tag);
        let part = &mut self.parts[part];
        let wanted = u64::from(tag) << u32::BITS | u64::from(number);
        let Some((at, _)) = part.find(tag, |word| word == wanted)? else {
            return Ok(false);
        };
        part.free(at);
        if part.len < part.places.len() / 8 {
            // One that is too large for now is no harm.
            let _ = part.resize(part.len + part.len / GROWTH_SHARE + GROWTH, &self.scratch);
        }
        Ok(true)
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Forgets all entries, and gives their memory back.
    pub(crate) fn clear(&mut self) {
        self.parts.fill_with(Part::default);
    }

    /// Bytes of memory taken for entries.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes = |part: &Part| match &part.places {
            Places::Memory(words) => words.len() * WORD_BYTES,
            Places::File { bytes, .. } => bytes.len(),
        };
        self.parts.iter().map(bytes).sum()
    }

    #[inline]
    fn part(&self, tag: u32) -> usize {
        // The lowest bits of those that are good; the place within the part is named by the highest.
        (spread(tag) >> 32) as usize & (self.parts.len() - 1)
    }
}

impl Scratch {
    /// A file with these words and without a name.
    fn file(&self, words: &[u64]) -> io::Result<Arc<dyn File>> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let made = match self.disk.reserve(&self.path, bytes.len() as u64) {
            // Of a process that was killed before it took the name away.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.disk.remove(&self.path)?;
                self.disk.reserve(&self.path, bytes.len() as u64)
            }
            made => made,
        };
        let file = made?;
        self.disk.remove(&self.path)?;
        file.write_at(&bytes, 0)?;
        Ok(file)
    }
}

impl Places {
    fn len(&self) -> usize {
        match self {
            Self::Memory(words) => words.len(),
            Self::File { bytes, .. } => bytes.len(),
        }
    }

    /// The words of all entries.
    fn words(&self) -> io::Result<Vec<u64>> {
        match self {
            Self::Memory(words) => {
                let entries = words.iter().copied();
                Ok(entries.filter(|word| *word != EMPTY).collect())
            }
            Self::File { bytes, words } => {
                let mut read = vec![0; bytes.len() * WORD_BYTES];
                words.read_at(&mut read, 0)?;
                let all = read.as_chunks().0.iter().zip(bytes);
                let entries = all.filter(|(_, byte)| **byte > TAKEN_OUT);
                Ok(entries.map(|(word, _)| u64::from_le_bytes(*word)).collect())
            }
        }
    }
}

impl Part {
    /// The places where a tag can be, from the one that it names on, each once.
    #[inline]
    fn probe(&self, tag: u32) -> impl Iterator<Item = usize> + use<> {
        probe(tag, self.places.len())
    }

    /// The place and the word of an entry of this tag that is wanted.
    #[inline]
    fn find(&self, tag: u32, is_wanted: impl Fn(u64) -> bool) -> io::Result<Option<(usize, u64)>> {
        match &self.places {
            Places::Memory(words) => {
                let probed = self.probe(tag).map(|at| (at, words[at]));
                let mut entries = probed.take_while(|(_, word)| *word != EMPTY);
                Ok(entries.find(|(_, word)| is_wanted(*word)))
            }
            Places::File { bytes, words } => {
                let byte = byte_of(tag);
                let probed = self.probe(tag).take_while(|&at| bytes[at] != FREE);
                for at in probed.filter(|&at| bytes[at] == byte) {
                    let mut word = [0; WORD_BYTES];
                    words.read_at(&mut word, offset(at))?;
                    let word = u64::from_le_bytes(word);
                    if is_wanted(word) {
                        return Ok(Some((at, word)));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Adds a word, for which there is a free place.
    fn put(&mut self, word: u64) -> io::Result<()> {
        let mut probed = self.probe(tag_of(word));
        match &mut self.places {
            Places::Memory(words) => put(words, word),
            Places::File { bytes, words } => {
                if let Some(at) = probed.find(|&at| bytes[at] <= TAKEN_OUT) {
                    words.write_at(&word.to_le_bytes(), offset(at))?;
                    self.taken_out -= usize::from(bytes[at]);
                    bytes[at] = byte_of(tag_of(word));
                }
            }
        }
        self.len += 1;
        Ok(())
    }

    /// Frees a place, and brings those behind it nearer to where they belong if that needs no file.
    fn free(&mut self, mut hole: usize) {
        self.len -= 1;
        let words = match &mut self.places {
            Places::Memory(words) => words,
            Places::File { bytes, .. } => {
                bytes[hole] = TAKEN_OUT;
                self.taken_out += usize::from(TAKEN_OUT);
                return;
            }
        };
        let count = words.len();
        let distance = |from: usize, to: usize| (to + count - from) % count;
        let mut at = hole;
        loop {
            at = (at + 1) % count;
            let word = words[at];
            if word == EMPTY {
                break;
            }
            if distance(home(tag_of(word), count), at) >= distance(hole, at) {
                words[hole] = word;
                hole = at;
            }
        }
        words[hole] = EMPTY;
    }

    fn resize(&mut self, count: usize, scratch: &Scratch) -> io::Result<()> {
        let entries = self.places.words()?;
        let mut words = vec![EMPTY; count].into_boxed_slice();
        entries.iter().for_each(|word| put(&mut words, *word));
        let file = (count >= scratch.from_places).then(|| scratch.file(&words));
        self.taken_out = 0;
        self.places = match file {
            Some(Ok(file)) => {
                let byte = |word: &u64| match *word {
                    EMPTY => FREE,
                    word => byte_of(tag_of(word)),
                };
                let bytes = words.iter().map(byte).collect();
                Places::File { bytes, words: file }
            }
            _ => Places::Memory(words),
        };
        Ok(())
    }
}

/// Adds a word to those of a part, where a place is free.
fn put(words: &mut [u64], word: u64) {
    let mut probed = probe(tag_of(word), words.len());
    if let Some(at) = probed.find(|&at| words[at] == EMPTY) {
        words[at] = word;
    }
}

/// The places among `count` where a tag can be, from the one that it names on, each once.
#[inline]
fn probe(tag: u32, count: usize) -> impl Iterator<Item = usize> {
    let home = home(tag, count);
    (home..count).chain(0..home)
}

fn tag_of(word: u64) -> u32 {
    (word >> u32::BITS) as u32
}

/// The byte of the place of an entry: of bits that name neither part nor, in parts of up to a million
/// places, place.
#[inline]
fn byte_of(tag: u32) -> u8 {
    ((spread(tag) >> 36) as u8).max(TAKEN_OUT + 1)
}

/// Where a word is in its file.
fn offset(at: usize) -> u64 {
    (at * WORD_BYTES) as u64
}

/// The place that a tag names among `count`.
#[inline]
fn home(tag: u32, count: usize) -> usize {
    (((spread(tag) >> u32::BITS) * count as u64) >> u32::BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Env;
    use crate::io::sim::{Fault, Op, SimDisk, Trouble};
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Numbers that look random: xorshift (Marsaglia 2003).
    fn random(seed: u64) -> impl FnMut(u64) -> u32 {
        let mut state = seed * 2 + 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 32) % below) as u32
        }
    }

    fn scratch(disk: Arc<dyn Disk>, dir: &Path, from_places: usize) -> Scratch {
        let path = dir.join("words");
        Scratch {
            disk,
            path,
            from_places,
        }
    }

    fn in_memory(parts: usize) -> Dense {
        let disk = Env::without_files().disk;
        Dense::new(parts, scratch(disk, Path::new("/"), 0))
    }

    #[test]
    fn entries_come_and_go_as_in_a_set() {
        let folder = tempfile::tempdir().unwrap();
        for seed in 0..40 {
            let mut below = random(seed);
            let from_places = [0, 20, 60, usize::MAX][below(4) as usize];
            let scratch = scratch(Env::real().disk, folder.path(), from_places);
            let (mut dense, mut model) = (Dense::new(4, scratch), BTreeSet::new());
            // Few tags, many of them twice and more.
            let tags = [3, 50, 100_000][below(3) as usize];
            for step in 0..4_000 {
                let (tag, number) = (below(tags), below(50));
                let grows = step % 1_000 < 700;
                if below(4) < if grows { 3 } else { 1 } {
                    if model.insert((tag, number)) {
                        dense.insert(tag, number).unwrap();
                    }
                } else {
                    let any = model.range((tag, number)..).next().copied();
                    let (tag, number) = any.unwrap_or((tag, number));
                    let was_there = model.remove(&(tag, number));
                    let removed = dense.remove(tag, number).unwrap();
                    assert_eq!(removed, was_there, "seed {seed}");
                }
                assert_eq!(dense.len(), model.len());
                let found = dense.find(tag).unwrap();
                let has_any = model.range((tag, 0)..=(tag, u32::MAX)).next().is_some();
                assert_eq!(found.is_some(), has_any, "seed {seed}, step {step}");
                assert!(found.is_none_or(|number| model.contains(&(tag, number))));
            }
            for &(tag, number) in &model {
                assert!(dense.remove(tag, number).unwrap(), "seed {seed}");
            }
            assert_eq!((dense.len(), dense.find(1).unwrap()), (0, None));
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    const COUNT: u32 = 200_000;

    fn tag(number: u32) -> u32 {
        number.wrapping_mul(0x85eb_ca6b)
    }

    #[test]
    fn it_is_nearly_full_at_any_size() {
        let mut dense = in_memory(16);
        for number in 0..COUNT {
            dense.insert(tag(number), number).unwrap();
            let bytes = dense.memory_bytes();
            assert!(
                number < 20_000 || bytes <= number as usize * 25 / 2,
                "{bytes} for {number}"
            );
        }
        let found = |number: u32| dense.find(tag(number)).unwrap() == Some(number);
        assert!((0..COUNT).all(found));
        let full = dense.memory_bytes();
        for number in 1_000..COUNT {
            assert!(dense.remove(tag(number), number).unwrap());
        }
        assert!(dense.memory_bytes() < full / 8);
        dense.clear();
        assert_eq!((dense.len(), dense.memory_bytes()), (0, 0));
    }

    #[test]
    fn a_large_one_takes_little_memory_and_few_reads_say_what_is_not_there() {
        let disk = SimDisk::new();
        let scratch = scratch(Arc::new(disk.clone()), Path::new("/"), 1_000);
        // What a killed process left.
        disk.create(&scratch.path, 5).unwrap();
        let mut dense = Dense::new(16, scratch);
        (0..COUNT).for_each(|number| dense.insert(tag(number), number).unwrap());
        let bytes = dense.memory_bytes();
        assert!(bytes <= COUNT as usize * 3 / 2, "{bytes}");
        assert_eq!(disk.list(Path::new("/")).unwrap(), [""; 0]);
        let before = disk.count(Op::Read);
        let missing = (COUNT..2 * COUNT).all(|number| dense.find(tag(number)).unwrap().is_none());
        let reads = disk.count(Op::Read) - before;
        assert!(missing && reads < u64::from(COUNT) / 10, "{reads}");
        let found = |number: u32| dense.find(tag(number)).unwrap() == Some(number);
        assert!((0..COUNT).all(found));
    }

    #[test]
    fn what_fails_changes_nothing() {
        let disk = SimDisk::new();
        let fail = |op| {
            let trouble = Trouble::Fail(ErrorKind::Other);
            let fault = |op| Fault {
                op: Some(op),
                after: 0,
                trouble,
            };
            disk.plan(fault(op));
        };
        let mut dense = Dense::new(1, scratch(Arc::new(disk.clone()), Path::new("/"), 100));
        // Words stay in memory where no file can be made, and go there later.
        fail(Op::Create);
        let mut next = 0;
        let mut add = |dense: &mut Dense| {
            next += 1;
            dense.insert(tag(next), next).map(|()| next)
        };
        let is_in_memory = |dense: &Dense| dense.memory_bytes() >= dense.len() * WORD_BYTES;
        while dense.len() < 90 {
            add(&mut dense).unwrap();
        }
        assert!(is_in_memory(&dense) && disk.count(Op::Create) == 1);
        while dense.len() < 150 {
            add(&mut dense).unwrap();
        }
        assert!(!is_in_memory(&dense));
        let len = dense.len();
        fail(Op::Write);
        assert!(add(&mut dense).is_err() && dense.len() == len);
        for _ in 0..2 {
            fail(Op::Read);
            assert!(dense.find(tag(1)).is_err());
            assert_eq!(dense.find(tag(1)).unwrap(), Some(1));
        }
        fail(Op::Read);
        assert!(dense.remove(tag(1), 1).is_err() && dense.len() == len);
        // It cannot grow, and then it can.
        let mut last = add(&mut dense).unwrap();
        fail(Op::Read);
        last = loop {
            match add(&mut dense) {
                Ok(added) => last = added,
                Err(_) => break last,
            }
        };
        assert_eq!(dense.find(tag(last)).unwrap(), Some(last));
        assert_eq!(dense.find(tag(last + 1)).unwrap(), None);
        let added = add(&mut dense).unwrap();
        assert_eq!(dense.find(tag(added)).unwrap(), Some(added));
        disk.heal();
    }
}
