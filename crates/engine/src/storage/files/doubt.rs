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

use crate::base::error::{Error, Result};
use crate::base::partition::partition_of;
use crate::io::Env;
use crate::io::quarantine::UNACCEPTED;
use crate::log::LogHole;
use crate::storage::files::LostBlock;
use latewood_model::{SeriesId, Timestamp};
use std::io::{Error as IoError, ErrorKind as IoKind};
use std::path::Path;

/// What a quarantined file has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtKind {
    /// Samples.
    Base,
    /// Late samples and deletions: what they overwrote and deleted is visible again.
    Late,
    /// Writes of any kind, to any series.
    Log,
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
            kind: match words.next()? {
                "base" => DoubtKind::Base,
                "late" => DoubtKind::Late,
                "log" => DoubtKind::Log,
                _ => return None,
            },
            partition: words.next()?.parse().ok()?,
            first: words.next()?.parse().ok()?,
            last: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(doubt)
    }

    fn line(&self) -> String {
        let kind = match self.kind {
            DoubtKind::Base => "base",
            DoubtKind::Late => "late",
            DoubtKind::Log => "log",
        };
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
    let failed = |error| Error::io("cannot read the list of unaccepted damage", &path, error);
    let file = match env.disk.open(&path) {
        Err(error) if error.kind() == IoKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(failed)?,
    };
    let len_bytes = file.len_bytes().map_err(failed)?;
    let len_bytes = usize::try_from(len_bytes).map_err(|error| failed(IoError::other(error)))?;
    let mut bytes = vec![0; len_bytes];
    file.read_at(&mut bytes, 0).map_err(failed)?;
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
    let path = dir.join(UNACCEPTED);
    let new = dir.join(format!("{UNACCEPTED}.new"));
    let replace = || {
        env.disk.create_dir_all(dir)?;
        match env.disk.remove(&new) {
            Err(error) if error.kind() != IoKind::NotFound => return Err(error),
            _ => {}
        }
        let file = env.disk.create(&new, 0)?;
        let text: String = doubts.iter().map(Doubt::line).collect();
        file.write_at(text.as_bytes(), 0)?;
        file.sync()?;
        env.disk.rename(&new, &path)?;
        env.disk.sync_dir(dir)
    };
    replace().map_err(|error| Error::io("cannot list unaccepted damage", &path, error))
}

/// Removes the file.
///
/// # Errors
/// `Io`.
pub(crate) fn remove(env: &Env, dir: &Path) -> Result<()> {
    let path = dir.join(UNACCEPTED);
    let removed = match env.disk.remove(&path) {
        Err(error) if error.kind() == IoKind::NotFound => return Ok(()),
        removed => removed.and_then(|()| env.disk.sync_dir(dir)),
    };
    removed.map_err(|error| Error::io("cannot accept the quarantine", &path, error))
}
