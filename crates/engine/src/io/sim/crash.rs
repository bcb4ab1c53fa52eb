//! What is left of the disk by a power cut, and by a killed process.
//!
//! Both make another disk and leave this one as it is, so that a test can look
//! at many ends of one beginning.
//!
//! Invariant: what is durable is on every disk made here; a seed makes the same
//! disk each time. Tested by `tests/disk_sim.rs`.

use super::image::apply_change;
use super::{SimDisk, SimRandom, State};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

impl SimDisk {
    /// The disk as a power cut now would leave it; `seed` decides the fate of
    /// whatever is not durable.
    pub fn crash(&self, seed: u64) -> Self {
        let random = SimRandom::new(seed);
        let state = self.state.lock();
        let mut names = state.durable_names.clone();
        let mut directories = state.durable_directories.clone();
        // Journals commit in order, other file systems in any: try both.
        let in_order = random.below(2) == 0;
        let kept_until = random.below(state.changes.len() as u64 + 1);
        for (index, change) in state.changes.iter().enumerate() {
            let kept = if in_order {
                (index as u64) < kept_until
            } else {
                random.below(2) == 0
            };
            if kept {
                apply_change(&mut names, &mut directories, change);
            }
        }
        let whole = directories.clone();
        let is_reached = |path: &Path| {
            let mut above = path.ancestors().skip(1);
            above.all(|dir| dir.parent().is_none_or(|_| whole.contains(dir)))
        };
        directories.retain(|path| is_reached(path));
        names.retain(|path, _| is_reached(path));
        let files = state
            .files
            .iter()
            .filter(|(id, _)| names.values().any(|named| named == *id))
            .map(|(id, file)| (*id, file.crash(&random)))
            .collect();
        Self {
            state: Arc::new(Mutex::new(State {
                files,
                next_file: state.next_file,
                durable_directories: directories.clone(),
                directories,
                durable_names: names.clone(),
                names,
                ..State::default()
            })),
            ..Self::default()
        }
    }

    /// The disk as a killed process leaves it: all that was written is there,
    /// durable or not, and nobody holds a lock.
    pub fn kill(&self) -> Self {
        let state = self.state.lock();
        Self {
            state: Arc::new(Mutex::new(State {
                files: state.files.clone(),
                next_file: state.next_file,
                directories: state.directories.clone(),
                durable_directories: state.durable_directories.clone(),
                names: state.names.clone(),
                durable_names: state.durable_names.clone(),
                changes: state.changes.clone(),
                ..State::default()
            })),
            ..Self::default()
        }
    }
}
