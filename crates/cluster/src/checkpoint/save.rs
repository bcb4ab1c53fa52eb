//! Saving a folder as a checkpoint.
//!
//! Files of `blocks/` and `series/` never change, so those that the checkpoint before
//! names are not read. All others are digested before they are uploaded: the digest
//! is part of the object's name, and what a call that was cut off uploaded whole is
//! found by it.

use super::error::{CheckpointError, Result};
use super::listing::{Listing, ListingRef, Row};
use super::names;
use super::objects::{Checkpoint, Objects};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::tools::{FORMAT, files_of};
use latewood_offsite::{Content, Entry, Error, FILES_AT_ONCE, content_of, run, send_file};
use std::path::Path;

impl Objects {
    /// Saves the database in `folder`, which has no log and must not change meanwhile,
    /// as the checkpoint after `previous`, which this epoch's owner loaded or saved
    /// last. The checkpoint counts once a record of the tablet's log says so. Uses
    /// about twelve parts of 8 MiB of memory.
    ///
    /// # Errors
    /// `Store`, `NoDatabase`, `LocalLog`, `Changed`, `OtherTablet`. The same call may
    /// be made again; what was uploaded whole is not uploaded again.
    pub fn save(
        &self,
        epoch: u64,
        folder: &Path,
        previous: Option<&Listing>,
    ) -> Result<Checkpoint> {
        self.place.require_writable()?;
        run(self.save_all(epoch, folder, previous))
    }

    async fn save_all(
        &self,
        epoch: u64,
        folder: &Path,
        previous: Option<&Listing>,
    ) -> Result<Checkpoint> {
        let number = match previous {
            None => 1,
            Some(previous) => {
                self.require_own(previous)?;
                previous.number + 1
            }
        };
        let paths = files_of(&self.env, folder)?;
        super::load::refuse_log(&paths, folder)?;
        if !paths.iter().any(|path| path == FORMAT) {
            let folder = folder.to_owned();
            return Err(CheckpointError::NoDatabase { folder });
        }
        let rows: Vec<Row> = stream::iter(paths)
            .map(|path| {
                let known = previous.and_then(|previous| previous.row(&path));
                self.save_file(epoch, number, folder, path, known)
            })
            .buffer_unordered(FILES_AT_ONCE)
            .try_collect()
            .await?;
        let now_ms = self.env.clock.now_ms();
        let listing = Listing::new(&self.cluster, self.tablet, epoch, number, rows, now_ms);
        let bytes = listing.encode();
        let content = Content::of(&bytes);
        let object = names::listing(epoch, number, &content);
        if !self.has(&object, &content).await? {
            self.place.put(&object, bytes).await?;
        }
        let at = ListingRef { object, content };
        Ok(Checkpoint { at, listing })
    }

    /// The row of a file, whose object is in the store.
    async fn save_file(
        &self,
        epoch: u64,
        number: u64,
        folder: &Path,
        path: String,
        known: Option<&Row>,
    ) -> Result<Row> {
        let file = folder.join(&path);
        let is_immutable = path.contains('/');
        if let Some(row) = known
            && is_immutable
            && self.len_bytes(&file)? == row.file.content.bytes
        {
            return Ok(row.clone());
        }
        let content = content_of(&self.env, &file).await?;
        if let Some(row) = known
            && row.file.content == content
        {
            return Ok(row.clone());
        }
        let object = names::file(epoch, number, &path, &content);
        if !self.has(&object, &content).await?
            && send_file(&self.env, &file, &self.place, &object).await? != content
        {
            return Err(CheckpointError::Changed { path: file });
        }
        let file = Entry { path, content };
        Ok(Row { file, object })
    }

    /// Whether a call before uploaded this object, which has its digest in its name.
    async fn has(&self, object: &str, content: &Content) -> Result<bool> {
        Ok(self.place.len_bytes(object).await? == Some(content.bytes))
    }

    fn len_bytes(&self, file: &Path) -> Result<u64> {
        let len_bytes = self.env.disk.open(file).and_then(|file| file.len_bytes());
        let failed = |source| Error::File {
            doing: "read",
            path: file.to_owned(),
            source,
        };
        Ok(len_bytes.map_err(failed)?)
    }
}
