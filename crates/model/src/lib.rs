//! The types that every Latewood crate shares: samples, series options, labels,
//! policies, aggregators, and their limits.
//!
//! No I/O, no locks, no encodings. Tested by unit tests beside each type.

mod aggregator;
mod compaction;
mod compatibility;
mod labels;
pub mod limits;
mod matcher;
mod metadata;
mod named;
mod options;
mod policy;
mod sample;

pub use aggregator::Aggregator;
pub use compaction::{Compaction, CompactionPolicy, PolicyError};
pub use compatibility::Compatibility;
pub use labels::{LabelError, Labels};
pub use matcher::{Matcher, Test};
pub use metadata::{METRIC_KINDS, Told};
pub use options::{Encoding, Ignore, OptionsError, SeriesOptions};
pub use policy::DuplicatePolicy;
pub use sample::{MadeBy, Sample, SeriesId, Timestamp};
