//! Where the sections of INFO take their figures from, and how they write them.

use crate::state::Shared;
use latewood_engine::{DbMemory, Stats};
use latewood_model::Compatibility;
use std::cell::OnceCell;
use std::fmt::{Display, Write};

/// Where the sections take their figures from. Those of the engine are asked
/// for at most once a reply, so that its sections agree, and not at all where
/// no section needs them.
pub(super) struct Source<'a> {
    pub(super) shared: &'a Shared,
    /// The version that the server shows.
    pub(super) compatibility: Compatibility,
    stats: OnceCell<Stats>,
    pub(super) memory: OnceCell<DbMemory>,
}

impl<'a> Source<'a> {
    pub(super) fn new(shared: &'a Shared, compatibility: Compatibility) -> Self {
        Self {
            shared,
            compatibility,
            stats: OnceCell::new(),
            memory: OnceCell::new(),
        }
    }

    pub(super) fn stats(&self) -> &Stats {
        self.stats.get_or_init(|| self.shared.db.shown().stats())
    }

    /// May look at every series; only sections about memory want it.
    pub(super) fn memory(&self) -> &DbMemory {
        self.memory.get_or_init(|| self.shared.db.shown().memory())
    }
}

/// One line. Writing to a String cannot fail.
pub(super) fn field(text: &mut String, name: &str, value: impl Display) {
    let _ = write!(text, "{name}:{value}\r\n");
}

/// A number of bytes, and again with a unit.
pub(super) fn bytes_field(text: &mut String, name: &str, bytes: u64) {
    field(text, name, bytes);
    field(text, &format!("{name}_human"), human(bytes));
}

pub(super) fn human(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "K", "M", "G"] {
        if value < 1024.0 {
            return match unit {
                "B" => format!("{bytes}B"),
                _ => format!("{value:.2}{unit}"),
            };
        }
        value /= 1024.0;
    }
    format!("{value:.2}T")
}
