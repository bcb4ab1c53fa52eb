//! Uploads a database at rest to an object store.
//!
//! The place must be empty. `BACKUP.unfinished` is created first, exclusively, so
//! that two uploads to one place cannot both start. Then the files, FORMAT last,
//! then `BACKUP.json`. An interrupted upload has no `BACKUP.json`.

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

/// The object that marks a running upload.
pub const UNFINISHED: &str = "BACKUP.unfinished";
/// Bytes of a part; stores require at least five mebibytes.
const PART_BYTES: u64 = 8 << 20;
/// Most parts of a file; stores allow ten thousand.
const PARTS_MAX: u64 = 9_000;
/// Parts of one file uploaded concurrently.
const PARTS_AT_ONCE: usize = 2;

/// Uploads the database in `dir`, which must not change meanwhile, to an empty
/// place. Uses about twelve parts of 8 MiB of memory.
///
/// # Errors
/// `Taken`, `Url` for a place that cannot be written, `File`, `Store`. Objects
/// uploaded so far stay, but are not a backup.
pub fn upload(dir: &Path, place: &Place) -> Result<Moved> {
    run(upload_all(dir, place))
}

async fn upload_all(dir: &Path, place: &Place) -> Result<Moved> {
    if place.is_web {
        return Err(Error::Url {
            url: place.url.clone(),
            reason: "http:// and https:// are supported for restore only".to_owned(),
        });
    }
    refuse_taken(place).await?;
    create(place, UNFINISHED, Vec::new()).await?;
    let mut names = files_of(&Env::real(), dir)?;
    // Uploaded last: a folder without it is not a database.
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
        "remove {} (the backup is finished)",
        place.call(UNFINISHED)
    )))?;
    Ok(moved)
}

async fn refuse_taken(place: &Place) -> Result<()> {
    let listed = place.store.list(place.prefix()).next().await;
    let failed = Error::store(format!(
        "list {} (keys and settings come from the environment)",
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

/// Creates an object that must not exist.
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

/// Uploads a file; returns its entry.
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
            // The first error counts; the store expires remaining parts.
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
    /// The next bytes, empty at the end; read outside the thread of the store's
    /// client.
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
