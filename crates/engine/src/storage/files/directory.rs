//! The manifest, blocks and series files of a database directory: found at open,
//! written at each publication, removed if no manifest names them.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::io::Env;
use crate::io::small::{self, Context, list_if_there, put_in_place};
use crate::storage::files::manifest::Manifest;
use crate::storage::files::table::{FilesFound, ManifestFound};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum size of a manifest: it has a few dozen bytes for each file of a
/// database.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// The manifest and the files of a directory, as found.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    pub(crate) manifest: ManifestFound,
    pub(crate) files: FilesFound,
    /// The manifest that was found, or that of a new directory.
    pub(crate) contents: Manifest,
    /// Why the manifest cannot be read.
    pub(crate) fault: Option<(ErrorKind, String)>,
    /// The first file that is named but missing.
    pub(crate) missing: Option<PathBuf>,
    /// Greater than the number of every existing file.
    pub(crate) next_file: u64,
}

pub(crate) fn block_path(dir: &Path, number: u64) -> PathBuf {
    names::blocks_dir(dir).join(names::block(number))
}

pub(crate) fn series_file_path(dir: &Path, number: u64) -> PathBuf {
    names::series_dir(dir).join(names::series_file(number))
}

impl Directory {
    /// Reads the directory `dir`; creates missing folders, takes away what has a name for a while only, and
    /// changes nothing else.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn find(env: &Env, dir: &Path) -> Result<Self> {
        for folder in [names::blocks_dir(dir), names::series_dir(dir)] {
            let made = env.disk.create_dir_all(&folder);
            made.context("cannot create a data directory", &folder)?;
        }
        let there = list_if_there(&*env.disk, dir).context("cannot read", dir)?;
        for name in there.iter().filter(|name| names::is_parked_keys(name)) {
            // In the way of nobody if it stays.
            let _ = env.disk.remove(&dir.join(name));
        }
        Self::look(env, dir)
    }

    /// Whether its manifest has the first version.
    pub(crate) fn is_of_version_1(&self) -> bool {
        self.manifest == ManifestFound::Whole && self.contents.key_seed == 0
    }

    /// Reads the directory `dir`; changes nothing.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn look(env: &Env, dir: &Path) -> Result<Self> {
        let found = list(env, dir)?;
        let mut directory = Self {
            path: dir.to_owned(),
            manifest: ManifestFound::Absent,
            files: FilesFound::Named,
            contents: Manifest::default(),
            fault: None,
            missing: None,
            next_file: found
                .iter()
                .map(|(number, _)| number + 1)
                .max()
                .unwrap_or(1),
        };
        match read_manifest(env, dir)? {
            None if found.is_empty() => {}
            None => directory.files = FilesFound::Unnamed,
            Some(Ok(manifest)) => {
                directory.manifest = ManifestFound::Whole;
                let there: BTreeSet<&PathBuf> = found.iter().map(|(_, path)| path).collect();
                let mut named = paths(dir, &manifest).into_iter();
                directory.missing = named.find(|path| !there.contains(path));
                if directory.missing.is_some() {
                    directory.files = FilesFound::Missing;
                }
                directory.contents = manifest;
            }
            Some(Err(error)) => {
                directory.manifest = match error.kind() {
                    ErrorKind::Unsupported => ManifestFound::Unknown,
                    _ => ManifestFound::Damaged,
                };
                directory.fault = Some((error.kind(), error.to_string()));
            }
        }
        Ok(directory)
    }
}

/// The paths of all files that a manifest names.
pub(crate) fn paths(dir: &Path, manifest: &Manifest) -> Vec<PathBuf> {
    let blocks = manifest.blocks().map(|block| block_path(dir, block.number));
    let files = manifest.series_files();
    blocks
        .chain(files.map(|file| series_file_path(dir, file.number)))
        .collect()
}

/// All blocks and series files, named or not, with their numbers.
fn list(env: &Env, dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = list_folder(env, &names::blocks_dir(dir), names::parse_block)?;
    let files = list_folder(env, &names::series_dir(dir), names::parse_series_file)?;
    found.extend(files);
    Ok(found)
}

fn list_folder(
    env: &Env,
    folder: &Path,
    parse: impl Fn(&str) -> Option<u64>,
) -> Result<Vec<(u64, PathBuf)>> {
    let listed = list_if_there(&*env.disk, folder).context("cannot list the files", folder)?;
    let numbered = listed.into_iter().filter_map(|name| {
        let number = parse(&name).filter(|&number| number < u64::MAX)?;
        Some((number, folder.join(name)))
    });
    Ok(numbered.collect())
}

/// The manifest in `dir`, if it exists.
pub(crate) fn read_manifest(env: &Env, dir: &Path) -> Result<Option<Result<Manifest>>> {
    let path = dir.join(names::MANIFEST);
    match small::read_whole(&*env.disk, &path, MANIFEST_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let message = "the manifest is damaged: it is too long";
            Ok(Some(Err(Error::new(ErrorKind::Corrupt, message))))
        }
        read => {
            let bytes = small::if_there(read).context("cannot read the manifest", &path)?;
            Ok(bytes.map(|bytes| Manifest::decode(&bytes)))
        }
    }
}

/// Writes the next manifest under its temporary name, durably.
pub(crate) fn write_new(env: &Env, dir: &Path, manifest: &Manifest) -> Result<()> {
    let path = dir.join(names::MANIFEST_NEW);
    let written = small::write_new(&*env.disk, &path, &manifest.encode());
    written.context("cannot write the manifest", &path)
}

/// Renames the manifest that was written last, durably.
pub(crate) fn put_in_force(env: &Env, dir: &Path) -> Result<()> {
    let renamed = put_in_place(&*env.disk, dir, names::MANIFEST_NEW, names::MANIFEST);
    renamed.context("cannot rename the manifest", &dir.join(names::MANIFEST))
}

/// Removes the files that `manifest` does not name. Files that reappear after a
/// crash are found and removed again.
///
/// # Errors
/// `Io`.
pub(crate) fn sweep(env: &Env, dir: &Path, manifest: &Manifest) -> Result<()> {
    remove_if_there(env, &dir.join(names::MANIFEST_NEW))?;
    let named: BTreeSet<PathBuf> = paths(dir, manifest).into_iter().collect();
    let found = list(env, dir)?.into_iter();
    found
        .filter(|(_, path)| !named.contains(path))
        .try_for_each(|(_, path)| remove_if_there(env, &path))
}

/// Removes a file, if it exists.
pub(crate) fn remove_if_there(env: &Env, path: &Path) -> Result<()> {
    small::remove_if_there(&*env.disk, path).context("cannot remove a file", path)
}
