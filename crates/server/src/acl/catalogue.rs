//! All commands and subcommands by number, and sets of them.
//!
//! The floor of commands makes the catalogue from its registry, once. A number is a
//! place in it: it is the same while the process lives and means nothing
//! outside it.

use super::category::Categories;
use std::collections::HashMap;
use std::ops::Range;

/// One command or subcommand.
#[derive(Debug)]
pub(crate) struct Entry {
    /// `name`, or `container|name`.
    pub(crate) name: String,
    pub(crate) categories: Categories,
    pub(crate) family: Range<usize>,
}

/// Every command, by number.
#[derive(Debug)]
pub(crate) struct Catalogue {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    /// The number of TS.ADD.
    pub(super) add: usize,
    /// The number of TS.MADD.
    pub(super) madd: usize,
}

impl Catalogue {
    /// The catalogue of `entries`, TS.ADD and TS.MADD among them, of which the
    /// number is the place.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        assert!(entries.len() <= COMMANDS_MAX, "a set has too few bits");
        let names = entries.iter().enumerate();
        let by_name: HashMap<_, _> = names.map(|(at, entry)| (entry.name.clone(), at)).collect();
        let (add, madd) = (by_name["ts.add"], by_name["ts.madd"]);
        Self {
            entries,
            by_name,
            add,
            madd,
        }
    }

    /// Every command, by number.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The categories of the command with this full name; none if there is no
    /// such command.
    pub(crate) fn categories(&self, full_name: &str) -> Categories {
        let number = self.number(full_name);
        number.map_or(0, |number| self.entries[number].categories)
    }

    /// The number of the command with this full name, in lower case.
    pub(crate) fn number(&self, full_name: &str) -> Option<usize> {
        self.by_name.get(full_name).copied()
    }
}

/// Commands and subcommands that a set has bits for.
const COMMANDS_MAX: usize = 512;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    words: [u64; COMMANDS_MAX / 64],
}

impl Commands {
    /// No command, or every command.
    pub(crate) fn uniform(all: bool) -> Self {
        let word = if all { u64::MAX } else { 0 };
        Self {
            words: [word; COMMANDS_MAX / 64],
        }
    }

    /// Whether command `number` is in the set.
    pub(crate) fn contains(&self, number: usize) -> bool {
        let word = self.words.get(number / 64);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Adds the commands of `family` or takes them out.
    pub(crate) fn set(&mut self, family: Range<usize>, allow: bool) {
        for number in family {
            if let Some(word) = self.words.get_mut(number / 64) {
                let bit = 1 << (number % 64);
                *word = if allow { *word | bit } else { *word & !bit };
            }
        }
    }

    /// Adds all commands of some of `categories` or takes them out.
    pub(crate) fn set_categories(
        &mut self,
        catalogue: &Catalogue,
        categories: Categories,
        allow: bool,
    ) {
        for (number, entry) in catalogue.entries.iter().enumerate() {
            if entry.categories & categories != 0 {
                self.set(number..number + 1, allow);
            }
        }
    }
}
