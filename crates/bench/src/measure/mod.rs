//! The machine, and what processes take of it.

pub(crate) mod disk;
pub(crate) mod fresh;
pub(crate) mod machine;
pub(crate) mod progress;
pub(crate) mod quiet;
pub(crate) mod usage;
pub(crate) mod watch;
