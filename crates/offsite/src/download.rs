//! A database comes out of an object store.
//!
//! Every file is held against its length and checksum as it comes in, and the
//! first that differs stops everything: what is there then lacks FORMAT and is
//! no database.

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

/// No list is longer: a file takes some two hundred bytes.
const LISTING_BYTES_MAX: u64 = 256 << 20;

/// Brings the backup at a place into the folder `dir`, which must be empty or
/// not there, and reads all of it before it becomes a database. Findings go to
/// `tell`. It holds a few mebibytes in memory.
///
/// # Errors
/// `NoBackup`, `Version`, `Damaged` where an object is missing or is not what
/// was backed up, `Store`, `File`, and `Engine` where `dir` is not empty or the
/// database that was backed up is damaged. What is in `dir` then is no database.
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
    let path = place_of(dir, name).ok_or_else(|| Error::damaged(format!("a file {name:?}")))?;
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
        // A file that goes on for ever ends here.
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

/// A file that is being written.
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

    /// Writes what is waiting, apart from the thread that speaks to the store.
    async fn step(mut self) -> Result<Self> {
        let stepped = tokio::task::spawn_blocking(move || {
            self.digest.add(&self.waiting);
            let written = self.file.write_all(&self.waiting);
            self.waiting.clear();
            self.done("write", written)
        });
        stepped.await.expect("writing a file does not panic")
    }

    /// Makes the file durable; the digest of all of it.
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
