//! What checkpoints upload, and how much log is worth the next one.
//!
//! A checkpoint uploads part of what it holds whatever the length of the log behind it: rows of
//! series, small blocks, its listing. So the more it uploads, the more log the next one waits for:
//! on average checkpoints upload at most twice the bytes of the log, as long as what they upload
//! for each byte of it is less than [`AIM_HALVES`] halves. Otherwise no interval helps, and the
//! longest one is taken.
//!
//! Tested below, and with databases by `tests/tablet/uploads.rs`.

use parking_lot::Mutex;

/// The shortest log that is worth a checkpoint.
const LEAST_BYTES: u64 = 32 << 20;
/// The longest is this part of what the log may hold: the rest is for an object store that is away.
const MOST_SHARE: u64 = 8;
/// Checkpoints are to upload this many halves of the bytes of the log: less than twice as much, as
/// some upload more than expected.
const AIM_HALVES: u64 = 3;

/// Bytes that the checkpoints of this process upload.
#[derive(Debug, Default)]
pub struct Uploads(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    total: u64,
    /// What `total` was when the last checkpoint was saved.
    saved: u64,
    /// A mean of checkpoints in which each next one weighs half.
    usual: u64,
}

impl Uploads {
    /// Counts an object that was uploaded.
    pub(super) fn add(&self, bytes: u64) {
        self.0.lock().total += bytes;
    }

    /// Takes note that everything since the last call was uploaded for one checkpoint.
    pub(crate) fn end_checkpoint(&self) {
        let mut counted = self.0.lock();
        let now = counted.total - counted.saved;
        counted.usual = (counted.usual + now) / 2;
        counted.saved = counted.total;
    }

    /// Bytes uploaded since the start, for checkpoints that failed too.
    pub fn total_bytes(&self) -> u64 {
        self.0.lock().total
    }

    /// Bytes of log after which the next checkpoint is due, if the log may hold `bound_bytes`.
    pub fn interval_bytes(&self, bound_bytes: u64) -> u64 {
        let most = bound_bytes / MOST_SHARE;
        let wanted = self.0.lock().usual / AIM_HALVES * 2;
        wanted.max(LEAST_BYTES).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: u64 = 4 << 30;

    /// Uploaded and log bytes of the last 50 of 100 checkpoints, each of which uploads `fixed`
    /// bytes and that many hundredths of the log; every tenth also `more`.
    fn run(fixed: u64, percent: u64, more: u64) -> (u64, u64) {
        let uploads = Uploads::default();
        let (mut uploaded, mut logged) = (0, 0);
        for round in 0..100 {
            let log = uploads.interval_bytes(BOUND);
            assert!((LEAST_BYTES..=BOUND / 8).contains(&log), "{log}");
            let extra = if round % 10 == 0 { more } else { 0 };
            let bytes = fixed + log * percent / 100 + extra;
            // In two parts, one of which belonged to an attempt that failed.
            uploads.add(bytes / 3);
            uploads.add(bytes - bytes / 3);
            uploads.end_checkpoint();
            if round >= 50 {
                (uploaded, logged) = (uploaded + bytes, logged + log);
            }
        }
        assert!(uploads.total_bytes() >= uploaded);
        (uploaded, logged)
    }

    #[test]
    fn checkpoints_upload_at_most_twice_the_log() {
        for fixed in [0, 1, 30, 60, 200, 400] {
            for percent in [0, 30, 60, 75] {
                for more in [0, 500] {
                    let (uploaded, logged) = run(fixed << 20, percent, more << 20);
                    let what = format!("{fixed} MiB, {percent} %, {more} MiB");
                    assert!(uploaded <= 2 * logged, "{what}: {uploaded} of {logged}");
                }
            }
        }
    }

    #[test]
    fn little_is_uploaded_often_and_far_too_much_at_the_longest_interval() {
        let (_, logged) = run(20 << 20, 50, 0);
        assert_eq!(logged, 50 * LEAST_BYTES);
        let (_, logged) = run(0, 200, 0);
        assert_eq!(logged, 50 * BOUND / 8);
    }

    #[test]
    fn a_log_with_a_low_bound_is_saved_before_it_is_met() {
        assert_eq!(Uploads::default().interval_bytes(8 << 20), 1 << 20);
    }
}
