//! Totals of a database, counted from its manifest, series files and log.

use super::log::Counter;
use super::read::manifest_of;
use crate::base::detail::Detail;
use crate::base::error::Result;
use crate::base::names;
use crate::io::Env;
use crate::io::directory::{is_remote, open_existing};
use crate::io::quarantine::Quarantine;
use crate::log::{self, Position};
use crate::storage::block::BlockMeta;
use crate::storage::files::{Manifest, PartitionFiles};
use std::path::Path;

/// Counts the files, bytes, series and samples of the database in `dir`. The
/// log is read whole; of blocks only what the manifest says of them.
///
/// # Errors
/// `Locked` while a server has it, `Invalid` where there is no database,
/// `Corrupt` for a damaged manifest, `Unsupported` and `Io`.
pub fn totals(env: &Env, dir: &Path) -> Result<Detail> {
    let guard = open_existing(env, dir)?;
    let counted = count(env, dir);
    guard.check_undisturbed()?;
    counted
}

fn count(env: &Env, dir: &Path) -> Result<Detail> {
    let manifest = manifest_of(env, dir)?;
    let blocks = |of: fn(&PartitionFiles) -> &Vec<BlockMeta>| {
        let all = manifest.partitions.values().flat_map(of);
        all.fold([0_u64; 3], |[count, bytes, samples], block| {
            [count + 1, bytes + block.len_bytes, samples + block.samples]
        })
    };
    let [base, late] = [blocks(|files| &files.base), blocks(|files| &files.late)];
    let partitions = manifest.partitions.values();
    let rows: u64 = partitions.map(PartitionFiles::series_count).sum();
    let series_bytes: u64 = manifest.series_files().map(|file| file.len_bytes).sum();
    let stored = base[2] + late[2];
    let bytes_each = (base[1] + late[1]) as f64 / stored.max(1) as f64;
    let first = manifest.blocks().map(|block| block.first).min();
    let last = manifest.blocks().map(|block| block.last).max();
    let time = |at: Option<i64>| at.map_or(Detail::from("none"), Detail::from);
    let family = |[count, bytes, samples]: [u64; 3]| {
        Detail::Fields(vec![
            ("blocks", count.into()),
            ("bytes", bytes.into()),
            ("samples", samples.into()),
        ])
    };
    Ok(Detail::Fields(vec![
        ("partitions", manifest.partitions.len().into()),
        ("series_in_files", rows.into()),
        ("series_file_bytes", series_bytes.into()),
        ("base", family(base)),
        ("late", family(late)),
        ("block_bytes_per_sample", bytes_each.into()),
        ("first_timestamp", time(first)),
        ("last_timestamp", time(last)),
        ("log", log_totals(env, dir, &manifest)?),
        (
            "quarantined_files",
            Quarantine::new(env, &names::quarantine_dir(dir))
                .held()?
                .len()
                .into(),
        ),
    ]))
}

/// What the log holds; only that it is elsewhere where the directory is a cache.
fn log_totals(env: &Env, dir: &Path, manifest: &Manifest) -> Result<Detail> {
    if is_remote(env, dir)? {
        return Ok("in Kafka".into());
    }
    let counter = Counter::default();
    let durable = Position(manifest.log_next_min() - 1);
    let log = log::look(env, &names::log_dir(dir), durable, &counter)?;
    Ok(Detail::Fields(vec![
        ("segments", log.segments.into()),
        ("groups", log.groups.into()),
        ("bytes", log.bytes.into()),
        ("samples", counter.samples().into()),
        ("other_records", counter.others().into()),
        ("holes", log.holes.len().into()),
        (
            "closed_in_order",
            if log.clean { "yes" } else { "no" }.into(),
        ),
    ]))
}
