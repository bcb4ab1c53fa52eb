//! Names: their form, their list in the manual, their use under `deploy/`.

use super::*;
use crate::messaging::Mailboxes;
use crate::observe::{Observe, Protocol};
use crate::options::testing::{loading, shared as test_shared, users};
use latewood_wire::intake::Reason;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// The repository, from this crate.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn served() -> String {
    let shared = test_shared();
    report(&shared, &shared.db.memory())
}

#[test]
fn a_server_that_is_loading_has_them_too() {
    let observe = Observe::new(std::iter::empty());
    let shared = loading(users(), observe, Mailboxes::default());
    let text = report(&shared, &shared.db.shown().memory());
    assert!(text.contains("\nlatewood_ready 0\n"), "{text}");
}

#[test]
fn what_a_follower_drops_is_counted_under_its_own_reason() {
    let shared = test_shared();
    let counters = shared.protocols.intake.of(Protocol::Influx);
    counters.refused[Reason::Follower as usize].fetch_add(7, Ordering::Relaxed);
    let text = report(&shared, &shared.db.memory());
    let line = "latewood_intake_refused_total{protocol=\"influx\",reason=\"follower\"} 7";
    assert!(text.lines().any(|each| each == line), "{text}");
}

fn families(text: &str) -> BTreeSet<(String, String)> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            (name.to_owned(), kind.to_owned())
        })
        .collect()
}

/// The words that begin as names of metrics do.
fn names_in(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    words
        .filter(|word| word.starts_with(text::PREFIX))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_line_is_of_the_format_and_every_name_follows_the_rules() {
    let text = served();
    let families = families(&text);
    let described = text
        .lines()
        .filter(|line| line.starts_with("# HELP "))
        .count();
    assert_eq!(described, families.len(), "a family is there twice");
    assert!(families.len() > 60, "{}", families.len());
    for (name, kind) in &families {
        assert!(name.starts_with(text::PREFIX), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} {kind}");
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        assert!(name.chars().all(is_part), "{name}");
    }
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(seen.insert(series), "{series} is there twice");
        let name = series.split('{').next().unwrap();
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .filter(|family| families.contains(&((*family).to_owned(), "histogram".to_owned())))
            .unwrap_or(name);
        assert!(families.iter().any(|(known, _)| known == family), "{line}");
    }
}

/// The names in a text, and those in the history alone.
fn names(text: &str) -> BTreeSet<String> {
    let served = families(text).into_iter().map(|(name, _)| name);
    let written = history::LATENESS.iter();
    let written = written.map(|(name, ..)| format!("{}{name}", text::PREFIX));
    served.chain(written).collect()
}

#[test]
fn the_manual_lists_the_names_that_are_served() {
    let manual = std::fs::read_to_string(format!("{ROOT}/docs/metrics.md")).unwrap();
    let listed: BTreeSet<_> = manual
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let text = served();
    let served = names(&text);
    let missing: Vec<_> = served.symmetric_difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "in one and not in the other: {missing:?}"
    );
}

#[test]
fn the_dashboard_and_the_alerts_use_names_that_are_served() {
    let text = served();
    let served = names(&text);
    for file in [
        "deploy/grafana/latewood.json",
        "deploy/prometheus/alerts.yml",
    ] {
        let text = std::fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
        let used = names_in(&text);
        assert!(used.len() > 10, "{file} uses {used:?}");
        for name in used {
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| {
                    name.strip_suffix(suffix)
                        .filter(|name| served.contains(*name))
                })
                .unwrap_or(&name);
            assert!(
                served.contains(family),
                "{file} uses {name}, which is not served"
            );
        }
    }
    let dashboard =
        std::fs::read_to_string(format!("{ROOT}/deploy/grafana/latewood.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 8);
}
