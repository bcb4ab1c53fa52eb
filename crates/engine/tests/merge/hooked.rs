//! A disk that runs a hook in the middle of a job.

use crate::disk_support::{Layer, with_layer};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::io::{Disk, Env, File};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{fmt, io};

type Event = Box<dyn FnOnce() + Send>;

/// What is to happen, and how many steps before. Steps are what is done to
/// files of one kind: their writer holds no lock that others wait for.
#[derive(Default)]
pub(crate) struct Hook {
    planned: Mutex<Option<(u64, Event)>>,
    steps: Mutex<u64>,
}

impl Hook {
    /// Plans one event.
    pub(crate) fn plan(&self, after: u64, event: impl FnOnce() + Send + 'static) {
        *self.planned.lock().unwrap() = Some((after, Box::new(event)));
        *self.steps.lock().unwrap() = 0;
    }

    /// Steps since the last plan, and whether what was planned did happen.
    pub(crate) fn outcome(&self) -> (u64, bool) {
        let happened = self.planned.lock().unwrap().is_none();
        (*self.steps.lock().unwrap(), happened)
    }

    fn step(&self) {
        let mut steps = self.steps.lock().unwrap();
        let passed = *steps;
        *steps += 1;
        drop(steps);
        let mut planned = self.planned.lock().unwrap();
        let event = planned.take_if(|(after, _)| *after == passed);
        drop(planned);
        if let Some((_, event)) = event {
            event();
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// The surroundings of `disk` with a hook at blocks.
pub(crate) fn hooked(disk: &SimDisk) -> (Env, Arc<Hook>) {
    hooked_at(disk, "blk")
}

/// The same at files with this suffix.
pub(crate) fn hooked_at(disk: &SimDisk, suffix: &'static str) -> (Env, Arc<Hook>) {
    let hook = Arc::new(Hook::default());
    let layer = Hooked {
        hook: hook.clone(),
        suffix,
    };
    (with_layer(disk.env(1), layer), hook)
}

#[derive(Debug)]
struct Hooked {
    hook: Arc<Hook>,
    suffix: &'static str,
}

#[derive(Debug)]
struct HookedFile {
    file: Arc<dyn File>,
    hook: Arc<Hook>,
}

impl Layer for Hooked {
    fn create(&self, under: &dyn Disk, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        let is_meant = path.extension().is_some_and(|suffix| suffix == self.suffix);
        if is_meant {
            self.hook.step();
        }
        let file = under.create(path, len_bytes)?;
        if !is_meant {
            return Ok(file);
        }
        let hook = self.hook.clone();
        Ok(Arc::new(HookedFile { file, hook }))
    }
}

impl File for HookedFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.hook.step();
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.hook.step();
        self.file.sync()
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        self.file.truncate(len_bytes)
    }
}
