//! One file on its way to an object.
//!
//! Files are read outside the thread of the store's client, a step at a time, and
//! large ones are uploaded in parts: an object appears with its last part, whole.

use crate::digest::{Content, Digest};
use crate::error::{Error, Result};
use crate::place::Place;
use crate::transfer::STEP_BYTES;
use latewood_engine::io::{Env, File};
use object_store::buffered::BufWriter;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a part; stores require at least five mebibytes.
const PART_BYTES: u64 = 8 << 20;
/// Most parts of a file; stores allow ten thousand.
const PARTS_MAX: u64 = 9_000;
/// Parts of one file uploaded concurrently.
const PARTS_AT_ONCE: usize = 2;

/// Uploads a file, which must not change meanwhile, to an object of the place and
/// returns what was sent. Uses about three parts of 8 MiB of memory. What has the
/// name already is replaced.
///
/// # Errors
/// `File`, `Store`. The object is then as it was, or whole.
pub async fn send_file(env: &Env, file: &Path, place: &Place, name: &str) -> Result<Content> {
    let mut reading = Reading::open(env, file)?;
    let part_bytes = PART_BYTES.max(reading.len_bytes.div_ceil(PARTS_MAX)) as usize;
    let mut writer = BufWriter::with_capacity(place.store.clone(), place.object(name), part_bytes)
        .with_max_concurrency(PARTS_AT_ONCE);
    let refused = || Error::store(format!("upload {}", place.call(name)));
    loop {
        let (now, read) = reading.step().await;
        reading = now;
        let outcome = match read {
            Ok(step) if step.is_empty() => break,
            Ok(step) => writer.put(step.into()).await.map_err(refused()),
            Err(error) => Err(unreadable(file, error)),
        };
        if let Err(error) = outcome {
            // The first error counts; the store expires remaining parts.
            let _ = writer.abort().await;
            return Err(error);
        }
    }
    finish(writer).await.map_err(refused())?;
    Ok(reading.digest.content())
}

/// The content of a local file. Reads all of it.
///
/// # Errors
/// `File`
pub async fn content_of(env: &Env, file: &Path) -> Result<Content> {
    let mut reading = Reading::open(env, file)?;
    loop {
        let (now, read) = reading.step().await;
        reading = now;
        if read.map_err(|error| unreadable(file, error))?.is_empty() {
            return Ok(reading.digest.content());
        }
    }
}

fn unreadable(file: &Path, source: std::io::Error) -> Error {
    Error::File {
        doing: "read",
        path: file.to_owned(),
        source,
    }
}

async fn finish(mut writer: BufWriter) -> object_store::Result<()> {
    use tokio::io::AsyncWriteExt;
    let ended = writer.shutdown().await;
    // The writer wraps the store's error, whose kind tells whether to try again.
    ended.map_err(|error| match error.downcast::<object_store::Error>() {
        Ok(error) => error,
        Err(error) => object_store::Error::Generic {
            store: "upload",
            source: Box::new(error),
        },
    })
}

struct Reading {
    file: Arc<dyn File>,
    len_bytes: u64,
    done_bytes: u64,
    digest: Digest,
}

impl Reading {
    fn open(env: &Env, path: &Path) -> Result<Self> {
        let failed = |error| unreadable(path, error);
        let file = env.disk.open(path).map_err(failed)?;
        Ok(Self {
            len_bytes: file.len_bytes().map_err(failed)?,
            file,
            done_bytes: 0,
            digest: Digest::default(),
        })
    }

    /// The next bytes, empty at the end.
    async fn step(mut self) -> (Self, std::io::Result<Vec<u8>>) {
        let stepped = tokio::task::spawn_blocking(move || {
            let left_bytes = self.len_bytes - self.done_bytes;
            let mut step = vec![0; left_bytes.min(STEP_BYTES as u64) as usize];
            let read = self.file.read_at(&mut step, self.done_bytes);
            self.done_bytes += step.len() as u64;
            self.digest.add(&step);
            (self, read.map(|()| step))
        });
        stepped.await.expect("reading a file does not panic")
    }
}
