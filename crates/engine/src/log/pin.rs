//! Keeping a log still while it is copied.
//!
//! A pinned log goes on growing and being trimmed, but no segment is given
//! back: those that held groups at the pin go on holding them under their
//! names until the last pin is gone. What is pinned is the log as it is at that
//! moment: the headers of later segments may say that groups in it are needed
//! no more.

use crate::log::writer::LocalLog;
use std::path::PathBuf;

/// While it lives, no segment is used again or removed.
#[derive(Debug)]
pub(crate) struct LogPin<'a> {
    log: &'a LocalLog,
    segments: Vec<(PathBuf, u64)>,
}

impl LocalLog {
    pub(crate) fn pin(&self) -> LogPin<'_> {
        let mut tail = self.tail.lock();
        tail.pins += 1;
        let last = tail.segments.len().saturating_sub(1);
        let segments = tail.segments.iter().enumerate();
        let used = segments.map(|(index, segment)| {
            let path = self.store.path(segment.number);
            if index == last {
                (path, tail.offset)
            } else {
                (path, segment.len_bytes)
            }
        });
        LogPin {
            log: self,
            segments: used.collect(),
        }
    }
}

impl LogPin<'_> {
    /// The segments, oldest first, and how many of their first bytes hold
    /// everything written before the pin. Those bytes do not change any more.
    pub(crate) fn segments(&self) -> &[(PathBuf, u64)] {
        &self.segments
    }
}

impl Drop for LogPin<'_> {
    fn drop(&mut self) {
        self.log.tail.lock().pins -= 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::base::error::Result;
    use crate::io::sim::SimDisk;
    use crate::log::record::RecordIter;
    use crate::log::{GroupBuilder, Log, LogOptions, Position, Replay};
    use latewood_model::{DuplicatePolicy, SeriesId};
    use std::path::Path;

    struct Nothing;

    impl Replay for Nothing {
        fn workers(&self) -> usize {
            1
        }

        fn apply(&self, _: usize, _: Position, _: RecordIter<'_>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pinned_segments_are_nothing_that_goes() {
        let options = LogOptions {
            segment_bytes: 64 * 1024,
            ..LogOptions::default()
        };
        let env = SimDisk::new().env(1);
        let (log, _) = Log::open(&env, Path::new("/wal"), &options, &Nothing).unwrap();
        while log.stats().segments < 4 {
            let mut group = GroupBuilder::new();
            group.begin(0);
            for at in 0..1_000 {
                let value = (at as f64 + 0.1).sqrt();
                group.sample(SeriesId(0), at, value, DuplicatePolicy::Last);
            }
            log.append(&mut group).unwrap();
        }
        log.trim(log.written()).unwrap();
        assert!(log.stats().bytes_given_up >= 2 * 64 * 1024);
        let pin = log.pin();
        assert_eq!(log.stats().bytes_given_up, 0);
        drop(pin);
        assert!(log.stats().bytes_given_up >= 2 * 64 * 1024);
    }
}
