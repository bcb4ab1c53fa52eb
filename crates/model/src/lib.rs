//! The words every Latewood crate shares.
//!
//! Nothing here does I/O, takes a lock or knows an encoding: these are the
//! nouns of the field (sample, series options, labels, policies, aggregators)
//! and the limits that bound them all. Tested by unit tests beside each type.

mod aggregator;
mod compaction;
mod labels;
pub mod limits;
mod matcher;
mod options;
mod policy;
mod sample;

pub use aggregator::Aggregator;
pub use compaction::{Compaction, CompactionPolicy};
pub use labels::{LabelError, Labels};
pub use matcher::{Matcher, Test};
pub use options::{Encoding, Ignore, OptionsError, SeriesOptions};
pub use policy::DuplicatePolicy;
pub use sample::{Sample, SeriesId, Timestamp};
