//! The files of a folder and of all folders in it.

use std::fs;
use std::path::{Path, PathBuf};

/// All files below `dir`, in no order; what goes or cannot be read meanwhile is passed over.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let found = if is_folder { &mut folders } else { &mut files };
            found.push(entry.path());
        }
    }
    files
}
