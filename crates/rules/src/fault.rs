//! What is wrong with a file, and where.

use crate::yaml::Place;
use std::fmt;
use std::path::Path;

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// A second place that it is about.
    pub other: Option<Place>,
    /// What, in the words of Prometheus where it has such.
    pub text: String,
}

impl Fault {
    pub(crate) fn at(place: Place, text: impl Into<String>) -> Self {
        Self {
            place,
            other: None,
            text: text.into(),
        }
    }

    /// With the file that it is in.
    pub fn within(&self, file: &Path) -> String {
        format!("{}: {self}", file.display())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.line > 0 {
            write!(f, "{}: ", self.place)?;
        }
        if let Some(other) = self.other {
            write!(f, "{other}: ")?;
        }
        f.write_str(&self.text)
    }
}

/// All that is wrong with a text.
pub type Faults = Vec<Fault>;
