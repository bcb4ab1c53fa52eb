//! Downloads a database from an object store.
//!
//! Length and checksum of every file are verified during the download, and the
//! first mismatch stops it: the folder then lacks FORMAT and is not a database.

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::listing::{Entry, LISTING, Listing};
use crate::place::Place;
use crate::transfer::{FILES_AT_ONCE, Moved, STEP_BYTES, run};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::io::Env;
use latewood_engine::tools::{Checked, Finding, adopt, place_of, prepare_target};
use object_store::ObjectStoreExt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

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
        bytes: listing.files.iter().map(|file| file.bytes).sum(),
    };
    stream::iter(listing.files)
        .map(|file| download_file(place, dir, file))
        .buffer_unordered(FILES_AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(moved)
}

async fn listing(place: &Place) -> Result<Listing> {
    let failed = |error| Error::store(format!("read {}", place.call(LISTING)))(error);
    let found = match place.store.get(&place.object(LISTING)).await {
        Err(object_store::Error::NotFound { .. }) => {
            let url = place.url.clone();
            return Err(Error::NoBackup { url });
        }
        found => found.map_err(failed)?,
    };
    if found.meta.size > LISTING_BYTES_MAX {
        let what = format!("{LISTING} has {} bytes", found.meta.size);
        return Err(Error::damaged(what));
    }
    Listing::decode(&found.bytes().await.map_err(failed)?)
}

async fn download_file(place: &Place, dir: &Path, entry: Entry) -> Result<()> {
    let name = &entry.path;
    let path =
        place_of(dir, name).ok_or_else(|| Error::damaged(format!("invalid file name {name:?}")))?;
    let failed = |error| Error::store(format!("download {}", place.call(name)))(error);
    let found = match place.store.get(&place.object(name)).await {
        Err(object_store::Error::NotFound { .. }) => {
            return Err(Error::damaged(format!("{} is missing", place.call(name))));
        }
        found => found.map_err(failed)?,
    };
    let mut bytes = 0;
    let mut arriving = Arriving::new(path)?;
    let mut pieces = found.into_stream();
    while let Some(piece) = pieces.try_next().await.map_err(failed)? {
        bytes += piece.len() as u64;
        // Bounds a file that never ends.
        if bytes > entry.bytes {
            break;
        }
        arriving.waiting.extend_from_slice(&piece);
        if arriving.waiting.len() >= STEP_BYTES {
            arriving = arriving.step().await?;
        }
    }
    if bytes != entry.bytes {
        let more = if bytes > entry.bytes { "more" } else { "fewer" };
        return Err(Error::damaged(format!(
            "{} has {more} than its {} bytes",
            place.call(name),
            entry.bytes
        )));
    }
    if arriving.end().await? != entry.sha256 {
        let what = format!("{} does not match its SHA-256", place.call(name));
        return Err(Error::damaged(what));
    }
    Ok(())
}

/// A file being written.
struct Arriving {
    path: PathBuf,
    file: File,
    digest: Digest,
    waiting: Vec<u8>,
}

impl Arriving {
    fn new(path: PathBuf) -> Result<Self> {
        match File::create_new(&path) {
            Ok(file) => Ok(Self {
                path,
                file,
                digest: Digest::default(),
                waiting: Vec::new(),
            }),
            Err(source) => Err(Error::File {
                doing: "create",
                path,
                source,
            }),
        }
    }

    /// Writes the buffered bytes, outside the thread of the store's client.
    async fn step(mut self) -> Result<Self> {
        let stepped = tokio::task::spawn_blocking(move || {
            self.digest.add(&self.waiting);
            let written = self.file.write_all(&self.waiting);
            self.waiting.clear();
            self.done("write", written)
        });
        stepped.await.expect("writing a file does not panic")
    }

    /// Syncs the file; returns its digest.
    async fn end(self) -> Result<String> {
        let last = self.step().await?;
        let synced = tokio::task::spawn_blocking(move || {
            let synced = last.file.sync_all();
            last.done("sync", synced)
        });
        let last = synced.await.expect("syncing a file does not panic")?;
        Ok(last.digest.hex())
    }

    fn done(self, doing: &'static str, outcome: std::io::Result<()>) -> Result<Self> {
        match outcome {
            Ok(()) => Ok(self),
            Err(source) => Err(Error::File {
                doing,
                path: self.path,
                source,
            }),
        }
    }
}
