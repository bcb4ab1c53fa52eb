//! Backups in object stores: upload of a database at rest, and its way back.
//!
//! The object store knows no directories, links or renames, so a backup there
//! is one object for each file and `BACKUP.json`, which names every one with
//! its length and SHA-256 and is written last: without it there is no backup.
//! The way back takes nothing that does not match it, and what comes of it is a
//! database only when every checksum of the database itself is right, too.
//! Memory is bounded by parts and files in flight, not by what a file holds.
//! Tested by `tests/` on folders with a store that fails at every request, and
//! by the client tests over S3.

mod crypto;
mod digest;
mod download;
mod error;
mod listing;
mod place;
mod transfer;
mod upload;

pub use download::download;
pub use error::{Error, Result};
pub use listing::{Entry, LISTING, Listing};
pub use place::{Place, is_url};
pub use transfer::Moved;
pub use upload::{UNFINISHED, upload};
