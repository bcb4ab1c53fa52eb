//! Calls, time, refusals and failures of every command and subcommand.
//!
//! One row for each command of the registry, found by its [`CommandId`]. Rows are
//! atomics that the event loops add to, once per command, or once per group of
//! samples.

use latewood_engine::histogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};

/// A command of the registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandId {
    /// The address of its row in the registry, which lives as long as the
    /// process and never moves.
    pub(crate) address: usize,
    /// Whether it is flagged as fast.
    pub(crate) is_fast: bool,
}

#[derive(Debug, Default)]
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
#[derive(Debug, Default)]
pub(crate) struct Commands {
    rows: Vec<CommandRow>,
    /// Addresses of commands, ascending, and the places of their rows.
    places: Vec<(usize, usize)>,
    /// The row of TS.ADD, which samples off the wire count in.
    add: usize,
    /// The row of TS.MADD.
    madd: usize,
}

impl Commands {
    /// A row for each of `commands`, which are named in full.
    pub(crate) fn new(commands: impl Iterator<Item = (CommandId, String)>) -> Self {
        let mut rows = Self::default();
        commands.for_each(|(command, name)| rows.enter(command, name));
        rows.places.sort_unstable();
        let place = |name| rows.rows.iter().position(|row| row.name == name);
        (rows.add, rows.madd) = (place("ts.add").unwrap_or(0), place("ts.madd").unwrap_or(0));
        rows
    }

    fn enter(&mut self, command: CommandId, name: String) {
        self.places.push((command.address, self.rows.len()));
        self.rows.push(CommandRow {
            name,
            ..CommandRow::default()
        });
    }

    /// The row of `command`, if it is of the registry.
    pub(crate) fn row(&self, command: CommandId) -> Option<&CommandRow> {
        let found = self
            .places
            .binary_search_by_key(&command.address, |place| place.0);
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

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            calls: self.calls.load(Ordering::Relaxed),
            duration_ns: self.duration_ns.load(Ordering::Relaxed),
            rejected: self.rejected.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up_and_reset() {
        let add = CommandId {
            address: 1,
            is_fast: true,
        };
        let commands = Commands::new([(add, "ts.add".to_owned())].into_iter());
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
