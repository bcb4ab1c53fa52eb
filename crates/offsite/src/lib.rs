//! Backups in object stores: upload of a database at rest, and download.
//!
//! Object stores have no directories, links or renames, so a backup is one object
//! per file and `BACKUP.json`, which lists every object with its length and
//! SHA-256. It is written last: without it there is no backup. A download accepts
//! only objects that match it, and becomes a database only after all checksums of
//! the database itself are verified. The pieces, [`send_file`], [`fetch_file`] and
//! the objects of a [`Place`], serve other formats too. Memory is bounded by parts and files in
//! flight, not by file sizes. Tested by `tests/` on folders with a store that
//! fails at every request, and by the client tests over S3.

mod digest;
mod download;
mod error;
#[cfg(feature = "faulty")]
pub mod faulty;
mod fetch;
mod listing;
mod object;
mod place;
mod send;
mod transfer;
mod upload;

pub use digest::Content;
pub use download::download;
pub use error::{Error, Result};
pub use fetch::{check_object, fetch_file};
pub use listing::{Entry, LISTING, Listing};
pub use object::Held;
pub use place::{Place, is_url};
pub use send::{content_of, send_file};
pub use transfer::{FILES_AT_ONCE, Moved, run};
pub use upload::{UNFINISHED, upload};
