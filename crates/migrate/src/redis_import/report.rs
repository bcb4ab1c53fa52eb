//! The summary of an import, on standard output.

use super::compare::Differences;
use super::finish::Finished;
use super::{Entry, Verdict};
use crate::error::shown;
use crate::outcome::Outcome;
use std::collections::{BTreeMap, BTreeSet};

/// Names listed of each type; the others are counted.
const NAMES: usize = 100;

/// Prints what was copied and what was not.
pub(crate) fn print(
    series: &BTreeMap<Vec<u8>, Entry>,
    others: &BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    finished: &Finished,
    deletes: bool,
) -> Outcome {
    let mut agreed = 0_u64;
    let mut samples_agreed = 0_u64;
    let mut left = Vec::new();
    for (key, entry) in series {
        let key = shown(key);
        match &entry.verdict {
            Verdict::Agrees { samples } => {
                agreed += 1;
                samples_agreed += samples;
            }
            Verdict::Gone { deleted: true } => {}
            Verdict::Gone { deleted: false } => left.push(format!(
                "{key}: deleted on the source, still on the target (use --delete)"
            )),
            Verdict::Refused(why) => left.push(format!("{key}: not copied: {why}")),
            Verdict::Copied => left.push(format!("{key}: copied, not compared")),
            Verdict::Differs(found) => left.push(format!("{key}: {}", differs(found, deletes))),
        }
    }
    let is_gone = |entry: &&Entry| matches!(entry.verdict, Verdict::Gone { deleted: true });
    let gone = series.values().filter(is_gone).count();
    println!(
        "{agreed} of {} series agree by count and checksum: {samples_agreed} samples",
        series.len() - gone
    );
    println!(
        "{} compaction rules, {} expiries",
        finished.rules, finished.expiries
    );
    for (kind, keys) in others {
        let kind = shown(kind);
        println!(
            "skipped, {kind}: {}",
            names(keys.iter().map(|key| shown(key)))
        );
    }
    left.extend(finished.left.iter().cloned());
    for line in left.iter().take(NAMES) {
        println!("{line}");
    }
    if left.len() > NAMES {
        println!("and {} more", left.len() - NAMES);
    }
    if left.is_empty() {
        Outcome::Complete
    } else {
        println!("not everything was copied");
        Outcome::Incomplete
    }
}

/// Why a series still differs. Samples that only the target has stay without `deletes`: then
/// nothing changes.
fn differs(found: &Differences, deletes: bool) -> String {
    let stay = if deletes { 0 } else { found.extra };
    let why = match &found.refused {
        Some(text) => format!("the target refused {text}: "),
        None if found.missing + found.other_value + found.extra > stay => {
            "still changing: ".to_owned()
        }
        None => return format!("{stay} samples are not on the source (use --delete)"),
    };
    let hint = if stay > 0 { " (use --delete)" } else { "" };
    format!(
        "{why}{} samples were missing, {} had another value, {} are not on the source{hint}",
        found.missing, found.other_value, found.extra
    )
}

fn names(keys: impl ExactSizeIterator<Item = String>) -> String {
    let more = keys.len().saturating_sub(NAMES);
    let listed: Vec<_> = keys.take(NAMES).collect();
    match more {
        0 => listed.join(", "),
        _ => format!("{} and {more} more", listed.join(", ")),
    }
}
