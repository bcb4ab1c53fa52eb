//! `LATEWOOD MERGE NOW|PAUSE|RESUME|STATUS` controls the merging of blocks.
//!
//! NOW answers at once: the merge runs in the background, and `busy` and `asked`
//! of STATUS show when it is done. STATUS replies with names and values.

use super::call::{Call, Outcome};
use super::latewood::unknown_word;
use super::spec::Spec;
use latewood_engine::MergeStats;

pub(super) const SPEC: Spec = Spec::of_group("latewood", &["admin"])
    .named("merge", apply)
    .words(3, "NOW|PAUSE|RESUME|STATUS")
    .about("Merges all blocks in the background, or pauses, resumes or describes merging.");

fn apply(call: &mut Call<'_>) -> Outcome {
    let db = &call.shared.db;
    if call.args.is(2, "NOW") {
        db.merge_soon()?;
        call.reply().simple("Merge started");
        return Ok(());
    }
    if call.args.is(2, "STATUS") {
        let fields = fields(&db.merge_stats());
        let mut reply = call.reply();
        reply.map(fields.len());
        for (name, value) in fields {
            reply.bulk(name.as_bytes());
            reply.count(value);
        }
        return Ok(());
    }
    if call.args.is(2, "PAUSE") {
        db.pause_merging();
    } else if call.args.is(2, "RESUME") {
        db.resume_merging();
    } else {
        return Err(unknown_word(call, &SPEC));
    }
    call.ok()
}

/// The figures of merging by name, as STATUS, INFO and `/api/v1/status/server` give them.
pub(crate) fn fields(stats: &MergeStats) -> Vec<(&'static str, u64)> {
    vec![
        ("paused", u64::from(stats.paused)),
        ("busy", u64::from(stats.busy)),
        ("asked", u64::from(stats.asked)),
        ("base_merges", stats.base_merges),
        ("late_merges", stats.late_merges),
        ("folds", stats.folds),
        ("usage_reads", stats.usage_reads),
        ("failures", stats.failures),
        ("abandoned", stats.abandoned),
        ("bytes_read", stats.bytes_read),
        ("bytes_written", stats.bytes_written),
        ("blocks_dropped", stats.blocks_dropped),
        ("bytes_dropped", stats.bytes_dropped),
        ("bytes_dropped_by_budget", stats.bytes_dropped_by_budget),
        ("floor_raised_by_budget", stats.floor_raised_by_budget),
        ("bytes_flushed", stats.bytes_flushed),
        ("base_blocks", stats.base_blocks),
        ("base_bytes", stats.base_bytes),
        ("late_blocks", stats.late_blocks),
        ("late_bytes", stats.late_bytes),
        ("reads", stats.reads),
        ("reads_late_blocks", stats.reads_late_blocks),
        ("reads_late_blocks_max", stats.reads_late_blocks_max),
    ]
}
