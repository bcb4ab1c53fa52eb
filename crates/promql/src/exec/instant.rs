//! Functions of instant vectors and scalars: one file for each kind.

mod bucket;
pub(crate) mod histogram;
pub(crate) mod info;
pub(crate) mod mapped;
pub(crate) mod math;
mod natural;
pub(crate) mod relabel;
pub(crate) mod sorted;
