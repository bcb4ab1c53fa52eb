//! Families and samples of the text format.

use std::fmt::{Display, Write};

/// Whether a figure only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows until the process ends.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts by upper bound, with their sum.
    Histogram,
}

impl Kind {
    /// As the format has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What every name begins with.
pub(super) const PREFIX: &str = "latewood_";

/// Families of one sample, a row each: `gauge "NAME" "Help." = value;`.
macro_rules! figures {
    ($text:ident; $($kind:ident $name:literal $help:literal = $value:expr;)*) => {
        $($text.$kind($name, $help, $value);)*
    };
}
pub(super) use figures;

/// The text so far; samples belong to the family begun last.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    name: &'static str,
}

impl Text {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        let kind = kind.name();
        self.name = name;
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {PREFIX}{name} {help}");
        let _ = writeln!(self.text, "# TYPE {PREFIX}{name} {kind}");
    }

    /// A counter of one sample without labels.
    pub(super) fn counter(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, Kind::Counter, help);
        self.labelled(&[], value);
    }

    /// A gauge of one sample without labels.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help);
        self.labelled(&[], value);
    }

    /// A sample. Label values are the server's own and need no escapes.
    pub(super) fn labelled(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    /// A sample of a histogram: `_bucket`, `_sum` or `_count`.
    pub(super) fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{PREFIX}{}{suffix}", self.name);
        for (index, (name, value)) in labels.iter().enumerate() {
            let begin = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{begin}{name}=\"{value}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// All of it.
    pub(super) fn finish(self) -> String {
        self.text
    }
}
