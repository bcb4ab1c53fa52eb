//! Index pages: the entries of a block, packed.
//!
//! An entry is encoded relative to the one before it, and every page starts anew: a
//! tag, the series as a step, timestamps as differences, sizes; about 14 bytes for
//! a chunk of one of many series. The offset of a chunk is not stored, because
//! chunks are end to end in the order of their entries.
//!
//! A page that is loaded is decoded once, to check it and to record a restart point
//! at every sixteenth entry; a lookup then decodes a few entries and not the whole
//! page. Tested below and through blocks.

use crate::base::error::Result;
use crate::base::partition::{PARTITION_BITS, partition_of};
use crate::format::varint::{self, VARINT_BYTES_MAX, unzigzag, zigzag};
use crate::storage::block::entry::{Entry, Family, Kind};
use crate::storage::block::format::{PAGE_BYTES_MAX, PageRef, corrupt};
use latewood_codec::Stats;
use latewood_model::{DuplicatePolicy, SeriesId, Timestamp};

/// Maximum size of an entry.
const ENTRY_BYTES_MAX: usize = 6 * VARINT_BYTES_MAX + 1 + 4 + 3 * 8;
/// Entries between two restart points.
const RESTART_EVERY: usize = 16;
/// Steps from this number on are stored after the tag.
const STEP_FOLLOWS: u64 = 15;

const BASE: u8 = 0;
const BASE_WITH_STATS: u8 = 1;
const TOMBSTONE: u8 = 2;
/// The policy's number is added to it.
const OVERLAY: u8 = 8;

/// What the next entry is encoded relative to.
#[derive(Clone, Copy, Debug)]
struct State {
    id: u64,
    /// Oldest timestamp of the series' first entry in the page.
    series_first: Option<Timestamp>,
    /// Newest timestamp of the previous entry.
    last: Timestamp,
    /// Offset of the next chunk.
    offset: u64,
}

impl State {
    fn start(page: &PageRef) -> Self {
        Self {
            id: page.first_id.0,
            series_first: None,
            last: 0,
            offset: page.chunks_offset,
        }
    }

    /// The base of the difference `first` for an entry whose id is `step` higher.
    fn near(&self, step: u64) -> Timestamp {
        match self.series_first {
            Some(first) if step > 0 => first,
            _ => self.last,
        }
    }

    fn pass(&mut self, entry: &Entry) {
        if entry.id.0 != self.id || self.series_first.is_none() {
            self.id = entry.id.0;
            self.series_first = Some(entry.first);
        }
        self.last = entry.last;
        self.offset += u64::from(entry.len_bytes);
    }
}

/// A page that is being built.
#[derive(Debug, Default)]
pub(crate) struct PageBuilder {
    pub(crate) bytes: Vec<u8>,
    open: Option<(PageRef, State)>,
}

impl PageBuilder {
    /// Adds the next entry, or returns `false` if the page is full.
    pub(crate) fn push(&mut self, entry: &Entry) -> bool {
        let (page, state) = self.open.get_or_insert_with(|| {
            let page = PageRef {
                first_id: entry.id,
                len_bytes: 0,
                checksum: 0,
                first: entry.first,
                last: entry.last,
                chunks_offset: entry.offset,
                offset: 0,
            };
            (page, State::start(&page))
        });
        if self.bytes.len() + ENTRY_BYTES_MAX > PAGE_BYTES_MAX {
            return false;
        }
        put(entry, state, &mut self.bytes);
        state.pass(entry);
        page.first = page.first.min(entry.first);
        page.last = page.last.max(entry.last);
        true
    }

    /// Ends the page: returns its row without length and checksum, if it has
    /// entries.
    pub(crate) fn finish(&mut self) -> Option<PageRef> {
        self.open.take().map(|(page, _)| page)
    }
}

fn put(entry: &Entry, state: &State, out: &mut Vec<u8>) {
    let mut bytes = [0; ENTRY_BYTES_MAX + VARINT_BYTES_MAX];
    let step = entry.id.0.wrapping_sub(state.id);
    let kind = match entry.kind {
        Kind::Base if entry.values.is_some() => BASE_WITH_STATS,
        Kind::Base => BASE,
        Kind::Tombstone => TOMBSTONE,
        Kind::Overlay(policy) => OVERLAY + policy as u8,
    };
    bytes[0] = kind | (step.min(STEP_FOLLOWS) << 4) as u8;
    let mut at = 1;
    if step >= STEP_FOLLOWS {
        at = varint::put(&mut bytes, at, step - STEP_FOLLOWS);
    }
    let lead = entry.first.wrapping_sub(state.near(step));
    at = varint::put(&mut bytes, at, zigzag(lead));
    at = varint::put(&mut bytes, at, entry.last.wrapping_sub(entry.first) as u64);
    if kind != TOMBSTONE {
        at = varint::put(&mut bytes, at, u64::from(entry.count));
        at = varint::put(&mut bytes, at, u64::from(entry.len_bytes));
        bytes[at..at + 4].copy_from_slice(&entry.checksum.to_le_bytes());
        at += 4;
    }
    if kind == BASE_WITH_STATS
        && let Some(values) = entry.values
    {
        at = varint::put(&mut bytes, at, values.nan_count as u64);
        for value in [values.min, values.max, values.sum] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            at += 8;
        }
    }
    out.extend_from_slice(&bytes[..at]);
}

/// Reads the entry at the front of `bytes`; `None` if it is invalid.
fn take(bytes: &mut &[u8], state: &mut State) -> Option<Entry> {
    let (&tag, rest) = bytes.split_first()?;
    *bytes = rest;
    let mut step = u64::from(tag >> 4);
    if step == STEP_FOLLOWS {
        step = step.checked_add(varint::take(bytes)?)?;
    }
    let id = SeriesId(state.id.checked_add(step)?);
    let first = state
        .near(step)
        .wrapping_add(unzigzag(varint::take(bytes)?));
    let last = first.checked_add_unsigned(varint::take(bytes)?)?;
    let code = tag & 0x0f;
    let kind = match code {
        BASE | BASE_WITH_STATS => Kind::Base,
        TOMBSTONE => Kind::Tombstone,
        _ => Kind::Overlay(DuplicatePolicy::from_number(code.checked_sub(OVERLAY)?)?),
    };
    let mut entry = Entry {
        id,
        kind,
        first,
        last,
        count: 0,
        offset: state.offset,
        len_bytes: 0,
        checksum: 0,
        values: None,
    };
    if kind != Kind::Tombstone {
        entry.count = varint::take(bytes)?.try_into().ok()?;
        entry.len_bytes = varint::take(bytes)?.try_into().ok()?;
        let (checksum, rest) = bytes.split_first_chunk()?;
        entry.checksum = u32::from_le_bytes(*checksum);
        *bytes = rest;
        // A tombstone may begin before 1970, a sample may not.
        if entry.count == 0 || entry.len_bytes == 0 || first < 0 {
            return None;
        }
    }
    if code == BASE_WITH_STATS {
        let nan_count = usize::try_from(varint::take(bytes)?).ok()?;
        let mut number = || {
            let (word, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(f64::from_le_bytes(*word))
        };
        entry.values = Some(Stats {
            min: number()?,
            max: number()?,
            sum: number()?,
            nan_count,
        });
        if nan_count > entry.count as usize {
            return None;
        }
    }
    state.offset.checked_add(u64::from(entry.len_bytes))?;
    state.pass(&entry);
    Some(entry)
}

/// A restart point inside a page.
#[derive(Clone, Copy, Debug)]
struct Restart {
    /// Series and oldest timestamp of the entry there.
    id: SeriesId,
    first: Timestamp,
    at: u32,
    state: State,
}

/// A page that was read and checked.
#[derive(Debug)]
pub(crate) struct Page {
    bytes: Box<[u8]>,
    restarts: Box<[Restart]>,
    family: Family,
}

impl Page {
    /// Checks the entries of a page whose checksum matches. `end` is where its last
    /// chunk must end.
    ///
    /// # Errors
    /// `Corrupt` if an entry breaks an invariant of its family or its page.
    pub(crate) fn parse(bytes: Vec<u8>, page: &PageRef, family: Family, end: u64) -> Result<Self> {
        let damaged = || corrupt("an index page is invalid");
        let mut state = State::start(page);
        let mut restarts = Vec::with_capacity(bytes.len() / 200);
        let mut before: Option<(SeriesId, Timestamp)> = None;
        let (mut first, mut last) = (Timestamp::MAX, Timestamp::MIN);
        let mut rest = &bytes[..];
        for index in 0.. {
            if rest.is_empty() {
                break;
            }
            let (at, start) = (bytes.len() - rest.len(), state);
            let entry = take(&mut rest, &mut state).ok_or_else(damaged)?;
            let ascends = match before {
                Some((id, last)) => entry.id > id || family == Family::Late || entry.first > last,
                None => entry.id == page.first_id,
            };
            let partition = partition_of(page.first_id);
            if !ascends || entry.kind.family() != family || partition_of(entry.id) != partition {
                return Err(damaged());
            }
            if index % RESTART_EVERY == 0 {
                restarts.push(Restart {
                    id: entry.id,
                    first: entry.first,
                    at: at as u32,
                    state: start,
                });
            }
            before = Some((entry.id, entry.last));
            (first, last) = (first.min(entry.first), last.max(entry.last));
        }
        if (first, last, state.offset) != (page.first, page.last, end) {
            return Err(damaged());
        }
        Ok(Self {
            bytes: bytes.into(),
            restarts: restarts.into(),
            family,
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.restarts.len() * size_of::<Restart>()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.decode_from(0)
    }

    /// The entries of a series that intersect `from..=to`, in order. Decodes at
    /// most sixteen entries more than the series has from `from` on.
    pub(crate) fn find(
        &self,
        id: SeriesId,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = Entry> + '_ {
        let is_base = self.family == Family::Base;
        let after = self.restarts.partition_point(|restart| {
            if is_base {
                // Entries before such a restart point end before `from`.
                (restart.id, restart.first) <= (id, from)
            } else {
                restart.id < id
            }
        });
        self.decode_from(after.saturating_sub(1))
            .skip_while(move |entry| entry.id < id)
            .take_while(move |entry| entry.id == id && (!is_base || entry.first <= to))
            .filter(move |entry| entry.touches(from, to))
    }

    fn decode_from(&self, index: usize) -> impl Iterator<Item = Entry> + '_ {
        let place = self
            .restarts
            .get(index)
            .map(|place| (place.at, place.state));
        let (mut rest, mut state) = match place {
            Some((at, state)) => (&self.bytes[at as usize..], Some(state)),
            None => (&self.bytes[..0], None),
        };
        std::iter::from_fn(move || take(&mut rest, state.as_mut()?))
    }
}

const _: () = assert!(PARTITION_BITS < 32 && PAGE_BYTES_MAX > 2 * ENTRY_BYTES_MAX);
