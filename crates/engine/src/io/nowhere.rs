//! A disk without files, for a database that keeps nothing.
//!
//! Every folder is empty and every other request is refused. Tested by
//! `tests/db_empty.rs`.

use super::{Disk, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// The disk; all of its operations but a listing fail.
#[derive(Debug)]
pub(crate) struct Nowhere;

fn refused<T>() -> io::Result<T> {
    Err(ErrorKind::Unsupported.into())
}

impl Disk for Nowhere {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn open(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        Err(ErrorKind::NotFound.into())
    }

    fn open_to_write(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        Err(ErrorKind::NotFound.into())
    }

    fn create(&self, _: &Path, _: u64) -> io::Result<Arc<dyn File>> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn super::DirectoryLock>> {
        refused()
    }
}
