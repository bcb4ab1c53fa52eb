//! Placeholder.
pub mod error;
pub mod query;
pub use error::{Error, ErrorKind, Result};
