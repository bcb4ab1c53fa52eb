//! The times at which groups are evaluated: every interval, each group by an offset of its own, as
//! Prometheus spreads them. The same group has the same times after a restart, and in Prometheus.

use xxhash_rust::xxh64::xxh64;

const NS_PER_MS: u64 = 1_000_000;

/// The times of one group. Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    interval_ms: i64,
    offset_ms: i64,
}

impl Grid {
    /// That of a group in a file.
    pub(super) fn new(file: &str, group: &str, interval_ms: i64) -> Self {
        let interval_ns = interval_ms.unsigned_abs().saturating_mul(NS_PER_MS).max(1);
        let offset_ns = hash(file, group) % interval_ns;
        Self {
            interval_ms,
            offset_ms: (offset_ns / NS_PER_MS) as i64,
        }
    }

    pub(super) fn interval_ms(&self) -> i64 {
        self.interval_ms
    }

    /// The first time after `now_ms`.
    pub(super) fn after(&self, now_ms: i64) -> i64 {
        let since = (now_ms - self.offset_ms).rem_euclid(self.interval_ms);
        now_ms - since + self.interval_ms
    }

    /// The newest time at or before `now_ms` if `due_ms` is the oldest that was not evaluated, and
    /// how many before it are missed.
    pub(super) fn newest(&self, due_ms: i64, now_ms: i64) -> (i64, u64) {
        let missed = ((now_ms - due_ms) / self.interval_ms).max(0);
        (due_ms + missed * self.interval_ms, missed.unsigned_abs())
    }
}

/// The hash of the labels `file` and `name`, as Prometheus lays them out.
fn hash(file: &str, name: &str) -> u64 {
    let mut bytes = Vec::new();
    for part in ["file", file, "name", name] {
        match u8::try_from(part.len()) {
            Ok(length) if length < u8::MAX => bytes.push(length),
            _ => {
                bytes.push(u8::MAX);
                bytes.extend_from_slice(&part.len().to_le_bytes()[..3]);
            }
        }
        bytes.extend_from_slice(part.as_bytes());
    }
    xxh64(&bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_times_that_prometheus_gives_it() {
        // Computed by labels.Labels.Hash of Prometheus 3.16.
        assert_eq!(hash("rules.yml", "machines"), 17_997_303_048_144_789_722);
    }

    #[test]
    fn times_follow_each_other_and_none_is_there_twice() {
        let grid = Grid {
            interval_ms: 1000,
            offset_ms: 300,
        };
        assert_eq!(grid.after(1_299), 1_300);
        assert_eq!(grid.after(1_300), 2_300);
        assert_eq!(grid.after(100), 300);
        assert_eq!(grid.newest(1_300, 1_300), (1_300, 0));
        assert_eq!(grid.newest(1_300, 2_299), (1_300, 0));
        assert_eq!(grid.newest(1_300, 4_300), (4_300, 3));
        // The clock went back.
        assert_eq!(grid.newest(1_300, 0), (1_300, 0));
    }
}
