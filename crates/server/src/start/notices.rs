//! What the engine tells the operator, on its way to the log.
//!
//! The engine tells it under locks that writers and INFO wait for, and standard
//! error may be a pipe whose reader stands still. So a sentence is queued, and
//! a thread that holds no lock writes it. Where the queue is full a sentence is
//! left out, and the log says how many were.
//!
//! Tested here and by `tests/resp/damage.rs`.

use latewood_engine::NoticeHook;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Sentences that wait at most. Of trouble that repeats the engine tells once a
/// minute, so that more wait only where the log is not read.
const WAITING_MAX: usize = 256;

/// The thread that writes; dropping it writes what waits and ends it.
pub(crate) struct Notices {
    /// `None` is the end.
    sender: SyncSender<Option<Sentence>>,
    left_out: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// What is written to the log.
struct Sentence {
    /// Nothing is written to the database any more.
    is_error: bool,
    text: String,
}

impl Notices {
    /// Hands every sentence to `log`, and whether it is an error, on a thread of its own.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(log: impl Fn(bool, &str) + Send + 'static) -> io::Result<Self> {
        let (sender, waiting) = sync_channel(WAITING_MAX);
        let left_out = Arc::new(AtomicU64::new(0));
        let missed = Arc::clone(&left_out);
        let write = move || write(&waiting, &missed, log);
        let thread = Builder::new().name("notices".to_owned()).spawn(write)?;
        Ok(Self {
            sender,
            left_out,
            thread: Some(thread),
        })
    }

    /// What takes sentences of the engine and never waits.
    pub(crate) fn hook(&self) -> NoticeHook {
        NoticeHook::new(self.hearer(false)).with_errors(self.hearer(true))
    }

    fn hearer(&self, is_error: bool) -> impl Fn(&str) + Send + Sync + use<> {
        let (sender, left_out) = (self.sender.clone(), Arc::clone(&self.left_out));
        move |text| {
            let text = text.to_owned();
            if sender.try_send(Some(Sentence { is_error, text })).is_err() {
                left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        // It fails where the thread is gone, and nothing waits then.
        let _ = self.sender.send(None);
        if let Some(thread) = self.thread.take() {
            // The process ends; a log that panicked has nobody to tell.
            let _ = thread.join();
        }
    }
}

fn write(waiting: &Receiver<Option<Sentence>>, left_out: &AtomicU64, log: impl Fn(bool, &str)) {
    let mut is_over = false;
    while !is_over {
        match waiting.recv() {
            Ok(Some(sentence)) => log(sentence.is_error, &sentence.text),
            _ => is_over = true,
        }
        let count = left_out.swap(0, Ordering::Relaxed);
        if count > 0 {
            let text = format!("{count} warnings are missing here: the log took no more");
            log(false, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[test]
    fn nobody_waits_for_a_log_that_stands_still() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&written);
        let notices = Notices::start(move |_, sentence| log.lock().push(sentence.to_owned()));
        let notices = notices.unwrap();
        let tell = notices.hearer(false);
        let still = written.lock();
        // One may be on its way to the log already.
        let told = WAITING_MAX + 1 + 5;
        (0..told).for_each(|at| tell(&format!("sentence {at}")));
        drop(still);
        drop(notices);
        let lines = written.lock();
        let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
        let left_out = lines.iter().filter_map(|line| {
            let (count, _) = line.split_once(" warnings are missing")?;
            count.parse::<usize>().ok()
        });
        let left_out: usize = left_out.sum();
        assert!(
            count("sentence") >= WAITING_MAX && left_out >= 5,
            "{lines:?}"
        );
        assert_eq!(count("sentence") + left_out, told);
    }

    #[test]
    fn what_was_told_last_is_written_before_the_end() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&written);
        let notices = Notices::start(move |_, sentence| log.lock().push(sentence.to_owned()));
        let notices = notices.unwrap();
        let tell = notices.hearer(false);
        tell("writes stopped");
        drop(notices);
        assert_eq!(*written.lock(), ["writes stopped"]);
    }
}
