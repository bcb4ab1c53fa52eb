//! What is measured and told: stages of a write, background work, notices to the
//! operator. Nothing here decides anything.

pub mod histogram;
pub(crate) mod notices;
pub(crate) mod observer;
pub(crate) mod signals;
pub(crate) mod stages;
