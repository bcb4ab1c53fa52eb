//! The state of one series and its accessors. The invariants are in [`super`].

use super::counted::Far;
use super::late::Late;
use super::moment::Moment;
use super::seal::Sealer;
use super::stored::Stored;
use crate::base::error::Result;
use crate::format::chunk::{Held, Shape};
use crate::series::rules::Links;
use crate::storage::files::late_tally::LateTally;
use latewood_codec::{Hint, prefetch};
use latewood_model::{
    DuplicatePolicy, Encoding, Ignore, Labels, MadeBy, Sample, SeriesOptions, Timestamp,
};
use std::sync::Arc;

/// One series. See the module's invariants.
///
/// The fields that adding a sample to the tail reads and writes are adjacent, up to
/// the retention, which only late samples read. With a million series, each cache
/// line is a separate wait for memory.
#[repr(C)]
pub(crate) struct Series {
    pub(super) newest: Moment,
    pub(super) sealed_last: Moment,
    pub(super) tail: Vec<Sample>,
    /// The rules it is part of; a null pointer in most series.
    pub(super) links: Option<Box<Links>>,
    /// What not every series has.
    pub(super) rare: Option<Box<Rare>>,
    /// Samples of a full tail.
    pub(super) frame_samples: u16,
    pub(super) policy: Option<DuplicatePolicy>,
    /// Some value may be NaN.
    pub(super) holds_nan: bool,
    /// It has an IGNORE rule.
    pub(super) ignores: bool,
    /// The last chunk may still grow.
    pub(super) last_open: bool,
    pub(super) replay: Replay,
    /// The tail is in arrival order; see [`super::tail`].
    pub(super) tail_unsorted: bool,
    pub(crate) key: Arc<[u8]>,
    pub(super) retention_ms: u64,
    /// Bytes of its head that its shard has counted.
    pub(crate) head_noted: u32,
    /// Late operations its shard has counted.
    pub(crate) late_noted: u32,
    pub(super) late: Option<Box<Late>>,
    /// The stored part; `None` in a series that was never flushed.
    pub(super) stored: Option<Box<Stored>>,
    /// The bytes of the chunks in [`Series::held_bytes`].
    pub(super) chunk_bytes: usize,
    pub(super) chunks: Vec<Held>,
    pub(super) hint: Hint,
    pub(super) chunk_size_bytes: u32,
    /// Settles begun so far; a result with another number is outdated.
    pub(super) settles_begun: u32,
    pub(super) encoding: Encoding,
    pub(crate) marks: Marks,
    /// The series is in its shard's list of those that wait for a settle.
    pub(crate) queued: bool,
    /// The series is in its shard's list of those to settle next.
    pub(crate) ready: bool,
}

/// Who made a series, whether its shard has counted it among those with samples in blocks, what
/// series files have of it, whether somebody owns it and whether it was written to lately: in one
/// byte, as a series has none to spare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks(u8);

impl Marks {
    /// The bits above the maker's number.
    const STORED: u8 = 1 << 7;
    /// A series file has a row of it.
    const FILED: u8 = 1 << 6;
    /// Something was written to the series since that row was made.
    const CHANGED: u8 = 1 << 5;
    /// Somebody has it for itself.
    const OWNED: u8 = 1 << 4;
    /// It was parked, and the newest file with a row of it is one of parked series.
    const WOKEN: u8 = 1 << 3;
    /// It came, woke or was written to since a look for series to park.
    const ACTIVE: u8 = 1 << 2;
    const MAKER: u8 = 0b11;

    pub(crate) fn new(made_by: MadeBy) -> Self {
        Self(made_by as u8 | Self::ACTIVE)
    }

    pub(crate) fn made_by(self) -> MadeBy {
        // Only numbers of makers are in it.
        MadeBy::from_number(self.0 & Self::MAKER).unwrap_or(MadeBy::Create)
    }

    /// Notes that it is counted among those with samples in blocks; whether it was before.
    pub(crate) fn note_stored(&mut self) -> bool {
        let before = self.is_stored_noted();
        self.0 |= Self::STORED;
        before
    }

    pub(crate) fn is_stored_noted(self) -> bool {
        self.0 & Self::STORED != 0
    }

    /// Whether somebody has it for itself ([`crate::keyspace::owned`]).
    pub(crate) fn is_owned(self) -> bool {
        self.0 & Self::OWNED != 0
    }

    pub(crate) fn set_owned(&mut self, is_owned: bool) {
        self.0 = self.0 & !Self::OWNED | if is_owned { Self::OWNED } else { 0 };
    }

    /// Notes that its row, if it has one, is outdated.
    pub(crate) fn note_changed(&mut self) {
        self.0 |= Self::CHANGED;
    }

    /// Notes that a series file has its row as it is now; whether one had a row of it before.
    pub(crate) fn note_filed(&mut self) -> bool {
        let before = self.is_filed();
        self.0 = self.0 & !(Self::CHANGED | Self::WOKEN) | Self::FILED;
        before
    }

    /// Notes that a file of parked series has its row as it is, and no newer file has one.
    pub(crate) fn note_woken(&mut self) {
        self.0 |= Self::WOKEN | Self::FILED;
    }

    /// Notes whether the newest file with a row of it is one of parked series, which has it as it was.
    pub(crate) fn set_woken(&mut self, is_woken: bool) {
        if is_woken {
            self.note_woken();
        } else {
            self.0 &= !Self::WOKEN;
        }
    }

    /// Whether the newest file with a row of it is one of parked series.
    pub(crate) fn is_woken(self) -> bool {
        self.0 & Self::WOKEN != 0
    }

    /// Notes that it was written to.
    pub(crate) fn note_active(&mut self) {
        self.0 |= Self::ACTIVE;
    }

    /// Whether it came, woke or was written to since this was asked last.
    pub(crate) fn take_active(&mut self) -> bool {
        let before = self.0 & Self::ACTIVE != 0;
        self.0 &= !Self::ACTIVE;
        before
    }

    pub(crate) fn is_filed(self) -> bool {
        self.0 & Self::FILED != 0
    }

    /// Whether no series file has its row as it is now.
    pub(crate) fn is_outdated(self) -> bool {
        self.0 & (Self::FILED | Self::CHANGED) != Self::FILED
    }
}

/// Whether the log of another run is applied to a series; see [`super::counted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    /// It is not.
    Over,
    /// So far it is of a version whose deletions do not say what they expire: all that is
    /// too old for the newest sample.
    Unsaid,
    /// Deletions say what they expire.
    Said,
    /// It goes on while readers look: they see what the owner of the log shows. Nothing expires
    /// but what the log says.
    Follows,
}

/// The state that not every series has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rare {
    pub(super) ignore: Ignore,
    pub(super) far: Option<Far>,
    pub(super) late: LateTally,
}

impl Series {
    /// An empty series. The index holds its labels.
    pub(crate) fn new(key: Arc<[u8]>, options: &SeriesOptions) -> Self {
        let shape = Shape {
            encoding: options.encoding,
            chunk_size_bytes: options.chunk_size_bytes,
        };
        let rare = Rare {
            ignore: options.ignore,
            ..Rare::default()
        };
        Self {
            newest: Moment::NONE,
            sealed_last: Moment::NONE,
            tail: Vec::new(),
            links: None,
            rare: (rare != Rare::default()).then(|| Box::new(rare)),
            frame_samples: tail_max(shape),
            policy: options.duplicate_policy,
            holds_nan: false,
            ignores: options.ignore != Ignore::default(),
            last_open: false,
            queued: false,
            replay: Replay::Over,
            tail_unsorted: false,
            key,
            retention_ms: options.retention_ms,
            head_noted: 0,
            late_noted: 0,
            late: None,
            stored: None,
            chunk_bytes: 0,
            chunks: Vec::new(),
            hint: Hint::default(),
            chunk_size_bytes: options.chunk_size_bytes,
            settles_begun: 0,
            encoding: options.encoding,
            marks: Marks::new(MadeBy::Create),
            ready: false,
        }
    }

    /// Changes what not every series has.
    pub(super) fn change_rare(&mut self, change: impl FnOnce(&mut Rare)) {
        let mut rare = self.rare.as_deref().copied().unwrap_or_default();
        change(&mut rare);
        self.rare = match self.rare.take() {
            _ if rare == Rare::default() => None,
            Some(mut held) => {
                *held = rare;
                Some(held)
            }
            None => Some(Box::new(rare)),
        };
    }

    /// What came late so far.
    pub(crate) fn late_tally(&self) -> LateTally {
        self.rare.as_ref().map(|rare| rare.late).unwrap_or_default()
    }

    /// Counts an accepted sample that was older than the newest one when it came. Nothing is late while a
    /// rule writes the series: corrections are not told from the rest.
    #[inline]
    pub(crate) fn count_late(&mut self, arrived_ms: i64) {
        if self.source().is_none() && !self.marks.is_owned() {
            let late = &mut self.rare.get_or_insert_default().late;
            late.count += 1;
            late.arrived_ms = Some(arrived_ms);
        }
    }

    /// The same of samples from the log, which says neither when they came nor who owned the series.
    /// Whether they counted.
    pub(crate) fn count_replayed_late(&mut self, samples: u64) -> bool {
        let counts = self.source().is_none() && self.marks.made_by() != MadeBy::Rule;
        if counts {
            self.rare.get_or_insert_default().late.count += samples;
        }
        counts
    }

    /// How its chunks are divided and encoded.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            encoding: self.encoding,
            chunk_size_bytes: self.chunk_size_bytes,
        }
    }

    /// The options as CREATE takes them, with the labels from the index.
    pub(crate) fn options(&self, labels: Labels) -> SeriesOptions {
        SeriesOptions {
            retention_ms: self.retention_ms,
            chunk_size_bytes: self.chunk_size_bytes,
            encoding: self.encoding,
            duplicate_policy: self.policy,
            ignore: self
                .rare
                .as_ref()
                .map(|rare| rare.ignore)
                .unwrap_or_default(),
            labels,
        }
    }

    /// Sets all options but the labels; encoded samples stay as they are. What
    /// [`Series::delete_expired`] returns, if it had to.
    pub(crate) fn set_options(
        &mut self,
        options: &SeriesOptions,
        sealer: &mut Sealer,
    ) -> Result<Option<Timestamp>> {
        let is_longer = match options.retention_ms {
            0 => self.retention_ms != 0,
            retention_ms => self.retention_ms != 0 && retention_ms > self.retention_ms,
        };
        // Samples that readers saw expire must not reappear. A shorter retention
        // reveals none, and rules may still need the samples it hides.
        let expired = is_longer.then(|| self.delete_expired(sealer)).transpose()?;
        self.chunk_size_bytes = options.chunk_size_bytes;
        self.frame_samples = tail_max(self.shape());
        self.retention_ms = options.retention_ms;
        self.policy = options.duplicate_policy;
        self.change_rare(|rare| rare.ignore = options.ignore);
        self.ignores = options.ignore != Ignore::default();
        if !self.is_far() || self.retention_ms == 0 {
            self.find_counted(sealer);
        }
        self.drop_expired();
        Ok(expired.flatten())
    }

    /// Reads the memory that adding a sample reads: see
    /// [`crate::series::shard::ShardState::touch`].
    #[inline]
    pub(crate) fn touch(&self) -> usize {
        let small = usize::from(self.frame_samples) ^ usize::from(self.holds_nan);
        let newest = self.newest().unwrap_or(0) as usize;
        small ^ newest ^ self.tail.len() ^ self.key.len()
    }

    /// Reads the end of the tail, where the next sample is written.
    #[inline]
    pub(crate) fn touch_tail(&self) -> i64 {
        self.tail.last().map_or(0, |sample| sample.timestamp)
    }

    /// Prefetches the memory of the next sample of the tail.
    #[inline]
    pub(crate) fn prefetch_tail(&self) {
        prefetch(self.tail.as_ptr_range().end);
    }

    /// Reads the start of the tail, and the last chunk.
    pub(crate) fn touch_chunk(&self) -> usize {
        let tail = self.tail.first().map_or(0, |sample| sample.timestamp);
        self.chunks.last().map_or(0, |held| held.count()) ^ tail as usize
    }

    /// Reads the start of the frames of the last chunk.
    pub(crate) fn touch_frames(&self) -> u8 {
        let bytes = self.chunks.last().and_then(|held| held.bytes().first());
        bytes.copied().unwrap_or(0)
    }

    /// The timestamp of the newest sample.
    #[inline]
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.newest.get()
    }

    /// The timestamp of the newest sample; the smallest one of an empty series.
    #[inline]
    pub(crate) fn newest_or_min(&self) -> Timestamp {
        self.newest.or_min()
    }

    #[cold]
    pub(super) fn note_touched(&mut self, timestamp: Timestamp) {
        let sealed = self.sealed_last.get();
        let sealed = sealed.is_some_and(|last| timestamp <= last);
        if let Some(source) = self.source_mut() {
            source.touched(timestamp, sealed);
        }
    }

    /// The policy for a sample: its own, else that of the series, else the default.
    pub(crate) fn policy_for(
        &self,
        own: Option<DuplicatePolicy>,
        default: DuplicatePolicy,
    ) -> DuplicatePolicy {
        own.or(self.policy).unwrap_or(default)
    }

    /// How long its samples are kept, counted from its newest one; 0 is for ever.
    pub(crate) fn retention_ms(&self) -> u64 {
        self.retention_ms
    }

    /// The oldest timestamp that a late sample may have if the newest sample is at
    /// `newest`; the smallest one during the replay.
    pub(super) fn floor(&self, newest: Timestamp) -> Timestamp {
        if self.replay == Replay::Over {
            self.floor_below(self.counted(newest))
        } else {
            Timestamp::MIN
        }
    }

    /// The same if the sample at `counted` counts.
    pub(super) fn floor_below(&self, counted: Timestamp) -> Timestamp {
        match i64::try_from(self.retention_ms) {
            Ok(0) | Err(_) => Timestamp::MIN,
            Ok(retention_ms) => counted.saturating_sub(retention_ms),
        }
    }

    /// The oldest timestamp that is kept for readers and rules.
    pub(crate) fn held_floor(&self) -> Timestamp {
        if self.replay != Replay::Over {
            return Timestamp::MIN;
        }
        let floor = self.retention_floor();
        self.rules().map_or(floor, |source| source.hold(floor))
    }

    /// The oldest timestamp inside the retention if the newest sample counts.
    pub(crate) fn floor_by_newest(&self) -> Timestamp {
        let newest = self.newest();
        newest.map_or(Timestamp::MIN, |newest| self.floor_below(newest))
    }

    /// The oldest timestamp a reader sees.
    pub(crate) fn retention_floor(&self) -> Timestamp {
        match (self.newest(), self.replay) {
            (Some(newest), Replay::Over | Replay::Follows) => {
                self.floor_below(self.counted(newest))
            }
            _ => Timestamp::MIN,
        }
    }
}

fn tail_max(shape: Shape) -> u16 {
    // At most FRAME_SAMPLES_MAX.
    shape.frame_samples() as u16
}

/// How samples of a series are divided and encoded, and which of them are still
/// needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Neither readers nor rules need older samples.
    pub(crate) floor: Timestamp,
    pub(crate) shape: Shape,
}

impl Series {
    /// The current facts. The floor only ever rises.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            floor: self.held_floor(),
            shape: self.shape(),
        }
    }
}
