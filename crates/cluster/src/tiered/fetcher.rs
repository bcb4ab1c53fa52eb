//! The blocks of a tablet, and the threads that fetch those that are not on this machine.
//!
//! A thread starts when there is something to fetch and ends when there is nothing left. A file
//! that may come later goes to the end of those that nobody asked for, until it does: a wait that
//! ended leaves it on its way, and it keeps no other from coming.
//!
//! Invariant: a block has its place among the files until its name is removed. While it is here,
//! its name below stands for its bytes.

use super::cached::{Cached, Failed};
use super::room::Room;
use crate::checkpoint::{Objects, Row, UNFINISHED};
use crate::retry::Retry;
use latewood_engine::io::{Disk, File};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Files fetched at a time.
const THREADS: usize = 4;
/// Of those, files that nobody asked for.
const THREADS_LATER: usize = 2;
/// How often it is said that blocks do not come yet.
const WARN_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) objects: Objects,
    retry: Retry,
    wait_max: OnceLock<Duration>,
    /// By their names; a checkpoint that is being gathered may have second ones.
    pub(super) files: Mutex<BTreeMap<PathBuf, Arc<Cached>>>,
    pub(super) queue: Mutex<Queue>,
    pub(super) room: Room,
    /// Counts uses of blocks.
    uses: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    asked: VecDeque<Arc<Cached>>,
    pub(super) later: VecDeque<Arc<Cached>>,
    running: usize,
    running_later: usize,
    /// The limit was changed: the next thread makes room first.
    is_room_wanted: bool,
    /// A failure to fetch a file that nobody asked for was logged: later ones are not.
    has_failed: bool,
    /// When it was said that blocks do not come yet.
    warned: Option<Instant>,
    threads: Vec<JoinHandle<()>>,
    is_stopped: bool,
}

impl Fetcher {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        objects: Objects,
        retry: Retry,
        files: BTreeMap<PathBuf, Arc<Cached>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            disk,
            objects,
            retry,
            wait_max: OnceLock::new(),
            files: Mutex::new(files),
            queue: Mutex::default(),
            room: Room::default(),
            uses: AtomicU64::default(),
        })
    }

    /// How long a reader waits for a file; `None` is as long as it takes.
    pub(super) fn wait_max(&self) -> Option<Duration> {
        self.wait_max.get().copied()
    }

    /// Whether the start is over.
    pub(super) fn is_running(&self) -> bool {
        self.wait_max().is_some()
    }

    /// A number above all before.
    pub(super) fn now(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn limit_waits(&self, wait: Duration) {
        self.wait_max.get_or_init(|| wait);
    }

    /// Whether nobody fetches anything any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.retry.cancel.is_cancelled() || self.queue.lock().is_stopped
    }

    /// The object of a file in messages.
    pub(super) fn call(&self, away: &Cached) -> String {
        away.row()
            .map_or_else(String::new, |row| self.objects.call(&row))
    }

    /// The names of blocks in a folder.
    pub(super) fn names_in(&self, folder: &Path) -> Vec<String> {
        let files = self.files.lock();
        let inside = files.keys().filter(|path| path.parent() == Some(folder));
        let names = inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        names.collect()
    }

    fn find(&self, path: &Path) -> Option<Arc<Cached>> {
        self.files.lock().get(path).cloned()
    }

    /// The block of this name; `None` if it is none, and is to be opened as any file.
    pub(super) fn open(&self, path: &Path, is_block: bool) -> io::Result<Option<Arc<Cached>>> {
        let mut files = self.files.lock();
        if let Some(cached) = files.get(path) {
            return Ok(Some(Arc::clone(cached)));
        }
        if !is_block {
            return Ok(None);
        }
        let cached = Arc::new(Cached::here(path.to_owned(), self.disk.open(path)?)?);
        cached.note_use(self.now());
        files.insert(path.to_owned(), Arc::clone(&cached));
        Ok(Some(cached))
    }

    /// Gives a file a second name. A block that is not here has one only where `may_be_away`.
    pub(super) fn link(&self, from: &Path, to: &Path, may_be_away: bool) -> io::Result<()> {
        let mut files = self.files.lock();
        match files.get(from).cloned() {
            Some(away) if !away.is_here() => {
                if !may_be_away {
                    return Err(ErrorKind::WouldBlock.into());
                }
                files.insert(to.to_owned(), away);
                Ok(())
            }
            // It must not leave meanwhile.
            _ => self.disk.link(from, to),
        }
    }

    /// Gives the file of a block another name, under which it is none.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files.lock();
        self.disk.rename(from, to)?;
        files.remove(from);
        Ok(())
    }

    /// Removes the name of a block; false if there is none.
    pub(super) fn remove(&self, path: &Path) -> io::Result<bool> {
        let mut files = self.files.lock();
        let Some(cached) = files.get(path) else {
            return Ok(false);
        };
        if cached.path == path {
            match self.disk.remove(path) {
                // It is not here.
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        files.remove(path);
        Ok(true)
    }

    /// The blocks, each once.
    pub(super) fn blocks(&self) -> Vec<Arc<Cached>> {
        let files = self.files.lock();
        let blocks = files.iter().filter(|(path, cached)| **path == cached.path);
        blocks.map(|(_, cached)| Arc::clone(cached)).collect()
    }

    pub(super) fn away_bytes(&self) -> u64 {
        let blocks = self.blocks().into_iter();
        let away = blocks.filter(|cached| !cached.is_here() && !cached.is_held());
        away.map(|away| away.len_bytes).sum()
    }

    /// Has a file fetched soon.
    pub(super) fn ask(self: &Arc<Self>, away: &Arc<Cached>) {
        let mut queue = self.queue.lock();
        if !queue.asked.iter().any(|asked| Arc::ptr_eq(asked, away)) {
            queue.asked.push_back(Arc::clone(away));
        }
        self.start_thread(&mut queue);
    }

    /// Fetches the files that are away in this order, then the others, in the background. Skips
    /// files that cannot be fetched, and those for which others would have to leave.
    pub(super) fn fetch_later(self: &Arc<Self>, order: &[PathBuf]) {
        let files = self.files.lock();
        let first = order.iter().filter_map(|path| files.get(path));
        let all = first.chain(files.values()).cloned();
        let all: VecDeque<_> = all.filter(|cached| !cached.is_here()).collect();
        drop(files);
        all.iter().for_each(|away| away.try_again());
        let mut queue = self.queue.lock();
        queue.later = all;
        queue.has_failed = false;
        for _ in 0..THREADS_LATER {
            self.start_thread(&mut queue);
        }
    }

    /// Has a thread make room soon.
    pub(super) fn make_room_later(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        queue.is_room_wanted = true;
        self.start_thread(&mut queue);
    }

    fn start_thread(self: &Arc<Self>, queue: &mut Queue) {
        if queue.is_stopped || queue.running == THREADS {
            return;
        }
        let fetcher = Arc::clone(self);
        let thread = std::thread::Builder::new().name("latewood-fetch".to_owned());
        match thread.spawn(move || fetcher.run()) {
            Ok(thread) => {
                queue.running += 1;
                queue.threads.retain(|thread| !thread.is_finished());
                queue.threads.push(thread);
            }
            // The next who asks tries again.
            Err(error) => tracing::error!(%error, "cannot start a thread that fetches blocks"),
        }
    }

    /// Fetches one file after the other until there are no more.
    fn run(&self) {
        let mut pauses = self.retry.pauses("cannot fetch blocks");
        let mut is_later = false;
        loop {
            let mut queue = self.queue.lock();
            queue.running_later -= usize::from(std::mem::take(&mut is_later));
            if std::mem::take(&mut queue.is_room_wanted) {
                drop(queue);
                self.make_room();
                continue;
            }
            let Some((away, later)) = queue.next() else {
                queue.running -= 1;
                return;
            };
            queue.running_later += usize::from(later);
            is_later = later;
            drop(queue);
            let begins = if later {
                self.is_named(&away) && self.begin_later(&away)
            } else {
                away.begin()
            };
            if !begins {
                continue;
            }
            let fetched = catch_unwind(AssertUnwindSafe(|| self.fetch(&away)));
            let fetched = fetched.unwrap_or_else(|_| {
                let text = "the thread that fetches it panicked";
                Err(Failed::Refused(text.to_owned()))
            });
            let failed = away.end(fetched, self.retry.longest);
            match failed {
                None => pauses = self.retry.pauses("cannot fetch blocks"),
                Some(Failed::Later(error)) => {
                    if self.queue.lock().put_back(away) {
                        tracing::warn!(error, "cannot fetch a block yet");
                    }
                    // Its end is seen by whoever fetches next.
                    let _ = pauses.wait();
                }
                Some(failed) => {
                    let mut queue = self.queue.lock();
                    let is_new = !later || !std::mem::replace(&mut queue.has_failed, true);
                    if is_new && (matches!(failed, Failed::Lost(_)) || queue.is_due()) {
                        tracing::error!(error = failed.text(), "cannot fetch a block");
                    }
                }
            }
        }
    }

    /// Whether a file that is away has a name: else only who holds it can read it.
    fn is_named(&self, away: &Arc<Cached>) -> bool {
        let files = self.files.lock();
        files.contains_key(&away.path) || files.values().any(|named| Arc::ptr_eq(named, away))
    }

    fn fetch(&self, away: &Cached) -> Result<Arc<dyn File>, Failed> {
        let Some(row) = away.row() else {
            return Err(Failed::Refused("no checkpoint names it".to_owned()));
        };
        if away.is_held()
            && let Some(verified) = self.verify(away, &row)?
        {
            return Ok(verified);
        }
        self.make_room_at_once();
        let mut unfinished = away.path.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        let done = self
            .objects
            .download_row(&row, &unfinished, || self.is_given_up());
        let error = match done {
            Ok(true) => {
                let refused = |error| format!("{}: {error}", away.path.display());
                let arrived = self.arrive(away, &unfinished);
                return arrived.map_err(|error| Failed::Refused(refused(error)));
            }
            Ok(false) => return Err(given_up()),
            Err(error) => error,
        };
        let called = self.call(away);
        let mut text = error.to_string();
        if !text.contains(&called) {
            text = format!("{called}: {text}");
        }
        // A start assumes nothing of what it cannot read.
        Err(if error.is_damage() && self.is_running() {
            Failed::Lost(text)
        } else if error.is_temporary() && !error.is_damage() {
            Failed::Later(text)
        } else {
            Failed::Refused(text)
        })
    }

    /// The file that was there at the start, if it has the right bytes.
    fn verify(&self, away: &Cached, row: &Row) -> Result<Option<Arc<dyn File>>, Failed> {
        // Opened first: its name may be removed meanwhile.
        let opened = self.disk.open(&away.path);
        let held = self.objects.holds(&away.path, row, || self.is_given_up());
        let is_right = held.map_err(|error| Failed::Later(error.to_string()))?;
        match (opened, is_right) {
            (_, None) => Err(given_up()),
            (Ok(file), Some(true)) => Ok(Some(file)),
            _ => {
                if self.find(&away.path).is_some() {
                    let path = away.path.display();
                    tracing::warn!(%path, "a file of the cache is damaged, and is fetched again");
                }
                away.is_not_held();
                Ok(None)
            }
        }
    }

    /// Gives a file its name, unless that was removed.
    fn arrive(&self, away: &Cached, unfinished: &Path) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(unfinished)?;
        let files = self.files.lock();
        if files.contains_key(&away.path) {
            self.disk.rename(unfinished, &away.path)?;
        } else {
            self.disk.remove(unfinished)?;
        }
        Ok(file)
    }

    /// Fetches nothing more, and waits for the threads.
    pub(super) fn stop(&self) {
        self.retry.cancel.cancel();
        let mut queue = self.queue.lock();
        queue.is_stopped = true;
        queue.asked.clear();
        queue.later.clear();
        let threads = std::mem::take(&mut queue.threads);
        drop(queue);
        for thread in threads {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn given_up() -> Failed {
    Failed::Later("the database is given up".to_owned())
}

impl Queue {
    /// The next file to fetch, and whether nobody asked for it.
    fn next(&mut self) -> Option<(Arc<Cached>, bool)> {
        if self.is_stopped {
            return None;
        }
        if let Some(away) = self.asked.pop_front() {
            return Some((away, false));
        }
        if self.running_later >= THREADS_LATER {
            return None;
        }
        self.later.pop_front().map(|away| (away, true))
    }

    /// Leaves a file for another attempt. Returns whether that should be logged. Readers that wait
    /// for the file ask for it again.
    fn put_back(&mut self, away: Arc<Cached>) -> bool {
        if !self.later.iter().any(|later| Arc::ptr_eq(later, &away)) {
            self.later.push_back(away);
        }
        self.is_due()
    }

    /// Whether what is said again and again is to be said now.
    fn is_due(&mut self) -> bool {
        let is_due = self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if is_due {
            self.warned = Some(Instant::now());
        }
        is_due && !self.is_stopped
    }
}
