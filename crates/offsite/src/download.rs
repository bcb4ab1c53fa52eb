//! Downloads a database from an object store.
//!
//! Length and checksum of every file are verified during the download, and the
//! first mismatch stops it: the folder then lacks FORMAT and is not a database.

use crate::error::{Error, Result};
use crate::fetch::fetch_file;
use crate::listing::{Entry, LISTING, Listing};
use crate::place::Place;
use crate::transfer::{FILES_AT_ONCE, Moved, run};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::io::Env;
use latewood_engine::tools::{Checked, Finding, adopt, place_of, prepare_target};
use std::path::Path;

/// Limit of the listing: a file takes about two hundred bytes.
const LISTING_BYTES_MAX: u64 = 256 << 20;

/// Downloads the backup at a place to the folder `dir`, which must be empty or
/// not exist, and checks all of it before it becomes a database. Findings go to
/// `tell`. Uses a few mebibytes of memory.
///
/// # Errors
/// `NoBackup`, `Version`, `Damaged` if an object is missing or does not match the
/// listing, `Store`, `File`, and `Engine` if `dir` is not empty or the database is
/// damaged. The content of `dir` is then not a database.
pub fn download(
    place: &Place,
    dir: &Path,
    tell: &mut dyn FnMut(&Finding),
) -> Result<(Moved, Checked)> {
    let env = Env::real();
    let moved = run(download_all(&env, place, dir))?;
    Ok((moved, adopt(&env, dir, tell)?))
}

async fn download_all(env: &Env, place: &Place, dir: &Path) -> Result<Moved> {
    let listing = listing(place).await?;
    prepare_target(env, dir)?;
    let moved = Moved {
        files: listing.files.len() as u64,
        bytes: listing.files.iter().map(|file| file.content.bytes).sum(),
    };
    stream::iter(listing.files)
        .map(|file| download_file(env, place, dir, file))
        .buffer_unordered(FILES_AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(moved)
}

async fn listing(place: &Place) -> Result<Listing> {
    match place.get(LISTING, LISTING_BYTES_MAX).await? {
        Some(bytes) => Listing::decode(&bytes),
        None => Err(Error::NoBackup {
            url: place.url.clone(),
        }),
    }
}

async fn download_file(env: &Env, place: &Place, dir: &Path, entry: Entry) -> Result<()> {
    let name = &entry.path;
    let path =
        place_of(dir, name).ok_or_else(|| Error::damaged(format!("invalid file name {name:?}")))?;
    fetch_file(env, place, name, &entry.content, &path, |_| {}).await
}
