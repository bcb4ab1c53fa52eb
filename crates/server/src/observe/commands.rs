//! Calls, time, refusals and failures of every command and subcommand.
//!
//! One row for each [`Spec`] of the registry, found by the spec's address:
//! specs live as long as the process and never move. Rows are atomics that
//! the event loops add to, once per command, or once per group of samples.

use crate::command::registry::{self, Spec};
use latewood_engine::histogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};

/// The row of one command.
#[derive(Debug)]
pub(crate) struct CommandRow {
    /// Its name; `container|sub` of a subcommand.
    pub(crate) name: String,
    /// How long its calls took.
    pub(crate) durations: Histogram<7>,
    calls: AtomicU64,
    duration_ns: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
}

/// The figures of one command at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Times it ran.
    pub(crate) calls: u64,
    /// How long that took in all, nanoseconds.
    pub(crate) duration_ns: u64,
    /// Times it was refused before it ran.
    pub(crate) rejected: u64,
    /// Times it ran and answered with an error.
    pub(crate) failed: u64,
}

/// The rows of all commands.
#[derive(Debug)]
pub(crate) struct Commands {
    rows: Vec<CommandRow>,
    /// Addresses of specs, ascending, and the places of their rows.
    places: Vec<(usize, usize)>,
    /// The row of TS.ADD, which samples off the wire count in.
    add: usize,
    /// The row of TS.MADD.
    madd: usize,
}

impl Default for Commands {
    fn default() -> Self {
        let mut commands = Self {
            rows: Vec::new(),
            places: Vec::new(),
            add: 0,
            madd: 0,
        };
        for spec in registry::all() {
            commands.enter(spec, spec.name.to_owned());
            for sub in spec.subcommands() {
                commands.enter(sub, format!("{}|{}", spec.name, sub.name));
            }
        }
        commands.places.sort_unstable();
        let place = |name| commands.rows.iter().position(|row| row.name == name);
        (commands.add, commands.madd) =
            (place("ts.add").unwrap_or(0), place("ts.madd").unwrap_or(0));
        commands
    }
}

impl Commands {
    fn enter(&mut self, spec: &'static Spec, name: String) {
        self.places.push((address(spec), self.rows.len()));
        self.rows.push(CommandRow {
            name,
            durations: Histogram::default(),
            calls: AtomicU64::new(0),
            duration_ns: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
    }

    /// The row of `spec`, if it is of the registry.
    pub(crate) fn row(&self, spec: &Spec) -> Option<&CommandRow> {
        let found = self
            .places
            .binary_search_by_key(&address(spec), |place| place.0);
        self.rows.get(self.places[found.ok()?].1)
    }

    /// The row of TS.ADD.
    pub(crate) fn add(&self) -> &CommandRow {
        &self.rows[self.add]
    }

    /// The row of TS.MADD.
    pub(crate) fn madd(&self) -> &CommandRow {
        &self.rows[self.madd]
    }

    /// All rows in the order of the registry.
    pub(crate) fn rows(&self) -> &[CommandRow] {
        &self.rows
    }

    /// Sets every figure to zero.
    pub(crate) fn reset(&self) {
        for row in &self.rows {
            for counter in [&row.calls, &row.duration_ns, &row.rejected, &row.failed] {
                counter.store(0, Ordering::Relaxed);
            }
            row.durations.reset();
        }
    }
}

impl CommandRow {
    /// Notes `calls` calls that took `duration_ns` together, `failed` of
    /// which answered with an error; `tracked` counts their durations too.
    #[inline]
    pub(crate) fn ran(&self, duration_ns: u64, calls: u64, failed: u64, tracked: bool) {
        if calls == 0 {
            return;
        }
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.duration_ns.fetch_add(duration_ns, Ordering::Relaxed);
        if failed > 0 {
            self.failed.fetch_add(failed, Ordering::Relaxed);
        }
        if tracked {
            self.durations.add(duration_ns / calls, calls);
        }
    }

    /// Notes a call that was refused before it ran.
    pub(crate) fn rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Its figures now.
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            calls: self.calls.load(Ordering::Relaxed),
            duration_ns: self.duration_ns.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

fn address(spec: &Spec) -> usize {
    std::ptr::from_ref(spec).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spec_has_a_row_of_its_own() {
        let commands = Commands::default();
        for spec in registry::all() {
            assert_eq!(commands.row(spec).unwrap().name, spec.name);
            for sub in spec.subcommands() {
                let name = format!("{}|{}", spec.name, sub.name);
                assert_eq!(commands.row(sub).unwrap().name, name);
            }
        }
        assert_eq!(commands.add().name, "ts.add");
        assert_eq!(commands.madd().name, "ts.madd");
    }

    #[test]
    fn figures_add_up_and_reset() {
        let commands = Commands::default();
        let row = commands.add();
        row.ran(5_000, 5, 1, true);
        row.ran(1_000, 1, 0, true);
        row.ran(0, 0, 0, true);
        row.rejected();
        let expected = Figures {
            calls: 6,
            duration_ns: 6_000,
            rejected: 1,
            failed: 1,
        };
        assert_eq!(row.figures(), expected);
        assert_eq!(row.durations.counts().total(), 6);
        commands.reset();
        assert_eq!(row.figures(), Figures::default());
    }
}
