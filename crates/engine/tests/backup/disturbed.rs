//! A disk on which the database is used while files come into a copy of it.

use latewood_engine::io::sim::SimDisk;
use latewood_engine::io::{DirectoryLock, Disk, Env, File};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Event = Box<dyn FnMut(u64) + Send>;

/// What happens after each file that came into the folder of the copy.
pub(crate) struct Disturbance {
    copy: PathBuf,
    event: Mutex<Option<Event>>,
    files: Mutex<u64>,
}

impl Disturbance {
    /// Has `event` happen from now on. It is told how many files came before
    /// and holds no lock that others wait for.
    pub(crate) fn plan(&self, event: impl FnMut(u64) + Send + 'static) {
        *self.event.lock().unwrap() = Some(Box::new(event));
    }

    /// How many files came; nothing happens any more.
    pub(crate) fn end(&self) -> u64 {
        *self.event.lock().unwrap() = None;
        *self.files.lock().unwrap()
    }

    fn came(&self, path: &Path) {
        if !path.starts_with(&self.copy) {
            return;
        }
        let mut files = self.files.lock().unwrap();
        let before = *files;
        *files += 1;
        drop(files);
        if let Some(event) = self.event.lock().unwrap().as_mut() {
            event(before);
        }
    }
}

impl fmt::Debug for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disturbance")
    }
}

/// The surroundings of `disk`, where what comes into the folder `copy` is
/// disturbed; whether files can have a second name.
pub(crate) fn disturbed(disk: &SimDisk, copy: &Path, links: bool) -> (Env, Arc<Disturbance>) {
    let disturbance = Arc::new(Disturbance {
        copy: copy.to_owned(),
        event: Mutex::new(None),
        files: Mutex::new(0),
    });
    let env = disk.env(1);
    let disk = Arc::new(Disturbed {
        disk: env.disk.clone(),
        links,
        disturbance: disturbance.clone(),
    });
    (Env { disk, ..env }, disturbance)
}

#[derive(Debug)]
struct Disturbed {
    disk: Arc<dyn Disk>,
    links: bool,
    disturbance: Arc<Disturbance>,
}

impl Disk for Disturbed {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.disk.open(path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.disk.open_to_write(path)
    }

    fn create(&self, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        let file = self.disk.create(path, len_bytes)?;
        self.disturbance.came(path);
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.links {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        self.disk.link(from, to)?;
        self.disturbance.came(to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.disk.lock(path)
    }
}
