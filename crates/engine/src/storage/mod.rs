//! Storage: blocks of samples, the manifest, the series files, and metadata of metrics.

pub(crate) mod block;
pub(crate) mod files;
pub(crate) mod metadata;
