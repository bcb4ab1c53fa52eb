//! Damage that the operator has not accepted yet.
//!
//! What a start could not read is in quarantine, and the rest is served: samples may be
//! missing, and what was overwritten or deleted may be visible again. Until the operator
//! accepts that ([`crate::Db::accept_quarantine`]), a file names it beside the quarantined
//! files, so that later starts know it too: a line for each, `NAME KIND PARTITION FIRST
//! LAST`, where KIND is `base`, `late` or `log`; of the log the others are 0.
//!
//! Invariant: the file is durable before a manifest is published that lacks a block, and
//! before the log may forget a hole. Tested by `recovery/quarantine/tests.rs`.

use crate::base::error::Result;
use crate::base::partition::partition_of;
use crate::io::Env;
use crate::io::quarantine::UNACCEPTED;
use crate::io::small::{self, Context, put_in_place};
use crate::log::LogHole;
use latewood_model::{SeriesId, Timestamp, named};
use std::path::Path;

named! {
    /// What a quarantined file has lost.
    pub enum DoubtKind {
        /// Samples.
        Base = 0 => "base",
        /// Late samples and deletions: what they overwrote and deleted is visible again.
        Late = 1 => "late",
        /// Writes of any kind, to any series.
        Log = 2 => "log",
    }
}

/// A quarantined file that the operator has not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Its name in the quarantine folder; where nothing is there, that of the log segment.
    pub name: String,
    /// What it has lost.
    pub kind: DoubtKind,
    partition: u32,
    /// The oldest timestamp it had, if it is a block.
    pub first: Timestamp,
    /// The newest one.
    pub last: Timestamp,
}

impl Doubt {
    /// Whether reads of `from..=to` of a series may lack something of the block, or show what
    /// is gone. A hole of the log concerns all, even series that are not there.
    pub(crate) fn concerns(&self, id: SeriesId, from: Timestamp, to: Timestamp) -> bool {
        self.partition == partition_of(id) && self.first <= to && self.last >= from
    }

    pub(crate) fn of_block(lost: &LostBlock) -> Self {
        Self {
            name: lost.kept_as.clone(),
            kind: if lost.is_late {
                DoubtKind::Late
            } else {
                DoubtKind::Base
            },
            partition: lost.partition,
            first: lost.first,
            last: lost.last,
        }
    }

    pub(crate) fn of_hole(hole: &LogHole) -> Self {
        let segment = hole.segment.file_name().unwrap_or_default();
        let kept_as = hole.kept_as.clone();
        Self {
            name: kept_as.unwrap_or_else(|| segment.to_string_lossy().into_owned()),
            kind: DoubtKind::Log,
            partition: 0,
            first: 0,
            last: 0,
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let doubt = Self {
            name: words.next()?.to_owned(),
            kind: DoubtKind::of_name(words.next()?.as_bytes())?,
            partition: words.next()?.parse().ok()?,
            first: words.next()?.parse().ok()?,
            last: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(doubt)
    }

    fn line(&self) -> String {
        let kind = self.kind.name();
        let (name, partition) = (self.name.replace([' ', '\n'], "_"), self.partition);
        format!("{name} {kind} {partition} {} {}\n", self.first, self.last)
    }
}

/// What the file in the quarantine folder `dir` names. A line that cannot be read counts as
/// damage of anything.
///
/// # Errors
/// `Io`.
pub(crate) fn read(env: &Env, dir: &Path) -> Result<Vec<Doubt>> {
    let path = dir.join(UNACCEPTED);
    let read = small::if_there(small::read_whole(&*env.disk, &path, u64::MAX));
    let read = read.context("cannot read the list of unaccepted damage", &path)?;
    let bytes = read.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let doubt = |line| {
        Doubt::parse(line).unwrap_or_else(|| Doubt {
            name: UNACCEPTED.to_owned(),
            kind: DoubtKind::Log,
            partition: 0,
            first: 0,
            last: 0,
        })
    };
    Ok(text.lines().map(doubt).collect())
}

/// Writes the file.
///
/// # Errors
/// `Io`.
pub(crate) fn write(env: &Env, dir: &Path, doubts: &[Doubt]) -> Result<()> {
    let new = format!("{UNACCEPTED}.new");
    let text: String = doubts.iter().map(Doubt::line).collect();
    let made = env.disk.create_dir_all(dir);
    let written =
        made.and_then(|()| small::write_new(&*env.disk, &dir.join(&new), text.as_bytes()));
    let replaced = written.and_then(|()| put_in_place(&*env.disk, dir, &new, UNACCEPTED));
    replaced.context("cannot list unaccepted damage", &dir.join(UNACCEPTED))
}

/// Removes the file.
///
/// # Errors
/// `Io`.
pub(crate) fn remove(env: &Env, dir: &Path) -> Result<()> {
    let path = dir.join(UNACCEPTED);
    let removed = small::if_there(env.disk.remove(&path));
    let removed = removed.and_then(|removed| removed.map_or(Ok(()), |()| env.disk.sync_dir(dir)));
    removed.context("cannot accept the quarantine", &path)
}

/// A block that a start left out because it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBlock {
    /// Its name in the quarantine folder.
    pub kept_as: String,
    /// The damage.
    pub reason: String,
    /// Whether it is a late block, with late samples and deletions, not a base
    /// block.
    pub is_late: bool,
    /// The partition of its series.
    pub partition: u32,
    /// Number of series in it.
    pub series: u64,
    /// Number of samples in it.
    pub samples: u64,
    /// The oldest timestamp in it.
    pub first: Timestamp,
    /// The newest timestamp in it.
    pub last: Timestamp,
}
