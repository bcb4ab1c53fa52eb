//! What nodes leave in folders, and what becomes of that.

use std::path::{Path, PathBuf};

/// Files below a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    let (dirs, mut paths): (Vec<_>, Vec<_>) = entries
        .map(|entry| entry.unwrap().path())
        .partition(|path| path.is_dir());
    paths.extend(dirs.iter().flat_map(|dir| files(dir)));
    paths
}

/// Turns the bits of the byte in the middle of each file whose name has this part.
pub(crate) fn damage(dir: &Path, part: &str) {
    let is_wanted = |path: &PathBuf| path.display().to_string().contains(part);
    let damaged: Vec<PathBuf> = files(dir).into_iter().filter(is_wanted).collect();
    assert!(!damaged.is_empty(), "{:?}", files(dir));
    for path in damaged {
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0xff;
        }
        std::fs::write(&path, bytes).unwrap();
    }
}

pub(crate) fn wipe(dir: &Path) {
    std::fs::remove_dir_all(dir).unwrap();
}
