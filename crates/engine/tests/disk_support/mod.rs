//! A disk that wraps another and overrides a few operations.

use latewood_engine::io::{DirectoryLock, Disk, Env, File};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What is done otherwise than on the disk `under` it.
pub(crate) trait Layer: Send + Sync + Debug + 'static {
    fn open_to_write(&self, under: &dyn Disk, path: &Path) -> io::Result<Arc<dyn File>> {
        under.open_to_write(path)
    }

    fn create(&self, under: &dyn Disk, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        under.create(path, len_bytes)
    }

    fn link(&self, under: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
        under.link(from, to)
    }
}

/// `env` with `layer` over its disk.
pub(crate) fn with_layer(env: Env, layer: impl Layer) -> Env {
    let under = env.disk;
    let disk = Arc::new(Layered { under, layer });
    Env { disk, ..env }
}

#[derive(Debug)]
struct Layered<L> {
    under: Arc<dyn Disk>,
    layer: L,
}

impl<L: Layer> Disk for Layered<L> {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.under.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.under.list(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.under.open(path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.layer.open_to_write(&*self.under, path)
    }

    fn create(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        self.layer.create(&*self.under, path, len_bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.under.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.layer.link(&*self.under, from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.under.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.under.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.under.lock(path)
    }
}
