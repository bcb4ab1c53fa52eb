//! A database at rest goes into an object store.
//!
//! `BACKUP.unfinished` is written first, where nothing may be, and only where
//! it is not there yet: two uploads to one place cannot both begin. Then the
//! files, FORMAT after the others, then `BACKUP.json`. Whatever stops an upload, what is there has no
//! `BACKUP.json` or is whole.

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::listing::{Entry, LISTING, Listing};
use crate::place::Place;
use crate::transfer::{FILES_AT_ONCE, Moved, STEP_BYTES, run};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::io::Env;
use latewood_engine::tools::{FORMAT, files_of};
use object_store::buffered::BufWriter;
use object_store::{ObjectStoreExt, PutMode, PutPayload};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The object that an upload begins with and removes when it is done.
pub const UNFINISHED: &str = "BACKUP.unfinished";
/// Bytes of a part; a store wants five mebibytes at least.
const PART_BYTES: u64 = 8 << 20;
/// A store takes ten thousand at most.
const PARTS_MAX: u64 = 9_000;
/// Parts of one file that are under way at a time.
const PARTS_AT_ONCE: usize = 2;

/// Uploads the database in `dir`, which nothing may change meanwhile, to a
/// place where nothing is yet. It holds some twelve parts of 8 MiB in memory.
///
/// # Errors
/// `Taken`, `Url` for a place that cannot be written, `File`, `Store`. What was
/// uploaded until then stays, and is no backup.
pub fn upload(dir: &Path, place: &Place) -> Result<Moved> {
    run(upload_all(dir, place))
}

async fn upload_all(dir: &Path, place: &Place) -> Result<Moved> {
    if place.is_web {
        return Err(Error::Url {
            url: place.url.clone(),
            reason: "a web server can be restored from, not backed up to".to_owned(),
        });
    }
    refuse_taken(place).await?;
    create(place, UNFINISHED, Vec::new()).await?;
    let mut names = files_of(&Env::real(), dir)?;
    // What lacks it is no database, so it goes when all others are there.
    let last: Vec<String> = names.extract_if(.., |name| name == FORMAT).collect();
    let mut files = Vec::with_capacity(names.len() + last.len());
    for names in [names, last] {
        let sent: Vec<Entry> = stream::iter(names)
            .map(|name| upload_file(dir, place, name))
            .buffer_unordered(FILES_AT_ONCE)
            .try_collect()
            .await?;
        files.extend(sent);
    }
    let moved = Moved {
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |now| now.as_millis() as u64);
    create(place, LISTING, Listing::new(files, now_ms).encode()).await?;
    let marker = place.store.delete(&place.object(UNFINISHED)).await;
    marker.map_err(Error::store(format!(
        "remove {}, though the backup is finished",
        place.call(UNFINISHED)
    )))?;
    Ok(moved)
}

async fn refuse_taken(place: &Place) -> Result<()> {
    let listed = place.store.list(place.prefix()).next().await;
    let failed = Error::store(format!(
        "list {} (keys and settings are taken from the environment)",
        place.url
    ));
    match listed.transpose().map_err(failed)? {
        None => Ok(()),
        Some(object) => Err(taken(place, object.location.as_ref())),
    }
}

fn taken(place: &Place, held: &str) -> Error {
    Error::Taken {
        url: place.url.clone(),
        held: held.to_owned(),
    }
}

/// Writes an object that must not be there.
async fn create(place: &Place, name: &str, bytes: Vec<u8>) -> Result<()> {
    let payload = PutPayload::from(bytes);
    let object = place.object(name);
    let put = place
        .store
        .put_opts(&object, payload, PutMode::Create.into());
    match put.await {
        Ok(_) => Ok(()),
        Err(object_store::Error::AlreadyExists { .. }) => Err(taken(place, name)),
        Err(error) => Err(Error::store(format!("write {}", place.call(name)))(error)),
    }
}

/// Uploads a file as it stands; what it was.
async fn upload_file(dir: &Path, place: &Place, name: String) -> Result<Entry> {
    let path = dir.join(&name);
    let failed = |source| Error::File {
        doing: "read",
        path: path.clone(),
        source,
    };
    let file = File::open(&path).map_err(failed)?;
    let len_bytes = file.metadata().map_err(failed)?.len();
    let part_bytes = PART_BYTES.max(len_bytes.div_ceil(PARTS_MAX)) as usize;
    let object = place.object(&name);
    let mut writer = BufWriter::with_capacity(place.store.clone(), object, part_bytes)
        .with_max_concurrency(PARTS_AT_ONCE);
    let refused = || Error::store(format!("upload {}", place.call(&name)));
    let mut reading = Reading {
        file,
        digest: Digest::default(),
    };
    let mut bytes = 0;
    loop {
        let (now, read) = reading.step().await;
        reading = now;
        let outcome = match read {
            Ok(step) if step.is_empty() => break,
            Ok(step) => {
                bytes += step.len() as u64;
                writer.put(step.into()).await.map_err(refused())
            }
            Err(error) => Err(failed(error)),
        };
        if let Err(error) = outcome {
            // The first error counts; parts that stay are the store's to expire.
            let _ = writer.abort().await;
            return Err(error);
        }
    }
    finish(writer).await.map_err(refused())?;
    Ok(Entry {
        path: name,
        bytes,
        sha256: reading.digest.hex(),
    })
}

async fn finish(mut writer: BufWriter) -> object_store::Result<()> {
    use tokio::io::AsyncWriteExt;
    let ended = writer.shutdown().await;
    ended.map_err(|error| object_store::Error::Generic {
        store: "upload",
        source: Box::new(error),
    })
}

struct Reading {
    file: File,
    digest: Digest,
}

impl Reading {
    /// The next bytes; none at the end. Apart from the thread that speaks to
    /// the store.
    async fn step(mut self) -> (Self, std::io::Result<Vec<u8>>) {
        let stepped = tokio::task::spawn_blocking(move || {
            let mut step = Vec::with_capacity(STEP_BYTES);
            let read = (&self.file).take(STEP_BYTES as u64).read_to_end(&mut step);
            self.digest.add(&step);
            (self, read.map(|_| step))
        });
        stepped.await.expect("reading a file does not panic")
    }
}
