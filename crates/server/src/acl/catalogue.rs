//! All commands and subcommands by number, and sets of them.
//!
//! A number is a place in the flattened registry: it is the same while the
//! process lives and means nothing outside it.

use super::category::{self, Categories};
use crate::command::{Spec, registry};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// One command or subcommand.
pub(crate) struct Entry {
    /// `name`, or `container|name`.
    pub(crate) name: String,
    /// Its categories.
    pub(crate) categories: Categories,
    /// Itself and its subcommands.
    pub(crate) family: Range<usize>,
}

/// Every command, by number.
pub(crate) struct Catalogue {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
}

/// The commands of this server.
pub(crate) static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);

impl Catalogue {
    fn new() -> Self {
        let mut entries = Vec::new();
        for spec in registry::all() {
            let first = entries.len();
            let end = first + 1 + spec.subcommands().len();
            entries.push(entry(spec, None, first..end));
            for sub in spec.subcommands() {
                let at = entries.len();
                entries.push(entry(sub, Some(spec), at..at + 1));
            }
        }
        let names = entries.iter().enumerate();
        let by_name = names.map(|(at, entry)| (entry.name.clone(), at)).collect();
        Self { entries, by_name }
    }

    /// Every command, by number.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of the command with this full name, in lower case.
    pub(crate) fn number(&self, full_name: &str) -> Option<usize> {
        self.by_name.get(full_name).copied()
    }
}

fn entry(spec: &Spec, container: Option<&Spec>, family: Range<usize>) -> Entry {
    let name = match container {
        Some(container) => format!("{}|{}", container.name, spec.name),
        None => spec.name.to_owned(),
    };
    let categories = category::of(spec, container);
    Entry {
        name,
        categories,
        family,
    }
}

/// A set of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commands {
    words: Box<[u64]>,
}

impl Commands {
    /// No command, or every command.
    pub(crate) fn uniform(all: bool) -> Self {
        let words = CATALOGUE.entries.len().div_ceil(64);
        let word = if all { u64::MAX } else { 0 };
        Self {
            words: vec![word; words].into(),
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
    pub(crate) fn set_categories(&mut self, categories: Categories, allow: bool) {
        for (number, entry) in CATALOGUE.entries.iter().enumerate() {
            if entry.categories & categories != 0 {
                self.set(number..number + 1, allow);
            }
        }
    }
}
