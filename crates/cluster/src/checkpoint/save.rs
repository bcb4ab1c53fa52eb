//! Saving a folder as a checkpoint.
//!
//! Files of `blocks/` and `series/` never change, so those that the checkpoint before
//! names are not read, if this epoch's owner wrote it or this process verified them: another
//! node may have given the same number to other bytes. All others are digested before they are
//! uploaded: the digest is part of the object's name, and what a call that was cut off uploaded
//! whole is found by it.
//!
//! Invariants: a listing names objects of its own epoch and of the newest checkpoint that counts, no
//! others: no owner before deletes these, however late its deletion comes. Only where the list of
//! that newest one is gone for good, it names objects of the one that the database has. A listing is
//! written only to a store that has the listing before it and, with the right length, every object
//! that the new one names. Objects go without anybody's doing: a file system is unmounted, a
//! lifecycle rule deletes. What this node has is uploaded again.

use super::error::{CheckpointError, Result};
use super::listing::{Listing, ListingRef, Row};
use super::names;
use super::objects::{Checkpoint, Objects};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::io::File;
use latewood_engine::tools::{FORMAT, files_of};
use latewood_offsite::{Content, Entry, FILES_AT_ONCE, content_of, run, send_file};
use std::collections::BTreeMap;
use std::path::Path;

/// What a checkpoint comes after.
#[derive(Clone, Copy, Default)]
pub(super) struct Before<'a> {
    /// The newest that counts.
    pub(super) previous: Option<&'a Checkpoint>,
    /// The one whose files the database has, if that is another.
    pub(super) held: Option<&'a Checkpoint>,
}

impl Objects {
    /// Saves the database in `folder`, which has no log and must not change meanwhile,
    /// as the checkpoint after `previous`, which this epoch's owner loaded or saved
    /// last. The checkpoint counts once a record of the tablet's log says so. Uses
    /// about twelve parts of 8 MiB of memory, and 200 bytes for each object of the tablet;
    /// one LIST request per thousand.
    ///
    /// # Errors
    /// `Store`, `NoDatabase`, `LocalLog`, `Changed`, `OtherTablet`; `Emptied` and `Lost` for
    /// a store that lacks what only it had. The same call may be made again; what was uploaded
    /// whole is not uploaded again.
    pub fn save(
        &self,
        epoch: u64,
        folder: &Path,
        previous: Option<&Checkpoint>,
    ) -> Result<Checkpoint> {
        self.save_beside(epoch, folder, previous, None)
    }

    /// The same with the files of another checkpoint than `previous`: those of `held`, which is
    /// older. The owner before may be about to delete the objects that only `held` names, however
    /// long ago it looked for them: they are copied to names of this epoch.
    ///
    /// # Errors
    /// Those of [`Objects::save`].
    pub fn save_beside(
        &self,
        epoch: u64,
        folder: &Path,
        previous: Option<&Checkpoint>,
        held: Option<&Checkpoint>,
    ) -> Result<Checkpoint> {
        let paths = files_of(&self.env, folder)?;
        super::load::refuse_log(&paths, folder)?;
        self.save_files(epoch, folder, paths, Before { previous, held })
    }

    /// As [`Objects::save`], these files of `folder` only.
    pub(super) fn save_files(
        &self,
        epoch: u64,
        folder: &Path,
        paths: Vec<String>,
        before: Before<'_>,
    ) -> Result<Checkpoint> {
        self.place.require_writable()?;
        run(self.save_all(epoch, folder, paths, before))
    }

    async fn save_all(
        &self,
        epoch: u64,
        folder: &Path,
        paths: Vec<String>,
        Before { previous, held }: Before<'_>,
    ) -> Result<Checkpoint> {
        let number = match previous {
            None => 1,
            Some(Checkpoint { listing, .. }) => {
                self.require_own(listing)?;
                listing.number + 1
            }
        };
        if !paths.iter().any(|path| path == FORMAT) {
            let folder = folder.to_owned();
            return Err(CheckpointError::NoDatabase { folder });
        }
        let rows: Vec<Row> = stream::iter(paths)
            .map(|path| {
                let known = previous.and_then(|previous| self.known(epoch, previous, &path));
                let held = held.and_then(|held| held.listing.row(&path));
                self.save_file(epoch, number, folder, path, known, held)
            })
            .buffer_unordered(FILES_AT_ONCE)
            .try_collect()
            .await?;
        self.require_objects(folder, previous, &rows).await?;
        let now_ms = self.env.clock.now_ms();
        let listing = Listing::new(&self.cluster, self.tablet, epoch, number, rows, now_ms);
        let bytes = listing.encode();
        let content = Content::of(&bytes);
        let object = names::listing(epoch, number, &content);
        if !self.has(&object, &content).await? {
            self.place.put(&object, bytes).await?;
            self.uploads.add(content.bytes);
        }
        let at = ListingRef { object, content };
        Ok(Checkpoint { at, listing })
    }

    /// What the checkpoint before says of a file, and whether the file is known to have these
    /// bytes if it has their length.
    fn known<'a>(
        &self,
        epoch: u64,
        previous: &'a Checkpoint,
        path: &str,
    ) -> Option<(&'a Row, bool)> {
        let row = previous.listing.row(path)?;
        let is_immutable = path.contains('/');
        let is_ours = previous.listing.epoch == epoch || self.verified.has(row);
        Some((row, is_immutable && is_ours))
    }

    /// The row of a file, whose object is in the store unless it went from there.
    async fn save_file(
        &self,
        epoch: u64,
        number: u64,
        folder: &Path,
        path: String,
        known: Option<(&Row, bool)>,
        held: Option<&Row>,
    ) -> Result<Row> {
        let file = folder.join(&path);
        if let Some((row, is_known)) = known
            && self.len_bytes(&file)? == row.file.content.bytes
        {
            // What is not here comes from the object of the row.
            if is_known || !self.is_here(&file)? {
                return Ok(row.clone());
            }
        }
        if let Some(held) = held
            && !self.is_here(&file)?
        {
            return self.copy(epoch, number, held).await;
        }
        let content = content_of(&self.env, &file).await?;
        if let Some((row, _)) = known
            && row.file.content == content
        {
            return Ok(row.clone());
        }
        let object = names::file(epoch, number, &path, &content);
        if !self.has(&object, &content).await? {
            self.send(&file, &object, &content).await?;
        }
        let file = Entry { path, content };
        Ok(Row { file, object })
    }

    /// The row of a file that only the store has, with an object of this epoch.
    async fn copy(&self, epoch: u64, number: u64, row: &Row) -> Result<Row> {
        let content = &row.file.content;
        let object = names::file(epoch, number, &row.file.path, content);
        if !self.has(&object, content).await? && !self.place.copy(&row.object, &object).await? {
            let object = self.place.call(&row.object);
            return Err(CheckpointError::Lost { object });
        }
        let file = row.file.clone();
        Ok(Row { file, object })
    }

    /// Uploads a file, which must have this content.
    async fn send(&self, file: &Path, object: &str, content: &Content) -> Result<()> {
        if send_file(&self.env, file, &self.place, object).await? != *content {
            let path = file.to_owned();
            return Err(CheckpointError::Changed { path });
        }
        self.uploads.add(content.bytes);
        Ok(())
    }

    /// Looks for all that the next listing depends on, and uploads again what is not there.
    async fn require_objects(
        &self,
        folder: &Path,
        previous: Option<&Checkpoint>,
        rows: &[Row],
    ) -> Result<()> {
        let held = self.place.list().await?.into_iter();
        let held: BTreeMap<String, u64> = held.map(|held| (held.name, held.bytes)).collect();
        let has = |object: &str, content: &Content| held.get(object) == Some(&content.bytes);
        if let Some(Checkpoint { at, .. }) = previous
            && !has(&at.object, &at.content)
        {
            let object = self.place.call(&at.object);
            return Err(CheckpointError::Emptied { object });
        }
        for Row { file, object } in rows
            .iter()
            .filter(|row| !has(&row.object, &row.file.content))
        {
            let path = folder.join(&file.path);
            let called = self.place.call(object);
            if !self.is_here(&path)? {
                return Err(CheckpointError::Lost { object: called });
            }
            tracing::warn!(
                object = called,
                "the object of a file is not in the store, and is uploaded again"
            );
            self.send(&path, object, &file.content).await?;
        }
        Ok(())
    }

    /// Whether the object of a row is in the store, with the right length.
    ///
    /// # Errors
    /// `Store`.
    pub(crate) fn is_kept(&self, row: &Row) -> Result<bool> {
        run(self.has(&row.object, &row.file.content))
    }

    /// Whether a call before uploaded this object, which has its digest in its name.
    async fn has(&self, object: &str, content: &Content) -> Result<bool> {
        Ok(self.place.len_bytes(object).await? == Some(content.bytes))
    }

    fn len_bytes(&self, file: &Path) -> Result<u64> {
        self.look_at(file, |file| file.len_bytes())
    }

    /// Whether the bytes of a file are on this machine.
    fn is_here(&self, file: &Path) -> Result<bool> {
        self.look_at(file, |file| Ok(file.is_here()))
    }

    fn look_at<T>(
        &self,
        file: &Path,
        look: impl FnOnce(&dyn File) -> std::io::Result<T>,
    ) -> Result<T> {
        let found = self.env.disk.open(file).and_then(|file| look(&*file));
        super::load::at_file("read", file, |_| found)
    }
}
