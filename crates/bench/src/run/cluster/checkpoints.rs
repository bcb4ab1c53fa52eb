//! What the first checkpoint after a take-over uploads, beside an ordinary one after as many writes.
//!
//! A follower took over the files of the checkpoints before, so it should upload no more. Bytes are
//! those of objects that were not there before the writes. All is in order: later samples would be
//! late by more, and take more.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::bench::{Bench, NODES};
use super::writers::{Writers, wait_for_all};
use crate::base::files::files_below;
use crate::drive::wire::drain;
use crate::run::options::turns;
use crate::run::prelude::*;
use crate::server::Nodes;

pub(super) fn checkpoints(bench: &Bench, report: &mut Report) -> Result<()> {
    let count = bench.checkpoints;
    if count == 0 {
        return Ok(());
    }
    let between = bench.between;
    let mut nodes = bench.nodes("checkpoints", NODES, report)?;
    let mut writers = Writers::create(&nodes, bench, between * (2 * count as u64 + 1), 0.0)?;
    writers.send(between as f64, 0.0)?;
    drain(&mut nodes.control(nodes.owner()?)?)?;
    for repeat in 0..count {
        for is_first in turns(repeat, 2).map(|at| at == 1) {
            let owner = nodes.settle()?;
            let before: HashSet<PathBuf> = files_below(nodes.objects()).into_iter().collect();
            writers.send(between as f64, 0.0)?;
            wait_for_all(&nodes, owner)?;
            if is_first {
                nodes.process(owner).kill()?;
            }
            drain(&mut nodes.control(nodes.owner()?)?)?;
            let objects = added(&nodes, &before);
            let bytes: u64 = objects.iter().map(|(_, bytes)| bytes).sum();
            if is_first {
                nodes.start_again(owner)?;
                writers = writers.follow(&nodes)?;
            }
            let run = json!({
                "of": if is_first { "first after a take-over" } else { "ordinary" },
                "samples": between, "objects": objects, "bytes": bytes, "repeat": repeat,
            });
            report.push("checkpoints", run)?;
        }
    }
    Ok(())
}

/// Names and bytes of the objects that were not there before.
fn added(nodes: &Nodes, before: &HashSet<PathBuf>) -> Vec<(String, u64)> {
    let mut objects = files_below(nodes.objects());
    objects.retain(|path| !before.contains(path));
    let about = |path: PathBuf| {
        let name = path.strip_prefix(nodes.objects()).unwrap_or(&path);
        // What went meanwhile is not there.
        let bytes = fs::metadata(&path).ok()?.len();
        Some((name.display().to_string(), bytes))
    };
    objects.into_iter().filter_map(about).collect()
}
