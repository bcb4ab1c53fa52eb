//! Storage: blocks of samples, the manifest and the series files.

pub(crate) mod block;
pub(crate) mod files;
