//! Error replies by their code, the first word.
//!
//! Codes are few; those beyond a limit count together as `OTHER`, so that
//! nothing a client sends makes the table grow without end.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

const CODES_MAX: usize = 128;
const REST: &str = "OTHER";

/// Counts of error replies.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    total: AtomicU64,
    by_code: Mutex<BTreeMap<Box<str>, u64>>,
}

impl Errors {
    /// Notes `times` error replies with this text.
    #[cold]
    pub(crate) fn note(&self, text: &str, times: u64) {
        let code = text.split_once(' ').map_or(text, |(code, _)| code);
        self.total.fetch_add(times, Ordering::Relaxed);
        let mut by_code = self.by_code.lock();
        if let Some(count) = by_code.get_mut(code) {
            *count += times;
            return;
        }
        let code = if by_code.len() < CODES_MAX {
            code
        } else {
            REST
        };
        *by_code.entry(code.into()).or_default() += times;
    }

    /// All error replies.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Each code and its count.
    pub(crate) fn by_code(&self) -> BTreeMap<Box<str>, u64> {
        self.by_code.lock().clone()
    }

    /// Forgets everything.
    pub(crate) fn reset(&self) {
        self.by_code.lock().clear();
        self.total.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_counted_and_bounded() {
        let errors = Errors::default();
        errors.note("ERR no", 2);
        errors.note("NOAUTH Authentication required.", 1);
        errors.note("ALONE", 1);
        assert_eq!(errors.by_code()["ERR"], 2);
        assert_eq!(errors.by_code()["ALONE"], 1);
        for i in 0..1000 {
            errors.note(&format!("CODE{i} x"), 1);
        }
        assert_eq!(errors.by_code().len(), CODES_MAX + 1);
        assert_eq!(errors.by_code().values().sum::<u64>(), errors.total());
        errors.reset();
        assert_eq!((errors.total(), errors.by_code().len()), (0, 0));
    }
}
