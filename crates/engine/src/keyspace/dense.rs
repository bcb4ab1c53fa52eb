//! A hash table of short entries that is nearly full at any size, and on the disk where it is large.
//!
//! Tables that double are half empty for half of the time, and all parts of a spread one double at once.
//! This one grows by a quarter, so that an entry takes 10 bytes on average, and 12 at most while none is
//! taken out: where there are tens of millions, that counts. Entries are a tag and a number of 32 bits
//! each in one word; open addressing, the next free place after the one that the tag names (Knuth, The Art
//! of Computer Programming 3, 6.4, algorithms L and R). Spread over parts by their tag, each of which moves
//! only its own.
//!
//! The words of a part that is no longer small are in a file without a name. Of each place a byte stays in
//! memory, with eight bits of the tag (as the control bytes of Swiss tables,
//! <https://abseil.io/about/design/swisstables>): of a hundred tags that are not there about four have a
//! word read, nine where a part is about to grow. Nothing of the file outlives the table, so nothing of it
//! is ever synced, and nobody hears of a page that the disk did not take. So a word is compared with its
//! byte, and zeros are none: what is lost is an error, not an entry that is not there, but for an older word
//! whose byte is the same, one of 254. Where there can be no file, the words are in memory. A start gathers
//! entries first ([`gathered`]), and then makes each part once, as large as it has to be.
//!
//! Invariants: no word is `EMPTY`, no file can be reached but by its part, between an entry and the
//! place that its tag names no place is free, and of a part that is not empty some places are free. Tested
//! in `dense/tests.rs`.

use crate::base::table::spread;
use crate::io::{Disk, File};
use crate::keyspace::dense::gathered::Gathered;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod gathered;

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
/// Words that are written to a new file at a time.
const WRITTEN_WORDS: usize = 8 * 1024;
/// Tries to make a part larger or smaller that are refused after one that failed.
const PAUSE: usize = 1_000;

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
    /// The number of places from which on a part keeps its words in a file.
    pub(crate) from_places: usize,
}

#[derive(Default)]
struct Part {
    places: Places,
    len: usize,
    /// Places whose entry was taken out, of a part with a file.
    taken_out: usize,
    /// Tries still to be refused after one that failed.
    pause: usize,
    /// Entries that are not found yet.
    gathered: Gathered,
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
    /// An empty table. `parts` is a power of two up to 16: bits 32 to 35 of a spread tag name the part.
    pub(crate) fn new(parts: usize, scratch: Scratch) -> Self {
        debug_assert!(parts.is_power_of_two() && parts <= 16);
        let parts = (0..parts).map(|_| Part::default()).collect();
        Self { parts, scratch }
    }

    /// A number of this tag that is wanted.
    ///
    /// # Errors
    /// When a word cannot be read, or is not what was written.
    #[inline]
    pub(crate) fn find(
        &self,
        tag: u32,
        is_wanted: impl Fn(u32) -> bool,
    ) -> io::Result<Option<u32>> {
        let part = &self.parts[self.part(tag)];
        let found = part.find(tag, |word| tag_of(word) == tag && is_wanted(word as u32))?;
        Ok(found.map(|(_, word)| word as u32))
    }

    /// Adds a number below `u32::MAX`.
    ///
    /// # Errors
    /// When the file of its part cannot be written, or not be made anew: then nothing was added.
    pub(crate) fn insert(&mut self, tag: u32, number: u32) -> io::Result<()> {
        debug_assert!(number < u32::MAX);
        let part = self.part(tag);
        let part = &mut self.parts[part];
        let count = part.places.len();
        if (part.len + part.taken_out + 1) * 100 > count * FULL_PERCENT {
            // Without those taken out a part of the same size is at most 60 % full.
            let growth = count / GROWTH_SHARE + GROWTH;
            let grows = part.taken_out < growth;
            part.resize(count + if grows { growth } else { 0 }, &self.scratch)?;
        }
        part.put(word_of(tag, number))
    }

    /// Adds a number below `u32::MAX`, which is found from [`Dense::settle`] on.
    ///
    /// # Errors
    /// Once for a part, when what it has cannot be written: it stays in memory until then.
    pub(crate) fn gather(&mut self, tag: u32, number: u32) -> io::Result<()> {
        debug_assert!(number < u32::MAX);
        let part = self.part(tag);
        self.parts[part]
            .gathered
            .push(word_of(tag, number), &self.scratch)
    }

    /// Puts in place what was gathered. `met` hears of each whether its tag was there before.
    ///
    /// # Errors
    /// When a part cannot be read: it is as it was. The value says whether one could not be written, and
    /// is in memory.
    pub(crate) fn settle(
        &mut self,
        mut met: impl FnMut(u32, u32, bool),
    ) -> io::Result<io::Result<()>> {
        let mut written = Ok(());
        let gathered = |part: &&mut Part| !part.gathered.is_empty();
        for part in self.parts.iter_mut().filter(gathered) {
            written = written.and(part.settle(&self.scratch, &mut met)?);
        }
        Ok(written)
    }

    /// Takes a number of this tag out; returns whether it was there. Gives memory back once little
    /// of it is used.
    ///
    /// # Errors
    /// When a word cannot be read: then it is as it was.
    pub(crate) fn remove(&mut self, tag: u32, number: u32) -> io::Result<bool> {
        let part = self.part(tag);
        let part = &mut self.parts[part];
        let wanted = word_of(tag, number);
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
    /// A file without a name.
    fn nameless(
        &self,
        make: impl Fn(&dyn Disk, &Path) -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let made = match make(&*self.disk, &self.path) {
            // Its name could not be taken away, or is back after the power failed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.disk.remove(&self.path)?;
                make(&*self.disk, &self.path)
            }
            made => made,
        };
        let file = made?;
        self.disk.remove(&self.path)?;
        Ok(file)
    }

    /// The same with these words.
    fn file(&self, words: &[u64]) -> io::Result<Arc<dyn File>> {
        let file = self.nameless(|disk, path| disk.reserve(path, offset(words.len())))?;
        for (number, some) in words.chunks(WRITTEN_WORDS).enumerate() {
            let bytes: Vec<u8> = some.iter().flat_map(|word| stored(*word)).collect();
            file.write_at(&bytes, offset(number * WRITTEN_WORDS))?;
        }
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
                entries.map(|(word, byte)| checked(*word, *byte)).collect()
            }
        }
    }

    /// The same entries in `count` places.
    fn moved(&self, count: usize, scratch: &Scratch) -> io::Result<Self> {
        let mut words = vec![EMPTY; count];
        for word in self.words()? {
            put(&mut words, word);
        }
        match Self::of(words, scratch) {
            (made, Ok(())) => Ok(made),
            (made, Err(_)) if matches!(self, Self::Memory(_)) => Ok(made),
            // Memory does not fill up because the disk did.
            (_, Err(error)) => Err(error),
        }
    }

    /// Places with these words; in memory, with the error, where their file cannot be made.
    fn of(words: Vec<u64>, scratch: &Scratch) -> (Self, io::Result<()>) {
        if words.len() < scratch.from_places {
            return (Self::Memory(words.into()), Ok(()));
        }
        match scratch.file(&words) {
            Ok(file) => {
                let bytes = words.iter().map(|word| match *word {
                    EMPTY => FREE,
                    word => byte_of(tag_of(word)),
                });
                let bytes = bytes.collect();
                (Self::File { bytes, words: file }, Ok(()))
            }
            Err(error) => (Self::Memory(words.into()), Err(error)),
        }
    }
}

impl Part {
    /// The place and the word of an entry of this tag that is wanted.
    #[inline]
    fn find(&self, tag: u32, is_wanted: impl Fn(u64) -> bool) -> io::Result<Option<(usize, u64)>> {
        match &self.places {
            Places::Memory(words) => {
                let probed = probe(tag, words.len()).map(|at| (at, words[at]));
                let mut entries = probed.take_while(|(_, word)| *word != EMPTY);
                Ok(entries.find(|(_, word)| is_wanted(*word)))
            }
            Places::File { bytes, words } => {
                let byte = byte_of(tag);
                let probed = probe(tag, bytes.len()).take_while(|&at| bytes[at] != FREE);
                for at in probed.filter(|&at| bytes[at] == byte) {
                    let mut word = [0; WORD_BYTES];
                    words.read_at(&mut word, offset(at))?;
                    let word = checked(word, byte)?;
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
        match &mut self.places {
            Places::Memory(words) => {
                put(words, word);
            }
            Places::File { bytes, words } => {
                let mut probed = probe(tag_of(word), bytes.len());
                let place = probed.find(|&at| bytes[at] <= TAKEN_OUT);
                let at = place.ok_or(ErrorKind::StorageFull)?;
                words.write_at(&stored(word), offset(at))?;
                self.taken_out -= usize::from(bytes[at] == TAKEN_OUT);
                bytes[at] = byte_of(tag_of(word));
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
                self.taken_out += 1;
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

    /// As [`Dense::settle`].
    fn settle(
        &mut self,
        scratch: &Scratch,
        met: &mut impl FnMut(u32, u32, bool),
    ) -> io::Result<io::Result<()>> {
        let mut entries = self.places.words()?;
        let settled = entries.len();
        self.gathered.read(&mut entries)?;
        // With room for some more, or all parts would grow soon.
        let count = entries.len() * 100 / FULL_PERCENT + entries.len() / 8 + GROWTH;
        let count = count.max(self.places.len());
        let mut words = vec![EMPTY; count];
        for (at, word) in entries.iter().enumerate() {
            let is_twin = put(&mut words, *word);
            if at >= settled {
                met(tag_of(*word), *word as u32, is_twin);
            }
        }
        let (places, written) = Places::of(words, scratch);
        *self = Self {
            places,
            len: entries.len(),
            ..Self::default()
        };
        Ok(written)
    }

    /// Moves all entries to `count` places, unless that failed within the last [`PAUSE`] tries.
    fn resize(&mut self, count: usize, scratch: &Scratch) -> io::Result<()> {
        if self.pause > 0 {
            self.pause -= 1;
            return Err(ErrorKind::ResourceBusy.into());
        }
        let moved = self.places.moved(count, scratch);
        self.places = moved.inspect_err(|_| self.pause = PAUSE)?;
        self.taken_out = 0;
        Ok(())
    }
}

/// Adds a word to those of a part, where a place is free. Returns whether one of its tag was there.
fn put(words: &mut [u64], word: u64) -> bool {
    let mut is_twin = false;
    for at in probe(tag_of(word), words.len()) {
        if words[at] == EMPTY {
            words[at] = word;
            break;
        }
        is_twin |= tag_of(words[at]) == tag_of(word);
    }
    is_twin
}

/// The places among `count` where a tag can be, from the one that it names on, each once.
#[inline]
fn probe(tag: u32, count: usize) -> impl Iterator<Item = usize> {
    let home = home(tag, count);
    (home..count).chain(0..home)
}

fn word_of(tag: u32, number: u32) -> u64 {
    u64::from(tag) << u32::BITS | u64::from(number)
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

/// A word as files have it: zeros are no entry.
fn stored(word: u64) -> [u8; WORD_BYTES] {
    (!word).to_le_bytes()
}

/// A word that was read, if it is one of this byte.
fn checked(bytes: [u8; WORD_BYTES], byte: u8) -> io::Result<u64> {
    let word = !u64::from_le_bytes(bytes);
    if word == EMPTY || byte_of(tag_of(word)) != byte {
        return Err(lost());
    }
    Ok(word)
}

fn lost() -> io::Error {
    let text = "the disk lost what was written";
    io::Error::new(ErrorKind::InvalidData, text)
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
mod tests;
