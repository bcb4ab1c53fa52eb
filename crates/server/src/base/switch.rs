//! Options that are on or off.

use clap::ValueEnum;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SwitchVisitor)
    }
}

/// Takes the words of the flag and the booleans of the file's own language.
struct SwitchVisitor;

impl Visitor<'_> for SwitchVisitor {
    type Value = Switch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"on\", \"off\", true or false")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Switch, E> {
        Ok(if is_on { Switch::On } else { Switch::Off })
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Switch, E> {
        match word {
            "on" => Ok(Switch::On),
            "off" => Ok(Switch::Off),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }
}
