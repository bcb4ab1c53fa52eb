//! Describing the contents of one segment file. Tested by `tests/tools.rs`.

use crate::base::detail::Detail;
use crate::base::error::{Error, ErrorKind, Result};
use crate::io::Env;
use crate::log::group::HEADER_BYTES;
use crate::log::reader::SegmentReader;
use crate::log::record::{Record, RecordIter};
use crate::log::segment::{DATA_OFFSET, HeaderState, SegmentHeader, read_header};
use std::path::Path;

/// Tells what stands in the segment file `number` at `path`: its header, and
/// how many groups and records follow each other without a gap.
///
/// # Errors
/// `Corrupt` where its header is damaged or a record makes no sense,
/// `Unsupported` for a later version, `Io`.
pub(crate) fn segment_facts(env: &Env, path: &Path, number: u64) -> Result<Detail> {
    let failed = |error| Error::io("cannot read a log segment", path, error);
    let file = env.disk.open(path).map_err(failed)?;
    let header = match read_header(&*file, number).map_err(failed)? {
        HeaderState::Started(header) => header,
        HeaderState::Blank => return Ok(unused("prepared and never used")),
        HeaderState::Other => return Ok(unused("an old segment, kept to be used again")),
        HeaderState::Unknown(version) => {
            let message = format!(
                "the log segment has format version {version}, which this build does not know"
            );
            return Err(Error::new(ErrorKind::Unsupported, message).at(path));
        }
        HeaderState::Broken | HeaderState::Garbage => {
            let message = "both copies of the segment's header are damaged";
            return Err(Error::new(ErrorKind::Corrupt, message).at(path));
        }
    };
    let reader = SegmentReader::new(file).map_err(failed)?;
    let tally = tally(reader, &header).map_err(|error| error.at(path))?;
    Ok(facts(&header, &tally))
}

fn unused(state: &str) -> Detail {
    Detail::Fields(vec![
        ("file", "log segment".into()),
        ("state", state.into()),
    ])
}

#[derive(Default)]
struct Tally {
    groups: u64,
    samples: u64,
    creations: u64,
    deletions: u64,
    others: u64,
    end: u64,
    len_bytes: u64,
    groups_behind: u64,
}

fn tally(mut reader: SegmentReader, header: &SegmentHeader) -> Result<Tally> {
    let failed = |error| Error::io("cannot read a log segment", Path::new(""), error);
    let mut tally = Tally {
        len_bytes: reader.len_bytes(),
        end: DATA_OFFSET,
        ..Tally::default()
    };
    let mut sequence = header.first_sequence;
    while let Some((group, payload)) = reader
        .group(tally.end, header.salt, sequence)
        .map_err(failed)?
    {
        for record in RecordIter::new(payload, group.form()) {
            match record? {
                Record::Sample { .. } => tally.samples += 1,
                Record::Create { .. } | Record::Build { .. } => tally.creations += 1,
                Record::DeleteRange { .. } | Record::DeleteSeries { .. } | Record::FlushAll => {
                    tally.deletions += 1;
                }
                Record::Ended(ended) => tally.deletions += ended.count(),
                _ => tally.others += 1,
            }
        }
        tally.groups += 1;
        tally.end += (HEADER_BYTES + payload.len()) as u64;
        sequence += 1;
    }
    let behind = reader.claims_behind(tally.end, header.salt, sequence);
    tally.groups_behind = behind.map_err(failed)?.groups;
    Ok(tally)
}

fn facts(header: &SegmentHeader, tally: &Tally) -> Detail {
    Detail::Fields(vec![
        ("file", "log segment".into()),
        ("version", u64::from(header.version).into()),
        ("number", header.number.into()),
        ("created_ms", header.created_ms.into()),
        ("first_sequence", header.first_sequence.into()),
        ("durable_at_start", header.synced.into()),
        ("log_start", header.start.into()),
        ("bytes", tally.len_bytes.into()),
        ("used_bytes", tally.end.into()),
        ("groups", tally.groups.into()),
        ("samples", tally.samples.into()),
        ("creations", tally.creations.into()),
        ("deletions", tally.deletions.into()),
        ("other_records", tally.others.into()),
        ("groups_behind_a_gap", tally.groups_behind.into()),
    ])
}
