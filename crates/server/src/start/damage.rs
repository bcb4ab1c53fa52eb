//! Reports what the start found damaged, one line of the log each.

use latewood_engine::{LogHole, LostBlock, RecoverySummary, shown_key};

/// Series named one by one; the rest are counted.
const NAMED_MAX: usize = 100;

/// Writes a warning for everything that is lost, and for what is kept aside.
pub(crate) fn tell(recovery: &RecoverySummary) {
    for hole in &recovery.log.holes {
        tell_hole(hole);
    }
    for block in &recovery.blocks_lost {
        tell_block(block);
    }
    for reason in &recovery.blocks_damaged {
        tracing::warn!(
            reason,
            "a block is damaged: queries of that part of it fail, the rest is served"
        );
    }
    for path in &recovery.log.set_aside {
        tracing::warn!(
            file = %path.display(),
            "a log segment has no readable header and is not known to hold durable data; it is set aside and kept"
        );
    }
    for path in &recovery.log.damaged_copies {
        tracing::warn!(
            file = %path.display(),
            "one of the two copies of a log segment's header is damaged; the other one was read and nothing is lost"
        );
    }
    if recovery.samples_orphaned > 0 {
        tracing::warn!(
            samples = recovery.samples_orphaned,
            "left out samples whose series was created in a lost part of the log"
        );
    }
    for key in recovery.series_displaced.iter().take(NAMED_MAX) {
        let key = shown_key(key);
        tracing::warn!(%key, "left out a series: another one took its key after a lost part of the log");
    }
    let more = recovery.series_displaced.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        tracing::warn!(
            series = more,
            "and left out more series for the same reason"
        );
    }
    if !recovery.quarantined.is_empty() {
        let files = recovery.quarantined.len();
        tracing::warn!(files, "the quarantine folder holds damaged files");
    }
}

fn tell_hole(hole: &LogHole) {
    let groups = match hole.groups {
        0 => "an unknown number of".to_owned(),
        groups => groups.to_string(),
    };
    tracing::warn!(
        file = %hole.segment.display(),
        offset = hole.offset,
        bytes = hole.len_bytes,
        first_group = hole.first,
        quarantined_as = hole.kept_as.as_deref().unwrap_or("nothing is there"),
        "the log is damaged: {groups} groups of writes that were on disk are lost; the rest is served"
    );
}

fn tell_block(block: &LostBlock) {
    tracing::warn!(
        reason = block.reason,
        quarantined_as = block.kept_as,
        series = block.series,
        samples = block.samples,
        first_timestamp = block.first,
        last_timestamp = block.last,
        "a block is damaged: its {} are missing; the rest is served",
        if block.is_late {
            "late samples and deletions"
        } else {
            "samples"
        }
    );
}
