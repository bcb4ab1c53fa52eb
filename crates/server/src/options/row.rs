//! One option.

use super::kind::Kind;
use crate::state::{Settings, Shared};
use latewood_engine::Result;

/// One option of `latewood serve`.
pub(crate) struct Row {
    /// The flag without its dashes, which is the key in the file and the name
    /// in CONFIG, and what stands for the value in `--help`.
    usage: &'static str,
    /// What holds where nothing is given.
    pub(super) default: Default,
    /// What it takes and which setting it is.
    pub(crate) kind: Kind,
    /// What it does, for `--help` and the page.
    pub(super) help: &'static str,
    /// What puts a value that CONFIG SET gave in force; `None` where it is set at
    /// start only.
    pub(crate) apply: Option<Apply>,
    /// What it has no effect without, if that is missing.
    pub(super) need: Option<Need>,
    /// What CONFIG SET checks beside the value itself, before it applies anything.
    pub(crate) check: Option<Check>,
}

/// Puts a setting in force.
pub(crate) type Apply = fn(&Shared, &Settings) -> Result<()>;

/// Looks whether settings can be put in force; what is wrong with them.
pub(crate) type Check = fn(&Settings) -> std::result::Result<(), String>;

/// What settings lack, in words, without which an option has no effect.
pub(super) type Need = fn(&Settings) -> Option<&'static str>;

/// What holds where nothing is given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Default {
    /// This value; an empty one is none.
    Is(&'static str),
    /// What these words say, which is computed.
    Says(&'static str),
}

/// The names and the default of an option, before it is said what it takes.
pub(super) struct Begun {
    usage: &'static str,
    default: Default,
}

/// An option with a default that is a value.
pub(super) const fn row(usage: &'static str, default: &'static str) -> Begun {
    let default = Default::Is(default);
    Begun { usage, default }
}

/// An option with a default that is computed, as `says` says.
pub(super) const fn computed(usage: &'static str, says: &'static str) -> Begun {
    let default = Default::Says(says);
    Begun { usage, default }
}

impl Begun {
    /// What it takes and which setting it is.
    pub(super) const fn is(self, kind: Kind) -> Row {
        let Self { usage, default } = self;
        Row {
            usage,
            default,
            kind,
            help: "",
            apply: None,
            need: None,
            check: None,
        }
    }
}

impl Row {
    /// What it does, for `--help` and the page.
    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// An option that CONFIG SET changes.
    pub(super) const fn live(self, apply: Apply) -> Self {
        Self {
            apply: Some(apply),
            ..self
        }
    }

    /// One that a start refuses where what it needs is missing.
    pub(super) const fn needs(self, need: Need) -> Self {
        Self {
            need: Some(need),
            ..self
        }
    }

    /// One whose value CONFIG SET checks so.
    pub(super) const fn checked(self, check: Check) -> Self {
        Self {
            check: Some(check),
            ..self
        }
    }

    /// The name and what stands for the value.
    pub(super) fn usage(&self) -> (&'static str, &'static str) {
        self.usage.split_once(' ').unwrap_or((self.usage, ""))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.usage().0
    }

    /// The default in words; `none` where there is none.
    pub(super) fn default_text(&self) -> &'static str {
        match self.default {
            Default::Is("") => "none",
            Default::Is(text) | Default::Says(text) => text,
        }
    }

    /// The environment variable.
    pub(super) fn variable(&self) -> String {
        variable(self.name())
    }

    /// Whether CONFIG GET shows it: users and addresses of Alertmanagers hold passwords.
    pub(crate) fn is_shown(&self) -> bool {
        !matches!(self.name(), "user" | "alertmanager")
    }
}

/// The environment variable of the option called `name`.
pub(super) fn variable(name: &str) -> String {
    format!("LATEWOOD_{}", name.to_ascii_uppercase().replace('-', "_"))
}
