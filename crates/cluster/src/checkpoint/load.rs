//! Making a directory the database of a checkpoint.
//!
//! The directory is a cache: what is there already and has the right bytes stays.
//! FORMAT goes first and comes last, so a directory in between is no database, and
//! loading again, this checkpoint or another, mends it. Blocks may be left for later, to be
//! fetched or, where a file of the right length is there, verified: a start that read all of a
//! large cache first would take as long as the disk. A directory that lacks some is a database
//! of which a part is missing.

use super::error::{CheckpointError, Result};
use super::listing::{Listing, ListingRef, Row};
use super::objects::{Checkpoint, Objects};
use futures_util::future::{Either, select};
use futures_util::{StreamExt, TryStreamExt, stream};
use latewood_engine::io::DirectoryLock;
use latewood_engine::names;
use latewood_engine::tools::{FORMAT, files_of, place_of};
use latewood_offsite::{Content, Error, FILES_AT_ONCE, content_of, fetch_file, run};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

/// Limit of a listing: a file takes about three hundred bytes.
const LISTING_BYTES_MAX: u64 = 256 << 20;
/// The folders of a checkpoint.
const FOLDERS: [&str; 2] = [names::BLOCKS, names::SERIES];
/// How soon a download notices that it is given up.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What the name of a file ends with until the file is whole.
pub(crate) const UNFINISHED: &str = ".new";

/// How far loading is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes found in the directory or downloaded.
    pub done_bytes: u64,
    /// Bytes of the checkpoint, less those of blocks that are fetched later.
    pub total_bytes: u64,
}

/// Counts bytes and tells them.
struct Told<'a>(RefCell<(Progress, &'a mut dyn FnMut(Progress))>);

impl Told<'_> {
    /// Bytes that are not loaded.
    fn leave_out(&self, bytes: u64) {
        let (progress, _) = &mut *self.0.borrow_mut();
        progress.total_bytes = progress.total_bytes.saturating_sub(bytes);
    }

    fn add(&self, bytes: u64) {
        let (progress, tell) = &mut *self.0.borrow_mut();
        progress.done_bytes += bytes;
        tell(*progress);
    }
}

impl Objects {
    /// The checkpoint that a record of the tablet's log names.
    ///
    /// # Errors
    /// `NotHere`; `Store`: `Damaged` in it if the listing has another content. `OtherTablet`.
    pub fn find(&self, at: &ListingRef) -> Result<Checkpoint> {
        run(self.listing(at))
    }

    /// Makes `dir` the database that a checkpoint is, without a log; it is created if
    /// it does not exist. Whatever else of a database is in it is replaced or removed.
    /// Tells `tell` how far it is. Reads all files of the database in `dir`; uses about
    /// ten mebibytes of memory.
    ///
    /// # Errors
    /// `LocalLog` if `dir` has log segments, and `InUse`, before anything is changed.
    /// `Store`: the same call may be made again, and keeps the files that are there.
    pub fn load(
        &self,
        at: &ListingRef,
        dir: &Path,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Checkpoint> {
        let (checkpoint, _) = run(self.load_some(at, dir, tell, |_| false))?;
        Ok(checkpoint)
    }

    /// As [`Objects::load`], but leaves the blocks out, whose rows it returns: the caller must have
    /// them fetched. Those in `dir` that have the right length stay, and are not read: the caller
    /// must have them verified first ([`Objects::holds`]).
    ///
    /// # Errors
    /// As [`Objects::load`].
    pub(crate) fn load_without_blocks(
        &self,
        at: &ListingRef,
        dir: &Path,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<(Checkpoint, Vec<Row>)> {
        run(self.load_some(at, dir, tell, Row::is_block))
    }

    /// Whether the file `path` has the bytes of a row; `None` once `is_given_up` says so. Reads
    /// all of it, if its length is right.
    ///
    /// # Errors
    /// `Store` if the runtime cannot be started.
    pub(crate) fn holds(
        &self,
        path: &Path,
        row: &Row,
        is_given_up: impl Fn() -> bool,
    ) -> Result<Option<bool>> {
        run(async {
            let looked = unless(is_given_up, self.is_right(path, row)).await;
            Ok(looked.inspect(|is_right| self.note(row, *is_right)))
        })
    }

    /// Downloads the object of a row to the file `to`, durably but for its name; what is there
    /// is replaced. Ends early once `is_given_up` says so. Returns whether all of it is there.
    ///
    /// # Errors
    /// `Store`, which names the object; the file may then be there, with any bytes.
    pub(crate) fn download_row(
        &self,
        row: &Row,
        to: &Path,
        is_given_up: impl Fn() -> bool,
    ) -> Result<bool> {
        self.remove(to)?;
        let (place, content) = (&self.place, &row.file.content);
        run(async {
            let fetched = fetch_file(&self.env, place, &row.object, content, to, |_| {});
            let fetched = unless(is_given_up, fetched).await.transpose()?;
            self.note(row, fetched.is_some());
            Ok(fetched.is_some())
        })
    }

    /// Takes note of a file that was verified, as blocks and series files do not change.
    fn note(&self, row: &Row, is_right: bool) {
        if is_right && row.file.path.contains('/') {
            self.verified.add(row);
        }
    }

    /// The name of the object of a row in messages.
    pub(crate) fn call(&self, row: &Row) -> String {
        self.place.call(&row.object)
    }

    /// Downloads a checkpoint to `dir`, which [`latewood_engine::tools::prepare_target`] made: each file to its
    /// [`place_of`], so that it is no database before it is adopted. Tells `tell` how far it is.
    ///
    /// # Errors
    /// As [`Objects::find`]; `Damaged` in `Store` for a missing object and one with other bytes.
    pub fn download(
        &self,
        at: &ListingRef,
        dir: &Path,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Checkpoint> {
        run(async {
            let checkpoint = self.listing(at).await?;
            let progress = Progress {
                total_bytes: checkpoint.listing.bytes(),
                ..Progress::default()
            };
            let told = Told(RefCell::new((progress, tell)));
            stream::iter(&checkpoint.listing.files)
                .map(|row| self.fetch_new(dir, row, &told))
                .buffer_unordered(FILES_AT_ONCE)
                .try_collect::<()>()
                .await?;
            Ok(checkpoint)
        })
    }

    /// Downloads to `to`, which is empty or missing, what a checkpoint has beside blocks and the
    /// series files of `held`, whose files are here: each to its path in a database. `None` once
    /// `is_given_up` says so.
    ///
    /// # Errors
    /// As [`Objects::download`].
    pub(crate) fn load_beside(
        &self,
        at: &ListingRef,
        held: Option<&Listing>,
        to: &Path,
        is_given_up: impl Fn() -> bool,
    ) -> Result<Option<Checkpoint>> {
        let disk = &self.env.disk;
        for folder in FOLDERS {
            let folder = to.join(folder);
            at_file("create", &folder, |folder| disk.create_dir_all(folder))?;
        }
        let load = async {
            let checkpoint = self.listing(at).await?;
            let mut tell = |_| {};
            let told = Told(RefCell::new((Progress::default(), &mut tell)));
            let is_held = |row: &Row| {
                let held = held.and_then(|held| held.row(&row.file.path));
                row.file.path.contains('/') && held.is_some_and(|held| held.file == row.file)
            };
            let rows = checkpoint.listing.files.iter();
            let new = rows.filter(|row| !row.is_block() && !is_held(row));
            stream::iter(new)
                .map(|row| async { self.fetch_to(&to.join(&row.file.path), row, &told).await })
                .buffer_unordered(FILES_AT_ONCE)
                .try_collect::<()>()
                .await?;
            self.sync_dirs(to, &[FOLDERS[1], ""])?;
            Ok(checkpoint)
        };
        run(async { unless(is_given_up, load).await.transpose() })
    }

    async fn fetch_new(&self, dir: &Path, row: &Row, told: &Told<'_>) -> Result<()> {
        let path = place_of(dir, &row.file.path)
            .expect("a listing with other names than those of database files is not decoded");
        self.fetch_to(&path, row, told).await
    }

    /// Makes `dir` no database: removes the files of one that no checkpoint is of.
    ///
    /// # Errors
    /// `LocalLog` if `dir` has log segments, and `InUse`, before anything is changed; `Store`.
    pub fn clear(&self, dir: &Path) -> Result<()> {
        let files = files_of(&self.env, dir)?;
        refuse_log(&files, dir)?;
        if files.is_empty() {
            return Ok(());
        }
        let _lock = self.lock(dir)?;
        self.remove(&dir.join(FORMAT))?;
        self.sync_dirs(dir, &[""])?;
        files
            .iter()
            .try_for_each(|file| self.remove(&dir.join(file)))
    }

    /// As [`Objects::clear`], of a folder that only this process uses: its lock goes too.
    ///
    /// # Errors
    /// Those of [`Objects::clear`].
    pub fn discard(&self, dir: &Path) -> Result<()> {
        self.clear(dir)?;
        self.remove(&dir.join(names::LOCK))
    }

    /// Whether `dir`, which need not exist, may become the database of a checkpoint now.
    ///
    /// # Errors
    /// `LocalLog` if `dir` has log segments; `InUse`; `Store` if it cannot be read or locked.
    pub fn require_unused(&self, dir: &Path) -> Result<()> {
        refuse_log(&files_of(&self.env, dir)?, dir)?;
        at_file("create", dir, |dir| self.env.disk.create_dir_all(dir))?;
        self.lock(dir).map(drop)
    }

    /// Loads all files but those that may come later, whose rows it returns.
    async fn load_some(
        &self,
        at: &ListingRef,
        dir: &Path,
        tell: &mut dyn FnMut(Progress),
        may_be_later: impl Fn(&Row) -> bool,
    ) -> Result<(Checkpoint, Vec<Row>)> {
        refuse_log(&files_of(&self.env, dir)?, dir)?;
        let checkpoint = self.listing(at).await?;
        let listing = &checkpoint.listing;
        let progress = Progress {
            total_bytes: listing.bytes(),
            ..Progress::default()
        };
        let told = Told(RefCell::new((progress, tell)));
        let disk = &self.env.disk;
        for folder in FOLDERS {
            let folder = dir.join(folder);
            at_file("create", &folder, |folder| disk.create_dir_all(folder))?;
        }
        let _lock = self.lock(dir)?;
        let extra = self.extra(listing, dir)?;
        let (later, now): (Vec<&Row>, Vec<&Row>) =
            listing.files.iter().partition(|row| may_be_later(row));
        told.leave_out(later.iter().map(|row| row.file.content.bytes).sum());
        for row in &later {
            let path = dir.join(&row.file.path);
            if !self.has_length(&path, row) {
                self.remove(&path)?;
            }
        }
        let later = later.into_iter().cloned().collect();
        let wrong = self.wrong(now, dir, &told).await?;
        // No checkpoint is without FORMAT.
        let format = listing.row(FORMAT).into_iter();
        if wrong.is_empty() && extra.is_empty() {
            format.for_each(|row| told.add(row.file.content.bytes));
            return Ok((checkpoint, later));
        }
        // Durably no database, before the first of its files changes.
        self.remove(&dir.join(FORMAT))?;
        self.sync_dirs(dir, &[""])?;
        extra.iter().try_for_each(|path| self.remove(path))?;
        let others = wrong.into_iter().filter(|row| row.file.path != FORMAT);
        stream::iter(others)
            .map(|row| self.fetch(dir, row, &told))
            .buffer_unordered(FILES_AT_ONCE)
            .try_collect::<()>()
            .await?;
        self.sync_dirs(dir, &[FOLDERS[0], FOLDERS[1], ""])?;
        for row in format {
            self.fetch(dir, row, &told).await?;
        }
        self.sync_dirs(dir, &[""])?;
        Ok((checkpoint, later))
    }

    async fn listing(&self, at: &ListingRef) -> Result<Checkpoint> {
        let bytes = self.bytes_of_listing(&at.object).await?;
        if Content::of(&bytes) != at.content {
            let called = self.place.call(&at.object);
            let what = format!("{called} is not the listing that is asked for");
            return Err(Error::damaged(what).into());
        }
        self.decoded(at.clone(), &bytes)
    }

    pub(super) async fn bytes_of_listing(&self, object: &str) -> Result<Vec<u8>> {
        let found = self.place.get(object, LISTING_BYTES_MAX).await?;
        found.ok_or_else(|| CheckpointError::NotHere {
            object: self.place.call(object),
        })
    }

    /// The checkpoint whose listing has these bytes.
    pub(super) fn decoded(&self, at: ListingRef, bytes: &[u8]) -> Result<Checkpoint> {
        let listing = Listing::decode(bytes, &self.place.call(&at.object))?;
        self.require_own(&listing)?;
        Ok(Checkpoint { at, listing })
    }

    /// Keeps other processes out of a directory.
    fn lock(&self, dir: &Path) -> Result<Box<dyn DirectoryLock>> {
        let path = dir.join(names::LOCK);
        match self.env.disk.lock(&path) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let dir = dir.to_owned();
                Err(CheckpointError::InUse { dir })
            }
            locked => at_file("lock", &path, |_| locked),
        }
    }

    /// Files in `dir` that belong to a database or to an unfinished load, and not to
    /// this checkpoint.
    fn extra(&self, listing: &Listing, dir: &Path) -> Result<BTreeSet<PathBuf>> {
        let held = files_of(&self.env, dir)?;
        let others = held.iter().filter(|path| listing.row(path).is_none());
        let mut extra: BTreeSet<PathBuf> = others.map(|path| dir.join(path)).collect();
        for folder in FOLDERS {
            let folder = dir.join(folder);
            let held = at_file("list", &folder, |folder| self.env.disk.list(folder))?;
            let unfinished = held.iter().filter(|name| name.ends_with(UNFINISHED));
            extra.extend(unfinished.map(|name| folder.join(name)));
        }
        Ok(extra)
    }

    /// The files of these that are not in `dir` as they are listed. Tells of the others.
    async fn wrong<'a>(
        &self,
        rows: Vec<&'a Row>,
        dir: &Path,
        told: &Told<'_>,
    ) -> Result<Vec<&'a Row>> {
        let looked = stream::iter(rows).map(|row| async move {
            let is_right = self.is_right(&dir.join(&row.file.path), row).await;
            self.note(row, is_right);
            // FORMAT stays only if all others do.
            if is_right && row.file.path != FORMAT {
                told.add(row.file.content.bytes);
            }
            Ok((!is_right).then_some(row))
        });
        let wrong = looked.buffer_unordered(FILES_AT_ONCE);
        wrong
            .try_filter_map(async |row| Ok(row))
            .try_collect()
            .await
    }

    /// Whether a file can be read and has the bytes of its row.
    async fn is_right(&self, path: &Path, row: &Row) -> bool {
        self.has_length(path, row)
            && content_of(&self.env, path)
                .await
                .is_ok_and(|held| held == row.file.content)
    }

    /// Whether a file is there and has the length of its row.
    fn has_length(&self, path: &Path, row: &Row) -> bool {
        let len_bytes = self.env.disk.open(path).and_then(|file| file.len_bytes());
        len_bytes.is_ok_and(|bytes| bytes == row.file.content.bytes)
    }

    /// Replaces a file in `dir` by that of a row, durably but for its name.
    async fn fetch(&self, dir: &Path, row: &Row, told: &Told<'_>) -> Result<()> {
        let path = dir.join(&row.file.path);
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        self.remove(&unfinished)?;
        self.fetch_to(&unfinished, row, told).await?;
        let disk = &self.env.disk;
        at_file("replace", &path, |path| disk.rename(&unfinished, path))
    }

    async fn fetch_to(&self, path: &Path, row: &Row, told: &Told<'_>) -> Result<()> {
        let (place, content) = (&self.place, &row.file.content);
        let tell = |bytes| told.add(bytes);
        fetch_file(&self.env, place, &row.object, content, path, tell).await?;
        self.note(row, true);
        Ok(())
    }

    /// Removes a file if it is there.
    fn remove(&self, path: &Path) -> Result<()> {
        match self.env.disk.remove(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => at_file("remove", path, |_| removed),
        }
    }

    fn sync_dirs(&self, dir: &Path, folders: &[&str]) -> Result<()> {
        let sync = |folder: &Path| self.env.disk.sync_dir(folder);
        let mut folders = folders.iter().map(|folder| match *folder {
            "" => dir.to_owned(),
            folder => dir.join(folder),
        });
        folders.try_for_each(|folder| at_file("sync", &folder, sync))
    }
}

/// What `work` answers; `None` if `is_given_up` says so before.
async fn unless<T>(is_given_up: impl Fn() -> bool, work: impl Future<Output = T>) -> Option<T> {
    let given_up = async {
        while !is_given_up() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match select(pin!(work), pin!(given_up)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// Refuses files of a database that keeps its log in its directory.
pub(super) fn refuse_log(files: &[String], dir: &Path) -> Result<()> {
    if files.iter().any(|path| is_log(path)) {
        let dir = dir.to_owned();
        return Err(CheckpointError::LocalLog { dir });
    }
    Ok(())
}

/// Whether a file of a database is one of its log.
pub(super) fn is_log(path: &str) -> bool {
    path.split('/').next() == Some(names::LOG)
}

/// Does something with a local file.
pub(super) fn at_file<T>(
    doing: &'static str,
    path: &Path,
    work: impl FnOnce(&Path) -> std::io::Result<T>,
) -> Result<T> {
    work(path).map_err(|source| {
        let path = path.to_owned();
        let error = Error::File {
            doing,
            path,
            source,
        };
        error.into()
    })
}
