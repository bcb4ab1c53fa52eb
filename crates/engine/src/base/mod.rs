//! What every floor above may use: errors, options, file names, limits of time
//! windows, slabs and hash tables. No lock is held across a call, no I/O.

pub(crate) mod cancelled;
pub(crate) mod detail;
pub(crate) mod error;
pub(crate) mod key_hash;
pub mod names;
pub(crate) mod opaque;
pub(crate) mod options;
pub(crate) mod pages;
pub(crate) mod partition;
pub(crate) mod refusal;
pub(crate) mod slab;
pub(crate) mod spread;
pub(crate) mod table;
pub(crate) mod tally;
pub(crate) mod text;
pub(crate) mod window;
