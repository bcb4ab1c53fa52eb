//! The segment files of a log as a start finds them, before any is read.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::io::small::{Context, list_if_there};
use crate::io::{Env, File};
use crate::log::reader::{Claims, SegmentReader};
use crate::log::segment::{DATA_OFFSET, HeaderState, SegmentHeader, read_header};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct FoundSegment {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) header: HeaderState,
    /// Where a later segment takes over.
    pub(crate) limit: u64,
}

/// The segments in `dir`, in order. Where `makes_durable` says so all that is found is
/// made durable, for new acknowledgements build on it: a killed process, or a sync that
/// failed before, may have left it in memory only.
pub(crate) fn find(env: &Env, dir: &Path, makes_durable: bool) -> Result<Vec<FoundSegment>> {
    let mut found = Vec::new();
    for name in list_if_there(&*env.disk, dir).context("cannot list the log", dir)? {
        // There is a number behind each.
        let number = names::parse_segment(&name).filter(|&number| number < u64::MAX);
        let Some(number) = number else {
            continue;
        };
        let path = dir.join(&name);
        let failed = |error| Error::io("cannot read a log segment", &path, error);
        let file = if makes_durable {
            env.disk.open_to_write(&path)
        } else {
            env.disk.open(&path)
        };
        let file = file.map_err(failed)?;
        let header = read_header(&*file, number).map_err(failed)?;
        found.push(FoundSegment {
            number,
            path,
            file,
            header,
            limit: u64::MAX,
        });
    }
    // Names sort by number. Each segment ends where the first later one that
    // was started begins, wherever that is.
    let mut limit = u64::MAX;
    for segment in found.iter_mut().rev() {
        segment.limit = limit;
        if let Some(header) = segment.started() {
            limit = limit.min(header.first_sequence);
        }
    }
    if makes_durable {
        make_durable(&found)?;
    }
    Ok(found)
}

/// Makes all segments durable that hold something and that no header knows to be.
fn make_durable(found: &[FoundSegment]) -> Result<()> {
    let headers = found.iter().filter_map(FoundSegment::started);
    let synced = headers.map(|header| header.synced).max().unwrap_or(0);
    let is_unsure = |segment: &&FoundSegment| {
        segment.limit > synced.saturating_add(1) && !matches!(segment.header, HeaderState::Blank)
    };
    for segment in found.iter().filter(is_unsure) {
        let done = segment.file.sync_again();
        done.context("cannot sync the log", &segment.path)?;
    }
    Ok(())
}

pub(crate) fn total_bytes(found: &[FoundSegment]) -> Result<u64> {
    found.iter().try_fold(0, |total, segment| {
        let len = segment.file.len_bytes();
        Ok(total + len.map_err(|error| segment.failed(error))?)
    })
}

impl FoundSegment {
    pub(crate) fn started(&self) -> Option<&SegmentHeader> {
        match &self.header {
            HeaderState::Started(header) => Some(header),
            _ => None,
        }
    }

    pub(crate) fn failed(&self, error: std::io::Error) -> Error {
        Error::io("cannot read a log segment", &self.path, error)
    }

    pub(crate) fn reader(&self) -> Result<SegmentReader> {
        SegmentReader::new(Arc::clone(&self.file)).map_err(|error| self.failed(error))
    }

    /// Whether there is anything in it that is not zero, or a header that
    /// cannot be read. Linear in the zeros of the file.
    pub(crate) fn holds_anything(&self) -> Result<bool> {
        match self.header {
            HeaderState::Blank => {
                let holds = self.reader()?.holds_anything();
                holds.map_err(|error| self.failed(error))
            }
            _ => Ok(true),
        }
    }

    /// What all groups of this segment and its header say.
    pub(crate) fn claims(&self) -> Result<Claims> {
        let mut reader = self.reader()?;
        let known = match &self.header {
            HeaderState::Started(header) => Some((header.salt, header.first_sequence)),
            HeaderState::Blank | HeaderState::Broken | HeaderState::Garbage => {
                reader.implied_salt().map_err(|error| self.failed(error))?
            }
            // The header of this number was never written, nor was a group.
            HeaderState::Other | HeaderState::Unknown(_) => None,
        };
        let mut claims = match known {
            Some((salt, first)) => reader
                .claims_behind(DATA_OFFSET, salt, first)
                .map_err(|error| self.failed(error))?,
            None => Claims::default(),
        };
        if let Some(header) = self.started() {
            claims.synced = claims.synced.max(header.synced);
        }
        Ok(claims)
    }
}

pub(crate) fn unsupported(segment: &FoundSegment) -> Error {
    let version = match segment.header {
        HeaderState::Unknown(version) => version,
        _ => 0,
    };
    let message =
        format!("the log segment has format version {version}, which this build does not know");
    Error::new(ErrorKind::Unsupported, message).at(&segment.path)
}
