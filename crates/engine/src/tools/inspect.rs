//! Inspecting one file of a database. Tested by `tests/tools.rs`.

use crate::base::detail::Detail;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::io::Env;
use crate::io::small::{Context, read_whole};
use crate::log;
use crate::storage::block::{Block, BlockMeta, Cache, Family, Kind};
use crate::storage::files::directory::MANIFEST_BYTES_MAX;
use crate::storage::files::{Manifest, SeriesFileMeta, SeriesFileReader, SeriesRow};
use std::path::Path;
use std::sync::Arc;

/// Index pages are read once each.
const CACHE_BYTES: u64 = 1 << 20;

/// Tells what is in a log segment, block, manifest or series file, which is
/// known by its name or, in quarantine, by the beginning of it. Nothing but
/// this file is read, and nothing is changed.
///
/// # Errors
/// `Invalid` for another file, `Unsupported` for a later version, `Corrupt`
/// where it is damaged, `Io`.
pub fn inspect(env: &Env, path: &Path) -> Result<Detail> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == names::MANIFEST || name == names::MANIFEST_NEW {
        let bytes = read_whole(&*env.disk, path, MANIFEST_BYTES_MAX);
        let bytes = bytes.context("cannot read the manifest", path)?;
        let manifest = Manifest::decode(&bytes).map_err(|error| error.at(path))?;
        return Ok(manifest_facts(&manifest));
    }
    // `segment-0000000000000001.wal.2` in quarantine is still a segment.
    let original = |suffix: &str| {
        Some(
            name.split_at(name.find(suffix)? + suffix.len())
                .0
                .to_owned(),
        )
    };
    if let Some(number) = original(".wal").and_then(|name| names::parse_segment(&name)) {
        if let Some(offset) = stretch_offset(&name) {
            return stretch_facts(env, path, number, offset);
        }
        return log::segment_facts(env, path, number);
    }
    if original(".blk").is_some_and(|name| names::parse_block(&name).is_some()) {
        return block_facts(env, path);
    }
    if original(".cat").is_some_and(|name| names::parse_series_file(&name).is_some()) {
        return series_facts(env, path);
    }
    let message = "not a log segment, block, manifest or series file by its name";
    Err(Error::new(ErrorKind::Invalid, message).at(path))
}

/// Where in its segment a stretch in quarantine stood, by its name.
fn stretch_offset(name: &str) -> Option<u64> {
    name.split_once(".wal.at-")?.1.parse().ok()
}

/// A damaged stretch has no header, and only with what that says can groups be
/// told from anything else.
fn stretch_facts(env: &Env, path: &Path, number: u64, offset: u64) -> Result<Detail> {
    let file = env.disk.open(path);
    let len_bytes = file.and_then(|file| file.len_bytes());
    let len_bytes = len_bytes.context("cannot read a stretch of the log", path)?;
    Ok(Detail::Fields(vec![
        ("file", "damaged stretch of a log segment".into()),
        ("segment", number.into()),
        ("offset", offset.into()),
        ("bytes", len_bytes.into()),
    ]))
}

fn manifest_facts(manifest: &Manifest) -> Detail {
    let partitions = manifest.partitions.iter().map(|(partition, files)| {
        let series = files.awake_files().map(series_file_row);
        let parked = files.parked.iter().map(series_file_row);
        let blocks = |list: &[BlockMeta]| Detail::List(list.iter().map(block_row).collect());
        Detail::Fields(vec![
            ("partition", (*partition).into()),
            ("series", Detail::List(series.collect())),
            ("parked", Detail::List(parked.collect())),
            ("base", blocks(&files.base)),
            ("late", blocks(&files.late)),
        ])
    });
    Detail::Fields(vec![
        ("file", "manifest".into()),
        ("epoch", manifest.epoch.into()),
        ("flush", manifest.flush.into()),
        ("next_file", manifest.next_file.into()),
        ("next_id", manifest.next_id.into()),
        ("log_start", manifest.log_start.into()),
        ("floor", manifest.floor.into()),
        ("partitions", Detail::List(partitions.collect())),
    ])
}

fn series_file_row(file: &SeriesFileMeta) -> Detail {
    Detail::Fields(vec![
        ("file", names::series_file(file.number).into()),
        ("series", file.rows.into()),
        ("bytes", file.len_bytes.into()),
        ("position", file.position.into()),
    ])
}

fn block_row(block: &BlockMeta) -> Detail {
    Detail::Fields(vec![
        ("file", names::block(block.number).into()),
        ("series", block.series.into()),
        ("samples", block.samples.into()),
        ("bytes", block.len_bytes.into()),
        ("first", block.first.into()),
        ("last", block.last.into()),
    ])
}

fn block_facts(env: &Env, path: &Path) -> Result<Detail> {
    let block = Arc::new(Block::open_any(env, path, &Cache::new(CACHE_BYTES))?);
    let meta = block.meta().clone();
    let (mut base, mut overlays, mut tombstones, mut chunk_bytes) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut scan = block.scan();
    while let Some(entry) = scan.advance()? {
        match entry.kind {
            Kind::Base => base += 1,
            Kind::Overlay(_) => overlays += 1,
            Kind::Tombstone => tombstones += 1,
        }
        chunk_bytes += u64::from(entry.len_bytes);
    }
    let family = match meta.family {
        Family::Base => "base",
        Family::Late => "late",
    };
    Ok(Detail::Fields(vec![
        ("file", "block".into()),
        ("number", meta.number.into()),
        ("family", family.into()),
        ("partition", meta.partition.into()),
        ("bytes", meta.len_bytes.into()),
        ("chunk_bytes", chunk_bytes.into()),
        ("series", meta.series.into()),
        ("samples", meta.samples.into()),
        ("chunks", base.into()),
        ("overlays", overlays.into()),
        ("tombstones", tombstones.into()),
        ("first", meta.first.into()),
        ("last", meta.last.into()),
    ]))
}

fn series_facts(env: &Env, path: &Path) -> Result<Detail> {
    let meta = SeriesFileMeta::of_file(env, path)?;
    let mut reader = SeriesFileReader::open_to_verify(env, path, &meta)?;
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    while reader.next(&mut rows)? {
        series.extend(rows.iter().map(series_row));
    }
    let removed = reader.removed().iter().map(|id| id.0.into());
    Ok(Detail::Fields(vec![
        ("file", "series file".into()),
        ("number", meta.number.into()),
        ("partition", meta.partition.into()),
        ("bytes", meta.len_bytes.into()),
        ("position", meta.position.into()),
        ("count", meta.rows.into()),
        ("removed", Detail::List(removed.collect())),
        ("series", Detail::List(series)),
    ]))
}

fn series_row(row: &SeriesRow) -> Detail {
    let time = |at: Option<i64>| at.map_or(Detail::from("none"), Detail::from);
    let rules = row.source.as_ref().map_or(0, |source| source.rules.len());
    Detail::Fields(vec![
        ("id", row.id.0.into()),
        ("key", String::from_utf8_lossy(&row.key).into_owned().into()),
        ("labels", row.options.labels.len().into()),
        ("made_by", row.made_by.name().into()),
        ("rules", rules.into()),
        ("position", row.position.into()),
        ("newest", time(row.newest)),
    ])
}
