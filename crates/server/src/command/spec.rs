//! What a command is, and a table of commands.
//!
//! Looking a name up compares it with the few commands of the same length and
//! allocates nothing.

use super::call::{Call, Outcome};
use super::docs;
pub(crate) use super::keys::Keys;
use crate::observe::CommandId;
use std::sync::OnceLock;

/// What runs a command.
pub(crate) type Apply = fn(&mut Call<'_>) -> Outcome;

/// One command or subcommand.
pub(crate) struct Spec {
    /// In lower case.
    pub(crate) name: &'static str,
    /// Number of words with the name: exactly `arity`, or at least `-arity`.
    pub(crate) arity: i64,
    /// The flags that COMMAND INFO shows.
    pub(crate) flags: &'static [&'static str],
    /// Where the keys stand.
    pub(crate) keys: Keys,
    /// The group in the documentation.
    pub(crate) group: &'static str,
    /// The words after the name.
    pub(crate) syntax: &'static str,
    /// What it does, in one sentence.
    pub(crate) summary: &'static str,
    /// What runs it.
    pub(crate) action: Action,
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a command is run.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// By this function.
    Apply(Apply),
    /// By one of its subcommands.
    Container(&'static [Spec]),
    /// By one of its subcommands, or by this function where it stands alone.
    Either(Apply, &'static [Spec]),
}

/// How the tables of the commands' files are written: a command begins as a member of its group,
/// or as another command of its file, and says what is its own.
impl Spec {
    /// A command of `group` without a name, words or keys.
    pub(crate) const fn of_group(group: &'static str, flags: &'static [&'static str]) -> Self {
        Self {
            name: "",
            arity: 1,
            flags,
            keys: Keys::NONE,
            group,
            syntax: "",
            summary: "",
            action: Action::Container(&[]),
        }
    }

    /// The command called `name`, which `apply` runs.
    pub(crate) const fn named(self, name: &'static str, apply: Apply) -> Self {
        self.called(name).by(apply)
    }

    /// The same under another name.
    pub(crate) const fn called(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Run by `apply`.
    pub(crate) const fn by(self, apply: Apply) -> Self {
        let action = Action::Apply(apply);
        Self { action, ..self }
    }

    /// The command called `name`, which has only subcommands.
    pub(crate) const fn container(
        self,
        name: &'static str,
        summary: &'static str,
        subcommands: &'static [Self],
    ) -> Self {
        let action = Action::Container(subcommands);
        let syntax = "subcommand [argument ...]";
        Self {
            action,
            ..self.called(name).words(-2, syntax).about(summary)
        }
    }

    /// With subcommands, beside what runs it where it stands alone.
    pub(crate) const fn or_one_of(self, subcommands: &'static [Self]) -> Self {
        let action = match self.action {
            Action::Apply(apply) | Action::Either(apply, _) => Action::Either(apply, subcommands),
            Action::Container(_) => Action::Container(subcommands),
        };
        Self { action, ..self }
    }

    /// The subcommand that lists the subcommands of its container.
    pub(crate) const fn help(self) -> Self {
        let help = self.named("help", docs::help).words(2, "");
        help.about("Lists the subcommands.")
    }

    /// With this arity, and the words of `syntax` after the name.
    pub(crate) const fn words(self, arity: i64, syntax: &'static str) -> Self {
        self.arity(arity).syntax(syntax)
    }

    pub(crate) const fn arity(self, arity: i64) -> Self {
        Self { arity, ..self }
    }

    pub(crate) const fn syntax(self, syntax: &'static str) -> Self {
        Self { syntax, ..self }
    }

    pub(crate) const fn flags(self, flags: &'static [&'static str]) -> Self {
        Self { flags, ..self }
    }

    pub(crate) const fn keys(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    /// What it does.
    pub(crate) const fn about(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Whether a command of `words` words, name included, has the right number.
    pub(crate) fn takes(&self, words: usize) -> bool {
        let words = i64::try_from(words).unwrap_or(i64::MAX);
        if self.arity < 0 {
            words >= -self.arity
        } else {
            words == self.arity
        }
    }

    pub(crate) fn subcommands(&self) -> &'static [Self] {
        match self.action {
            Action::Apply(_) => &[],
            Action::Container(subcommands) | Action::Either(_, subcommands) => subcommands,
        }
    }

    /// Its identity, for the figures of commands.
    pub(crate) fn id(&'static self) -> CommandId {
        CommandId {
            address: std::ptr::from_ref(self).addr(),
            is_fast: self.flags.contains(&"fast"),
        }
    }

    /// Whether it may change data or be heard by other clients: what CLIENT PAUSE
    /// WRITE holds up.
    pub(crate) fn is_write(&self) -> bool {
        self.flags.contains(&"write") || matches!(self.name, "publish" | "spublish")
    }
}

/// Commands, by the file they stand in.
pub(crate) struct Table {
    files: &'static [&'static [Spec]],
    by_length: OnceLock<[Vec<&'static Spec>; NAME_BYTES_MAX + 1]>,
}

/// Longest name of a command.
pub(crate) const NAME_BYTES_MAX: usize = 16;

impl Table {
    /// A table of these commands.
    pub(crate) const fn new(files: &'static [&'static [Spec]]) -> Self {
        Self {
            files,
            by_length: OnceLock::new(),
        }
    }

    /// Every command, in the order of the table.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Spec> + use<> {
        self.files.iter().copied().flatten()
    }

    /// The command called `name`, in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static Spec> {
        let by_length = self.by_length.get_or_init(|| {
            let mut by_length = [const { Vec::new() }; NAME_BYTES_MAX + 1];
            for spec in self.all() {
                by_length[spec.name.len()].push(spec);
            }
            by_length
        });
        by_length
            .get(name.len())?
            .iter()
            .find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
            .copied()
    }
}

/// The subcommand called `name`, in any case.
pub(crate) fn find_in(subcommands: &'static [Spec], name: &[u8]) -> Option<&'static Spec> {
    subcommands
        .iter()
        .find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
}
