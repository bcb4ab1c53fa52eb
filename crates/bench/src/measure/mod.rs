//! The machine, what processes take of it, and what is made of many figures.

pub(crate) mod disk;
pub(crate) mod fresh;
pub(crate) mod machine;
pub(crate) mod progress;
pub(crate) mod quiet;
pub(crate) mod statistics;
pub(crate) mod usage;
pub(crate) mod watch;
