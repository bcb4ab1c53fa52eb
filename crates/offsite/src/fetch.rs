//! One object on its way to a file.
//!
//! Length and SHA-256 are verified on the way. Files are written outside the
//! thread of the store's client.

use crate::digest::{Content, Digest};
use crate::error::{Error, Result};
use crate::place::Place;
use crate::transfer::STEP_BYTES;
use futures_util::TryStreamExt;
use latewood_engine::io::{Env, File};
use object_store::ObjectStoreExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Downloads an object of the place, which must have this content, to the file `to`,
/// which must not exist, and syncs the file, not its name. Tells `arrived` the bytes
/// as they come. Uses about two mebibytes of memory.
///
/// # Errors
/// `Damaged` if the object is missing or has another content, `Store`, `File`. The
/// file may then be there, with any bytes.
pub async fn fetch_file(
    env: &Env,
    place: &Place,
    name: &str,
    wanted: &Content,
    to: &Path,
    arrived: impl FnMut(u64),
) -> Result<()> {
    fetch(place, name, wanted, || Arriving::create(env, to), arrived).await
}

/// Reads an object of the place, which must have this content, and keeps nothing of it.
///
/// # Errors
/// `Damaged` if the object is missing or has another content, `Store`.
pub async fn check_object(place: &Place, name: &str, wanted: &Content) -> Result<()> {
    fetch(place, name, wanted, || Ok(Digest::default()), |_| {}).await
}

/// Where the pieces of an object go.
trait Target: Sized {
    async fn take(self, piece: &[u8]) -> Result<Self>;

    /// What was taken.
    async fn end(self) -> Result<Content>;
}

async fn fetch<T: Target>(
    place: &Place,
    name: &str,
    wanted: &Content,
    target: impl FnOnce() -> Result<T>,
    mut arrived: impl FnMut(u64),
) -> Result<()> {
    let failed = |error| Error::store(format!("download {}", place.call(name)))(error);
    let found = match place.store.get(&place.object(name)).await {
        Err(object_store::Error::NotFound { .. }) => {
            return Err(Error::damaged(format!("{} is missing", place.call(name))));
        }
        found => found.map_err(failed)?,
    };
    if found.meta.size != wanted.bytes {
        let (held, bytes) = (found.meta.size, wanted.bytes);
        let what = format!("{} has {held} bytes, not its {bytes}", place.call(name));
        return Err(Error::damaged(what));
    }
    let mut bytes = 0;
    let mut target = target()?;
    let mut pieces = found.into_stream();
    while let Some(piece) = pieces.try_next().await.map_err(failed)? {
        bytes += piece.len() as u64;
        // Bounds a file that never ends.
        if bytes > wanted.bytes {
            break;
        }
        arrived(piece.len() as u64);
        target = target.take(&piece).await?;
    }
    if bytes != wanted.bytes {
        // The object has the right length; the answer does not.
        let answer = format!("the answer has not the {} bytes announced", wanted.bytes);
        return Err(failed(object_store::Error::Generic {
            store: "download",
            source: answer.into(),
        }));
    }
    if target.end().await? != *wanted {
        let what = format!("{} does not match its SHA-256", place.call(name));
        return Err(Error::damaged(what));
    }
    Ok(())
}

impl Target for Digest {
    async fn take(mut self, piece: &[u8]) -> Result<Self> {
        self.add(piece);
        Ok(self)
    }

    async fn end(self) -> Result<Content> {
        Ok(self.content())
    }
}

struct Arriving {
    path: PathBuf,
    file: Arc<dyn File>,
    written_bytes: u64,
    digest: Digest,
    waiting: Vec<u8>,
}

impl Arriving {
    fn create(env: &Env, path: &Path) -> Result<Self> {
        match env.disk.create(path, 0) {
            Ok(file) => Ok(Self {
                path: path.to_owned(),
                file,
                written_bytes: 0,
                digest: Digest::default(),
                waiting: Vec::new(),
            }),
            Err(source) => Err(Error::File {
                doing: "create",
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Writes the buffered bytes.
    async fn step(mut self) -> Result<Self> {
        let stepped = tokio::task::spawn_blocking(move || {
            self.digest.add(&self.waiting);
            let written = self.file.write_at(&self.waiting, self.written_bytes);
            self.written_bytes += self.waiting.len() as u64;
            self.waiting.clear();
            self.done("write", written)
        });
        stepped.await.expect("writing a file does not panic")
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

impl Target for Arriving {
    async fn take(mut self, piece: &[u8]) -> Result<Self> {
        self.waiting.extend_from_slice(piece);
        if self.waiting.len() >= STEP_BYTES {
            self.step().await
        } else {
            Ok(self)
        }
    }

    /// Syncs the file.
    async fn end(self) -> Result<Content> {
        let last = self.step().await?;
        let synced = tokio::task::spawn_blocking(move || {
            let synced = last.file.sync();
            last.done("sync", synced)
        });
        let last = synced.await.expect("syncing a file does not panic")?;
        Ok(last.digest.content())
    }
}
