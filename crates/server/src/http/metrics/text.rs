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

/// What every name begins with.
pub(super) const PREFIX: &str = "latewood_";

/// The text so far; samples belong to the family begun last.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    name: &'static str,
}

impl Text {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.name = name;
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {PREFIX}{name} {help}");
        let _ = writeln!(self.text, "# TYPE {PREFIX}{name} {kind}");
    }

    /// A family of one sample without labels.
    pub(super) fn single(
        &mut self,
        name: &'static str,
        kind: Kind,
        help: &str,
        value: impl Display,
    ) {
        self.family(name, kind, help);
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
