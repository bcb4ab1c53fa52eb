//! One page over all reports: the tables and charts that answer the main questions, and where
//! the rest is. Like every page it is made from the raw runs alone; what was not measured is said
//! to be missing, with the command that measures it.

use std::collections::BTreeMap;

use super::catalog::reports;
use super::raw::text;
use super::sheet::{Drawing, absent, draw_text, machine};
use super::targets;
use crate::base::error::Result;
use crate::measure::machine::Machine;

/// Pages by the name of their file.
pub(crate) type Reports = BTreeMap<String, Drawing>;

/// The head, what is said of the targets, then questions, and below each a line `report: what of it` for each report needed to answer it:
/// `overview` for charts of late reports and what is lost at each share, `whole` for headings,
/// tables and charts, `tables of A; B` for those of sections, `words of A; B` with their words. The
/// section before the first heading is `-`.
const PARTS: &str = include_str!("pages/index.txt");

/// What the page shows of late reports.
const LATE: &str = include_str!("pages/late-overview.txt");

/// Titles, what is said, and needed reports with what is shown of them.
fn parts() -> impl Iterator<
    Item = (
        &'static str,
        &'static str,
        Vec<(&'static str, &'static str)>,
    ),
> {
    PARTS.trim_end().split("\n\n").map(|block| {
        let mut lines = block.lines().filter_map(|line| line.split_once(": "));
        let (title, says) = lines.next().unwrap_or_default();
        (title, says, lines.collect())
    })
}

/// The page.
pub(crate) fn page(reports: &Reports) -> Result<String> {
    let mut machines = BTreeMap::new();
    for (name, report) in reports {
        machines.insert(name.as_str(), machine(&report.report)?);
    }
    let newest = machines.values();
    let newest = newest.max_by_key(|machine| machine.began_unix_seconds);
    let mut page = String::new();
    for (at, (title, says, needs)) in parts().enumerate() {
        page += &match at {
            0 => format!("# {title}\n\n{says}\n"),
            _ => format!("\n## {title}\n\n{says}\n"),
        };
        page += &match at {
            0 => newest.map_or_else(String::new, |newest| origins(&machines, newest)),
            1 => format!("\n{}", targets::table(reports)),
            _ => String::new(),
        };
        for (name, what) in needs {
            let Some(report) = reports.get(name) else {
                page += &format!("\n{}\n", missing(name));
                continue;
            };
            page += &format!("\n{}", answer(name, what, report)?);
            let mut warnings = absent(&report.report);
            let own = &machines[name];
            if newest.is_some_and(|newest| !own.is_at(newest)) {
                warnings.push(format!("Measured on another machine: {}", own.sentence()));
            }
            page.extend(warnings.iter().map(|warning| format!("\n**{warning}**\n")));
            page += &format!("\nMore: [{name}]({name}.md)\n");
        }
    }
    Ok(page + &all(&machines))
}

/// Which reports come from elsewhere than the newest one: what a reader takes for the machine of
/// them all.
fn origins(machines: &BTreeMap<&str, Machine>, newest: &Machine) -> String {
    let of = |elsewhere: &dyn Fn(&Machine) -> bool| {
        let names = machines.iter().filter(|(_, machine)| elsewhere(machine));
        let links = names.map(|(name, _)| format!("[{name}]({name}.md)"));
        links.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("\nThe newest report: {}.\n", newest.sentence());
    let others = of(&|machine| !machine.is_at(newest));
    if !others.is_empty() {
        text += &format!("\n**Measured on another machine, not comparable: {others}.**\n");
    }
    let others = of(&|machine| machine.is_at(newest) && machine.commit != newest.commit);
    if !others.is_empty() {
        text += &format!("\nMeasured on this machine at another commit: {others}.\n");
    }
    text
}

/// Every report, measured or missing.
fn all(machines: &BTreeMap<&str, Machine>) -> String {
    let mut text = String::from(
        "\n## All reports\n\n| report | question | commit | command |\n|---|---|---|---|\n",
    );
    let row = |name: &str, question: &str| match machines.get(name) {
        None => format!("| {name} | {question} | | not measured |\n"),
        Some(own) => format!(
            "| [{name}]({name}.md) | {question} | {} | `latewood-bench {}` |\n",
            own.commit, own.command
        ),
    };
    let known = reports();
    text.extend(known.iter().map(|report| row(report.name, report.question)));
    let is_unknown = |name: &&&str| known.iter().all(|report| report.name != **name);
    text.extend(machines.keys().filter(is_unknown).map(|name| row(name, "")));
    text
}

fn missing(name: &str) -> String {
    format!("*{name} is missing: it was not measured. `latewood-bench all --only {name}` does it.*")
}

/// What is shown of a report.
fn answer(name: &str, what: &str, report: &Drawing) -> Result<String> {
    let (kind, sections) = what.split_once(" of ").unwrap_or((what, ""));
    match kind {
        "overview" if text(&report.report, "family") != "late" => Ok(format!(
            "*{name}.json holds another measurement than its name says.*\n"
        )),
        "overview" => draw_text(LATE, &report.report, name),
        "whole" => Ok(kept(&report.text, None, false)),
        "tables" | "words" => Ok(kept(&report.text, Some(sections), kind == "words")),
        _ => panic!("{what}: unknown answer"),
    }
}

/// The headings, tables, charts and, if wanted, words of sections of a page, as sections of a part.
fn kept(page: &str, sections: Option<&str>, words: bool) -> String {
    let wanted =
        |section| sections.is_none_or(|names| names.split("; ").any(|name| name == section));
    let mut blocks = Vec::new();
    let mut is_wanted = wanted("-");
    for block in page.split("\n\n") {
        if block.starts_with('#') {
            is_wanted = wanted(block.trim_start_matches('#').trim_start());
            if is_wanted && block.starts_with("##") {
                blocks.push(format!("#{block}"));
            }
            is_wanted |= block.starts_with("# ") && wanted("-");
        } else if is_wanted && (words || block.starts_with('|') || block.starts_with("![")) {
            blocks.push(block.to_owned());
        }
    }
    blocks.join("\n\n").trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_not_measured_is_said_to_be_missing() {
        let page = page(&Reports::new()).unwrap();
        for report in reports() {
            assert!(page.contains(&format!("| {} | ", report.name)));
        }
        assert_eq!(page.matches("| not measured |").count(), reports().len());
        for (title, _, needs) in parts() {
            let mut needs = needs.iter();
            assert!(
                needs.all(|(name, _)| page.contains(&missing(name))),
                "{title}"
            );
        }
    }

    /// An empty late report of `cpu` at `commit`, made `at`.
    fn measured(cpu: &str, commit: &str, at: u64) -> Drawing {
        let report = json!({
            "family": "late", "targets": [], "runs": [],
            "absent": [{"name": "QuestDB", "reason": "no java"}],
            "machine": {
                "cpu": cpu, "cores": 2, "memory_gib": 8.0, "kernel": "6.1", "commit": commit,
                "version": "0.1.0", "began_unix_seconds": at, "command": "late",
            },
        });
        Drawing {
            report,
            ..Drawing::default()
        }
    }

    #[test]
    fn pages_of_another_machine_or_commit_are_told_apart_from_the_newest() {
        let mut reports = Reports::from([("late".to_owned(), measured("Theirs", "a", 30))]);
        let alone = page(&reports).unwrap();
        assert!(alone.contains("The newest report: Theirs"), "{alone}");
        assert!(!alone.contains("another machine") && !alone.contains("another commit"));
        assert!(alone.contains("**QuestDB: not measured here: no java**"));
        reports.insert("late-shapes".to_owned(), measured("Ours", "a", 10));
        reports.insert("late-block".to_owned(), measured("Theirs", "b", 20));
        let mixed = page(&reports).unwrap();
        for said in [
            "another machine, not comparable: [late-shapes](late-shapes.md).",
            "at another commit: [late-block](late-block.md).",
            "**Measured on another machine: Ours",
        ] {
            assert!(mixed.contains(said), "{said}: {mixed}");
        }
    }

    #[test]
    fn tables_and_charts_are_taken_with_and_without_words() {
        let page = "# a\n\nwords\n\n| x |\n|---|\n| 1 |\n\n## B\n\nmore\n\n![c](c.svg)\n\n### C\n\n| y |\n";
        let all = "| x |\n|---|\n| 1 |\n\n### B\n\n![c](c.svg)\n\n#### C\n\n| y |\n";
        let worded = "### B\n\nmore\n\n![c](c.svg)\n";
        assert_eq!(kept(page, None, false), all);
        assert_eq!(kept(page, Some("-"), false), "| x |\n|---|\n| 1 |\n");
        assert_eq!(kept(page, Some("B"), true), worded);
    }
}
