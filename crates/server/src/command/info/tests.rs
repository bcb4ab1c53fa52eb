//! What the sections of INFO ask of the engine.

use super::source::{Source, human};
use super::{SECTIONS, report};
use crate::options::testing::shared;
use crate::state::Shared;
use latewood_model::Compatibility;

/// The sections called so, and whether the memory of series was summed.
fn asked(shared: &Shared, names: &[&str]) -> (String, bool) {
    let source = Source::new(shared, Compatibility::default());
    let text = report(&source, |section| names.contains(&section.name));
    (text, source.memory.get().is_some())
}

#[test]
fn only_figures_of_memory_look_at_every_series() {
    let shared = shared();
    for section in SECTIONS {
        let (text, summed) = asked(&shared, &[section.name]);
        assert!(text.starts_with(&format!("# {}\r\n", section.title)));
        let expected = ["memory", "latewood"].contains(&section.name);
        assert_eq!(summed, expected, "{}", section.name);
    }
    assert_eq!(asked(&shared, &["nosuch"]), (String::new(), false));
}

#[test]
fn the_sections_of_a_reply_agree() {
    let shared = shared();
    let create = |key: &str| shared.db.create(key.as_bytes(), &Default::default());
    create("a").unwrap();
    let source = Source::new(&shared, Compatibility::default());
    assert_eq!(source.stats().series, 1);
    create("b").unwrap();
    let text = report(&source, |_| true);
    assert!(text.contains("db0:keys=1,") && text.contains("\r\nseries:1\r\n"));
}

#[test]
fn bytes_are_said_for_people() {
    let said: Vec<String> = [0, 1023, 1024, 1536 << 10, 5 << 40]
        .into_iter()
        .map(human)
        .collect();
    assert_eq!(said, ["0B", "1023B", "1.00K", "1.50M", "5.00T"]);
}

/// An operator finds every figure of this server's own in the manual.
#[test]
fn every_field_of_latewood_has_a_row_in_the_manual() {
    let manual = include_str!("../../../../../docs/operations.md");
    let shared = shared();
    let (text, _) = asked(&shared, &["latewood"]);
    let rows: Vec<&str> = manual
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let missing: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .filter(|name| !rows.iter().any(|row| row.contains(&format!("`{name}`"))))
        .collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}
