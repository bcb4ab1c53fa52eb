//! The quarantine folder, which keeps damaged files for inspection.
//!
//! Data that fails its checksum is never served and never deleted: a whole file is
//! renamed into the quarantine folder; a damaged part of a file that is still needed
//! is copied there. Names tell the origin; a name in use gets a number appended.
//! Both are durable before they are reported. Tested below and by `tests/log_damage.rs`.

use crate::base::error::{Error, Result};
use crate::io::small::{self, Context, list_if_there, put_in_place, remove_if_there};
use crate::io::{Env, File};
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};

/// What a copy is called until it is whole.
const UNFINISHED: &str = "copy.new";
/// The list of what the operator has not accepted.
pub(crate) const UNACCEPTED: &str = "UNACCEPTED";

/// Whether a file in the folder is one that was damaged.
pub(crate) fn is_damaged(name: &str) -> bool {
    name != UNFINISHED && !name.starts_with(UNACCEPTED)
}

/// The folder that damaged files go to.
#[derive(Debug)]
pub(crate) struct Quarantine<'a> {
    env: &'a Env,
    dir: &'a Path,
}

impl<'a> Quarantine<'a> {
    /// The folder `dir`, made at the first use.
    pub(crate) fn new(env: &'a Env, dir: &'a Path) -> Self {
        Self { env, dir }
    }

    /// Moves the file at `path` here; the name it has now.
    ///
    /// # Errors
    /// `Io`; then it is still where it was, or here.
    pub(crate) fn take(&self, path: &Path) -> Result<String> {
        let failed = |error| Error::io("cannot move a damaged file into quarantine", path, error);
        let disk = &self.env.disk;
        disk.create_dir_all(self.dir).map_err(failed)?;
        let name = self.free_name(&file_name(path)).map_err(failed)?;
        disk.rename(path, &self.dir.join(&name)).map_err(failed)?;
        disk.sync_dir(self.dir).map_err(failed)?;
        if let Some(parent) = path.parent() {
            disk.sync_dir(parent).map_err(failed)?;
        }
        Ok(name)
    }

    /// Gives the file at `path` a name here too, by a link or a copy; the name.
    /// For files that never share a name with another: one that is held here
    /// already is the same.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn keep(&self, path: &Path) -> Result<String> {
        let failed = |error| Error::io("cannot keep a damaged file in quarantine", path, error);
        let disk = &self.env.disk;
        disk.create_dir_all(self.dir).map_err(failed)?;
        let name = file_name(path);
        match disk.link(path, &self.dir.join(&name)) {
            Ok(()) => disk.sync_dir(self.dir).map_err(failed)?,
            Err(error) if error.kind() == IoKind::AlreadyExists => {}
            Err(_) => {
                let file = disk.open(path).map_err(failed)?;
                let len_bytes = file.len_bytes().map_err(failed)?;
                self.copy_as(&*file, &name, 0, len_bytes).map_err(failed)?;
            }
        }
        Ok(name)
    }

    /// Copies `len_bytes` of `file`, which is at `path`, from `offset` on; the
    /// name of the copy. A stretch that was copied before is left as it is.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn copy(
        &self,
        file: &dyn File,
        path: &Path,
        offset: u64,
        len_bytes: u64,
    ) -> Result<String> {
        let failed =
            |error| Error::io("cannot copy a damaged stretch into quarantine", path, error);
        let name = format!("{}.at-{offset}", file_name(path));
        self.copy_as(file, &name, offset, len_bytes)
            .map_err(failed)?;
        Ok(name)
    }

    fn copy_as(&self, from: &dyn File, name: &str, offset: u64, len: u64) -> std::io::Result<()> {
        let disk = &self.env.disk;
        disk.create_dir_all(self.dir)?;
        if disk.list(self.dir)?.iter().any(|held| held == name) {
            return Ok(());
        }
        let unfinished = self.dir.join(UNFINISHED);
        remove_if_there(&**disk, &unfinished)?;
        let to = disk.create(&unfinished, 0)?;
        small::copy(from, offset, len, &*to)?;
        put_in_place(&**disk, self.dir, UNFINISHED, name)
    }

    /// `name`, or the first of `name.1`, `name.2` and so on that is free.
    fn free_name(&self, name: &str) -> std::io::Result<String> {
        let held = self.env.disk.list(self.dir)?;
        let is_free = |name: &String| !held.contains(name);
        let numbered = (1_u64..).map(|number| format!("{name}.{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        Ok(names.find(is_free).unwrap_or_else(|| name.to_owned()))
    }

    /// Bytes of what is held here.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn len_bytes(&self) -> Result<u64> {
        let disk = &self.env.disk;
        let len_bytes = |name: String| {
            let path = self.dir.join(name);
            let found = disk.open(&path).and_then(|file| file.len_bytes());
            found.context("cannot read a quarantined file", &path)
        };
        self.held()?.into_iter().map(len_bytes).sum()
    }

    /// The names of what is held here.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn held(&self) -> Result<Vec<String>> {
        let names = list_if_there(&*self.env.disk, self.dir);
        let mut names = names.context("cannot list the quarantine", self.dir)?;
        names.retain(|name| is_damaged(name));
        Ok(names)
    }
}

fn file_name(path: &Path) -> String {
    let name: PathBuf = path.file_name().map(PathBuf::from).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::io::sim::SimDisk;

    #[test]
    fn files_move_and_stretches_are_copied_once() {
        let disk = SimDisk::new();
        let env = disk.env(1);
        let (data, dir) = (Path::new("/db/blocks"), Path::new("/db/quarantine"));
        disk.create_dir_all(data).unwrap();
        let quarantine = Quarantine::new(&env, dir);
        assert!(quarantine.held().unwrap().is_empty());
        for expected in ["a.blk", "a.blk.1", "a.blk.2"] {
            let file = disk.create(&data.join("a.blk"), 0).unwrap();
            file.write_at(expected.as_bytes(), 0).unwrap();
            file.sync().unwrap();
            disk.sync_dir(data).unwrap();
            assert_eq!(quarantine.take(&data.join("a.blk")).unwrap(), expected);
        }
        let file = disk.create(&data.join("b.wal"), 0).unwrap();
        file.write_at(b"0123456789", 0).unwrap();
        for _ in 0..2 {
            let name = quarantine.copy(&*file, &data.join("b.wal"), 3, 4);
            assert_eq!(name.unwrap(), "b.wal.at-3");
        }
        let crashed = disk.crash(7);
        assert_eq!(crashed.bytes(&dir.join("b.wal.at-3")).unwrap(), b"3456");
        assert_eq!(crashed.bytes(&dir.join("a.blk.2")).unwrap(), b"a.blk.2");
        let env = crashed.env(2);
        let held = Quarantine::new(&env, dir).held().unwrap();
        assert_eq!(held, ["a.blk", "a.blk.1", "a.blk.2", "b.wal.at-3"]);
    }
}
