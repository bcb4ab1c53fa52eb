//! Placeholder.
pub mod error;
pub use error::{Error, ErrorKind, Result};
