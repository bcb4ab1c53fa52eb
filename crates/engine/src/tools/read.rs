//! Reading the manifest, files and names of a database directory.

use crate::base::error::{Error, Result};
use crate::base::names;
use crate::io::Env;
use crate::storage::files::Manifest;
use std::io::ErrorKind as IoKind;
use std::path::Path;

/// No manifest is longer: one names some hundred bytes for each file.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// The bytes of the manifest of `dir`, if there is one.
pub(super) fn manifest_bytes(env: &Env, dir: &Path) -> Result<Option<Vec<u8>>> {
    let path = dir.join(names::MANIFEST);
    match read_whole(env, &path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == IoKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("cannot read the manifest", &path, error)),
    }
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

pub(super) fn read_whole(env: &Env, path: &Path) -> std::io::Result<Vec<u8>> {
    let file = env.disk.open(path)?;
    let len_bytes = file.len_bytes()?;
    if len_bytes > MANIFEST_BYTES_MAX {
        return Err(IoKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; len_bytes as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The names in a folder; none where there is no folder.
pub(super) fn list(env: &Env, dir: &Path) -> Result<Vec<String>> {
    match env.disk.list(dir) {
        Ok(names) => Ok(names),
        Err(error) if error.kind() == IoKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("cannot list a folder", dir, error)),
    }
}
