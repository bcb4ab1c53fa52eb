//! Checkpoints of a tablet in an object store. `docs/format/checkpoint.md`.
//!
//! A checkpoint is the files of a database without its log, each an object, and a
//! listing that names them. Whoever knows the listing's name, length and SHA-256, as
//! the tablet's log has them, gets exactly these files or an error that names the
//! object. Nothing here decides which checkpoint counts; where the log is lost, a person does.
//!
//! Invariants: the name of an object holds the epoch of its writer and the digest of
//! its bytes, so two writers, or one that tries again, never write different bytes
//! under one name; only `LATEST` is replaced. A listing is written after all that it
//! names. A directory that is being loaded has no FORMAT, and is no database, until
//! all other files are as listed and durable.
//!
//! All calls block and must not be made on a thread of a tokio runtime. Tested by
//! `tests/checkpoint/` over a store and a disk whose every request fails in turn.

mod choice;
mod error;
mod first;
mod latest;
mod listing;
mod load;
mod names;
mod objects;
mod save;
mod sweep;
mod uploads;
mod verify;

pub use choice::Choice;
pub use error::{CheckpointError, Result};
pub use latest::Latest;
pub use listing::{Listing, ListingRef, Row};
pub use load::Progress;
pub(crate) use load::UNFINISHED;
pub use objects::{Checkpoint, Objects};
pub use sweep::{GRACE, Swept};
pub use uploads::Uploads;
