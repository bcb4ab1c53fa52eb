//! Where the keys of a command stand and what it does with them.
//!
//! A command has no, one or several [`Run`]s of keys. Permissions (`%R~`,
//! `%W~`), COMMAND INFO, GETKEYS and GETKEYSANDFLAGS all read them here, so
//! that a key one of them knows is known to all.

use super::args::Args;
use latewood_wire::resp::number::parse_i64;

/// The keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys(pub(crate) &'static [Run]);

/// Keys that stand in order and are used alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where they stand; the command's name is word 0, a subcommand's word 1.
    pub(crate) places: Places,
    /// What the command does with them.
    pub(crate) access: Access,
}

/// Where the keys of a run stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// Word `first` and every `step`th after it, up to word `last`, which is
    /// counted from the end if negative.
    Words {
        /// The first key.
        first: usize,
        /// The last key.
        last: i64,
        /// From one key to the next.
        step: usize,
    },
    /// Word `at` says how many keys follow it.
    Counted {
        /// The word with the number.
        at: usize,
    },
}

/// What a command does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A writing command reads and changes its keys, another reads them.
    ByFlags,
    /// Asks whether and what it is, not for its samples or labels.
    Look,
    Read,
    /// Changes it without showing what it was.
    Update,
    /// Reads and changes it.
    ReadUpdate,
    /// Reads and removes it.
    Take,
    /// Replaces it.
    Overwrite,
    /// Makes it.
    Insert,
    /// Removes it.
    Delete,
}

impl Run {
    /// One key at word `at`.
    pub(crate) const fn at(at: usize, access: Access) -> Self {
        let places = Places::Words {
            first: at,
            last: at as i64,
            step: 1,
        };
        Self { places, access }
    }

    /// Keys from word `first` to the end, every `step`th.
    pub(crate) const fn from(first: usize, step: usize, access: Access) -> Self {
        let places = Places::Words {
            first,
            last: -1,
            step,
        };
        Self { places, access }
    }

    /// The keys after word `at`, which is their number.
    pub(crate) const fn counted(at: usize, access: Access) -> Self {
        let places = Places::Counted { at };
        Self { places, access }
    }
}

impl Access {
    /// The words of COMMAND INFO's key specification.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Look => &["RO"],
            Self::ByFlags | Self::Read => &["RO", "access"],
            Self::Update => &["RW", "update"],
            Self::ReadUpdate => &["RW", "access", "update"],
            Self::Take => &["RW", "access", "delete"],
            Self::Overwrite => &["OW", "update"],
            Self::Insert => &["OW", "insert"],
            Self::Delete => &["RM", "delete"],
        }
    }

    /// Whether the permission to read the key is needed.
    pub(crate) fn reads(self) -> bool {
        self.words().contains(&"access")
    }

    /// Whether the permission to write the key is needed.
    pub(crate) fn writes(self) -> bool {
        let words = self.words();
        words
            .iter()
            .any(|word| matches!(*word, "update" | "insert" | "delete"))
    }

    /// `ByFlags` made definite for a command with these flags.
    pub(crate) fn of(self, flags: &[&str]) -> Self {
        match self {
            Self::ByFlags if flags.contains(&"write") => Self::ReadUpdate,
            Self::ByFlags => Self::Read,
            definite => definite,
        }
    }
}

impl Keys {
    /// No keys.
    pub(crate) const NONE: Self = Self(&[]);
    /// The first word after the name.
    pub(crate) const ONE: Self = Self(&[Run::at(1, Access::ByFlags)]);
    /// All words after the name.
    pub(crate) const ALL: Self = Self(&[Run::from(1, 1, Access::ByFlags)]);

    /// The first key, the last and the step between them as COMMAND shows
    /// them; all 0 for keys that these cannot say.
    pub(crate) fn first_last_step(&self) -> (usize, i64, usize) {
        let mut whole: Option<(usize, i64, usize)> = None;
        for run in self.0 {
            let Places::Words { first, last, step } = run.places else {
                continue;
            };
            whole = match whole {
                None => Some((first, last, step)),
                Some((from, _, step)) => Some((from, last, step)),
            };
        }
        whole.unwrap_or((0, 0, 0))
    }

    /// Whether some keys can only be found by reading the words.
    pub(crate) fn are_movable(&self) -> bool {
        let mut runs = self.0.iter();
        runs.any(|run| matches!(run.places, Places::Counted { .. }))
    }

    /// The first word that is a key; `args` begin with the name of the command or its container.
    pub(crate) fn first(&self, args: Args<'_>) -> Option<usize> {
        let first = match self.0.first()?.places {
            Places::Words { first, .. } => first,
            Places::Counted { at } => at + 1,
        };
        (first < args.len()).then_some(first)
    }

    /// The words that are keys, with what a command with `flags` does with
    /// them; the command's name is word `name_at` of `args`. `None` where the
    /// number of keys does not fit the words.
    pub(crate) fn places(
        &self,
        args: Args<'_>,
        name_at: usize,
        flags: &[&str],
    ) -> Option<Vec<(usize, Access)>> {
        let words = args.len().checked_sub(name_at)?;
        let mut found = Vec::new();
        for run in self.0 {
            let access = run.access.of(flags);
            let (first, end, step) = match run.places {
                Places::Words { first, last, step } => (first, end_of(last, words)?, step),
                Places::Counted { at } => {
                    let count = parse_i64(args.get(name_at.checked_add(at)?)?)?;
                    let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
                    let end = (at + 1).checked_add(count)?;
                    (at + 1, Some(end).filter(|end| *end <= words)?, 1)
                }
            };
            let at = (first..end.min(words)).step_by(step.max(1));
            found.extend(at.map(|at| (name_at + at, access)));
        }
        Some(found)
    }
}

/// The word behind `last` in a command of `words` words.
fn end_of(last: i64, words: usize) -> Option<usize> {
    let back = usize::try_from(last.unsigned_abs()).ok()?;
    if last < 0 {
        Some((words + 1).saturating_sub(back))
    } else {
        back.checked_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_wire::resp::{Limits, Parsed, Parser, encode_command};

    const LIMITS: Limits = Limits {
        arguments_max: 100,
        argument_bytes_max: 100,
        command_bytes_max: 1000,
        inline_bytes_max: 1000,
        authenticated: true,
    };

    const THIRDS: &[Run] = &[Run::from(1, 3, Access::Read)];
    const COUNTED: &[Run] = &[Run::counted(1, Access::Read)];

    /// The keys of a line, separated by spaces; `-` where they do not fit.
    fn keys(runs: &'static [Run], line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        let mut bytes = Vec::new();
        encode_command(&mut bytes, &words);
        let mut parser = Parser::new();
        let parsed = parser.parse(&bytes, &LIMITS).unwrap();
        assert!(matches!(parsed, Parsed::Command { .. }));
        let args = Args::new(parser.command(), &bytes);
        match Keys(runs).places(args, 0, &[]) {
            None => "-".to_owned(),
            Some(found) => {
                let found = found.iter().map(|(at, _)| words[*at]);
                found.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn keys_stand_where_their_runs_say() {
        assert_eq!(keys(Keys::NONE.0, "x a b"), "");
        assert_eq!(keys(Keys::ONE.0, "x a b"), "a");
        assert_eq!(keys(Keys::ONE.0, "x"), "");
        assert_eq!(keys(Keys::ALL.0, "x a b"), "a b");
        assert_eq!(keys(THIRDS, "x a 1 1 b 2 2"), "a b");
        assert_eq!(keys(COUNTED, "x 2 a b c"), "a b");
        for line in [
            "x",
            "x 0 a",
            "x -1 a",
            "x q a",
            "x 2 a",
            "x 9223372036854775807 a",
        ] {
            assert_eq!(keys(COUNTED, line), "-", "{line}");
        }
    }

    #[test]
    fn the_old_triple_covers_all_runs() {
        const MOVE: Keys = Keys(&[Run::at(1, Access::Take), Run::at(2, Access::Overwrite)]);
        assert_eq!(MOVE.first_last_step(), (1, 2, 1));
        assert_eq!(Keys::ALL.first_last_step(), (1, -1, 1));
        assert_eq!(Keys::NONE.first_last_step(), (0, 0, 0));
        assert_eq!(Keys(COUNTED).first_last_step(), (0, 0, 0));
    }

    #[test]
    fn what_a_command_does_says_which_permissions_it_needs() {
        assert!(Access::Read.reads() && !Access::Read.writes());
        assert!(!Access::Look.reads() && !Access::Look.writes());
        assert!(Access::Take.reads() && Access::Take.writes());
        assert!(!Access::Delete.reads() && Access::Delete.writes());
        assert_eq!(Access::ByFlags.of(&["write"]), Access::ReadUpdate);
        assert_eq!(Access::ByFlags.of(&["readonly"]), Access::Read);
    }
}
