//! A disk on which the database is written to while it is being copied.

use crate::disk_support::{Layer, with_layer};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::io::{Disk, Env, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fmt, io};

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
    let layer = Disturbed {
        links,
        disturbance: disturbance.clone(),
    };
    (with_layer(disk.env(1), layer), disturbance)
}

#[derive(Debug)]
struct Disturbed {
    links: bool,
    disturbance: Arc<Disturbance>,
}

impl Layer for Disturbed {
    fn create(&self, under: &dyn Disk, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        let file = under.create(path, len_bytes)?;
        self.disturbance.came(path);
        Ok(file)
    }

    fn link(&self, under: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
        if !self.links {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        under.link(from, to)?;
        self.disturbance.came(to);
        Ok(())
    }
}
