//! Reading the manifest, files and names of a database directory.

use crate::base::error::Result;
use crate::base::names;
use crate::io::Env;
use crate::io::small::{Context, if_there, list_if_there, read_whole};
use crate::storage::files::Manifest;
use crate::storage::files::directory::MANIFEST_BYTES_MAX;
use std::path::Path;

/// The bytes of the manifest of `dir`, if there is one.
pub(super) fn manifest_bytes(env: &Env, dir: &Path) -> Result<Option<Vec<u8>>> {
    let path = dir.join(names::MANIFEST);
    let read = read_whole(&*env.disk, &path, MANIFEST_BYTES_MAX);
    if_there(read).context("cannot read the manifest", &path)
}

/// The manifest of `dir`, or that of an empty database if it has none.
pub(super) fn manifest_of(env: &Env, dir: &Path) -> Result<Manifest> {
    match manifest_bytes(env, dir)? {
        Some(bytes) => {
            let path = dir.join(names::MANIFEST);
            Manifest::decode(&bytes).map_err(|error| error.at(&path))
        }
        None => Ok(Manifest::default()),
    }
}

/// The names in a folder; none where there is no folder.
pub(super) fn list(env: &Env, dir: &Path) -> Result<Vec<String>> {
    list_if_there(&*env.disk, dir).context("cannot list a folder", dir)
}
