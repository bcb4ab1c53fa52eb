//! Which sections ask the engine for its figures, and how often.

use super::{SECTIONS, report};
use crate::cli::ServeOptions;
use crate::config::Settings;
use crate::shared::Shared;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Db, Defaults, Options, Stats};
use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::channel;

fn shared() -> Shared {
    let options = Options {
        segment_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let env = SimDisk::new().env(1);
    let db = Db::open(&env, Path::new("/db"), options, Defaults::default()).unwrap();
    let settings = Settings::resolve(ServeOptions::default()).unwrap();
    Shared::new(db, settings, Default::default(), channel().0)
}

/// The reply for these sections, and how often the figures were collected.
fn asked(shared: &Shared, names: &[&str]) -> (String, usize) {
    let times = Cell::new(0);
    let collect = || {
        times.set(times.get() + 1);
        Stats {
            series: times.get() * 100,
            ..Stats::default()
        }
    };
    let text = report(shared, |name| names.contains(&name), collect);
    (text, times.get() as usize)
}

#[test]
fn figures_are_collected_once_for_a_whole_reply() {
    let shared = shared();
    let all: Vec<&str> = SECTIONS.iter().map(|(name, ..)| *name).collect();
    let (text, times) = asked(&shared, &all);
    assert_eq!(times, 1);
    assert!(text.contains("db0:keys=100,") && text.contains("\r\nseries:100\r\n"));
    for name in ["memory", "persistence", "keyspace", "latewood"] {
        assert_eq!(asked(&shared, &[name]).1, 1, "{name}");
    }
}

#[test]
fn sections_without_figures_collect_none() {
    let shared = shared();
    for name in ["server", "clients", "stats", "cpu"] {
        let (text, times) = asked(&shared, &[name]);
        assert!(text.starts_with("# "), "{name}");
        assert_eq!(times, 0, "{name}");
    }
    assert_eq!(asked(&shared, &["nosuch"]), (String::new(), 0));
}
