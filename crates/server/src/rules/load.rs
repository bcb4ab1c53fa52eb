//! The groups that files and patterns name. Tested by `tests/`.

use crate::state::{Rules as Settings, digest as digest_of};
use latewood_promql::labels::Labels;
use latewood_rules::{Group, load};
use std::collections::BTreeSet;
use std::path::Path;

/// Faults that are told; of more their number.
const FAULTS_MAX: usize = 20;

/// The groups of all files, with the files.
///
/// # Errors
/// What is wrong with them, a line each.
pub(super) fn groups(settings: &Settings) -> Result<Vec<(String, Group)>, String> {
    let (mut files, mut faults) = (BTreeSet::new(), Vec::new());
    for pattern in &settings.files {
        match load::expand(Path::new(""), pattern) {
            Ok(found) if found.is_empty() && !pattern.contains(['*', '?', '[']) => {
                faults.push(format!("{pattern}: there is no such file"));
            }
            Ok(found) => {
                if found.is_empty() {
                    tracing::warn!(pattern, "no rule file matches this pattern of --rules");
                }
                files.extend(found);
            }
            Err(fault) => faults.push(fault.to_string()),
        }
    }
    let (mut groups, mut rules) = (Vec::new(), 0);
    for file in files {
        match load::file(&file, false) {
            Ok(found) => {
                rules += found.len();
                let name = file.display().to_string();
                groups.extend(found.groups.into_iter().map(|group| (name.clone(), group)));
            }
            Err(wrong) => faults.extend(wrong),
        }
        if rules as u64 > settings.rules_max {
            let most = settings.rules_max;
            faults.push(format!(
                "{}: more than {most} rules; --max-rules sets how many there may be",
                file.display()
            ));
            break;
        }
    }
    if faults.is_empty() {
        return Ok(groups);
    }
    let more = faults.len().saturating_sub(FAULTS_MAX);
    faults.truncate(FAULTS_MAX);
    if more > 0 {
        faults.push(format!("and {more} more"));
    }
    Err(faults.join("\n"))
}

/// A digest of groups, and of the settings that change what they do; 0 without files.
pub(super) fn digest(groups: &[(String, Group)], settings: &Settings) -> u64 {
    if settings.files.is_empty() {
        return 0;
    }
    let groups = groups.iter().map(|(file, group)| {
        let rules = group.rules.iter();
        let rules = rules.map(|rule| digest_of(&(&rule.name, &rule.text, &rule.kind)));
        let rules: Vec<u64> = rules.collect();
        let times = (group.interval_ms, group.query_offset_ms, group.limit);
        // Times of evaluation depend on the file.
        digest_of(&(file, &group.name, times, rules))
    });
    let groups: Vec<u64> = groups.collect();
    let times = (settings.interval_ms, settings.query_offset_ms);
    let corrections = (
        settings.correct_back_ms,
        settings.catch_up_ms,
        settings.retention_ms,
    );
    digest_of(&(
        groups,
        times,
        corrections,
        &settings.external_labels,
        settings.series_max,
    ))
}

/// The labels of `NAME=VALUE`.
///
/// # Errors
/// Which one is wrong.
pub(super) fn external_labels(given: &[String]) -> Result<Labels, String> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && name != "__name__" => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(format!("external-labels: {text:?} is not NAME=VALUE")),
    };
    let pairs = given.iter().map(pair).collect::<Result<Vec<_>, _>>()?;
    let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
    Ok(Labels::from_pairs(pairs))
}
