//! Which series, and which of their samples, the commands of a source touch.
//!
//! The target does not repeat a command: its series have no IGNORE and no rules yet, and it would have to
//! do as every version of the source does. A command says where both sides may differ; the samples there
//! are read on both.
//!
//! Tested here, and beside a real source in `tests/migrate/live.rs` of the server.

use std::collections::BTreeMap;

/// Spans of a series that are read apart.
const SPANS: usize = 16;
/// Spans that are held of a series until some of them become one.
const HELD: usize = 4 * SPANS;

/// What commands touched since somebody looked.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// Keys that are series or were, and which of their samples.
    pub(super) series: BTreeMap<Vec<u8>, Times>,
    /// Every key was.
    pub(super) all: bool,
}

/// Times of samples of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// From the first to the last, both included, in no order.
    spans: Vec<(i64, i64)>,
    /// All of them.
    pub(super) whole: bool,
    /// Whatever is newer than what the target has.
    pub(super) newest: bool,
    /// It is that of a series, which may be new.
    pub(super) is_made: bool,
    /// It may be, once it was renamed, copied or restored.
    pub(super) may_be_made: bool,
    /// Commands that touched it.
    pub(super) commands: u64,
}

impl Times {
    fn add(&mut self, from: i64, to: i64) {
        if self.spans.len() == HELD {
            self.spans = self.spans();
        }
        self.spans.push((from, to));
    }

    /// A few spans, ascending and apart, that have all the times.
    pub(super) fn spans(&self) -> Vec<(i64, i64)> {
        let mut spans = self.spans.clone();
        spans.sort_unstable();
        let gap = |pair: &[(i64, i64)]| pair[1].0.saturating_sub(pair[0].1);
        let mut gaps: Vec<i64> = spans.windows(2).map(gap).collect();
        gaps.sort_unstable_by(|a, b| b.cmp(a));
        // Only the widest gaps stay between spans.
        let least = gaps.get(SPANS - 1).map_or(1, |gap| (*gap).max(1));
        let mut kept: Vec<(i64, i64)> = Vec::new();
        for (from, to) in spans {
            match kept.last_mut() {
                Some(last) if from.saturating_sub(last.1) <= least => last.1 = last.1.max(to),
                _ => kept.push((from, to)),
            }
        }
        kept
    }
}

impl Touched {
    /// Takes in a command, its name first. What is deleted counts only if it `is_known`, since sources
    /// of other keys delete many.
    pub(super) fn note(&mut self, words: &[&[u8]], is_known: impl Fn(&[u8]) -> bool) {
        let Some((name, words)) = words.split_first() else {
            return;
        };
        let first = |count: usize| &words[..count.min(words.len())];
        match &*name.to_ascii_uppercase() {
            b"TS.ADD" => {
                if let [key, at, ..] = words {
                    self.at(key, at, at);
                }
            }
            b"TS.MADD" => {
                for sample in words.chunks_exact(3) {
                    self.at(sample[0], sample[1], sample[1]);
                }
            }
            b"TS.INCRBY" | b"TS.DECRBY" => {
                let is_time = |word: &&[u8]| word.eq_ignore_ascii_case(b"TIMESTAMP");
                if let [key, rest @ ..] = words {
                    let at = rest.iter().position(is_time).map(|at| rest.get(at + 1));
                    let at = at.flatten().copied().unwrap_or_default();
                    self.at(key, at, at);
                }
            }
            b"TS.DEL" => {
                if let [key, from, to, ..] = words {
                    self.at(key, from, to);
                }
            }
            b"TS.CREATE" | b"TS.ALTER" => self.changed(first(1)),
            b"TS.CREATERULE" | b"TS.DELETERULE" => self.changed(first(2)),
            b"RENAME" | b"RENAMENX" | b"COPY" => {
                for key in first(2) {
                    self.replaced(key).may_be_made = true;
                }
            }
            b"RESTORE" => {
                for key in first(1) {
                    self.replaced(key).may_be_made = true;
                }
            }
            name @ (b"DEL" | b"UNLINK" | b"MOVE") => {
                let keys = if name == b"MOVE" { first(1) } else { words };
                for key in keys {
                    if is_known(key) || self.series.contains_key(*key) {
                        self.replaced(key);
                    }
                }
            }
            b"FLUSHALL" | b"FLUSHDB" | b"SWAPDB" => self.all = true,
            // Of other types: a series that became one of these, a pass finds.
            _ => {}
        }
    }

    fn times(&mut self, key: &[u8]) -> &mut Times {
        let times = self.series.entry(key.to_vec()).or_default();
        times.commands += 1;
        times
    }

    /// Their options or rules.
    fn changed(&mut self, keys: &[&[u8]]) {
        for key in keys {
            let times = self.times(key);
            (times.newest, times.is_made) = (true, true);
        }
    }

    fn replaced(&mut self, key: &[u8]) -> &mut Times {
        let times = self.times(key);
        times.whole = true;
        times
    }

    /// From one time to another; where one is not a number, such as `*`, whatever is newest.
    fn at(&mut self, key: &[u8], from: &[u8], to: &[u8]) {
        let number = |word: &[u8]| match word {
            b"-" => Some(0),
            b"+" => Some(i64::MAX),
            word => std::str::from_utf8(word).ok()?.parse().ok(),
        };
        let times = self.times(key);
        times.is_made = true;
        match (number(from), number(to)) {
            (Some(from), Some(to)) => times.add(from, to),
            _ => times.newest = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(commands: &[&str]) -> Touched {
        let mut touched = Touched::default();
        for command in commands {
            let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            touched.note(&words, |key| key != b"unknown");
        }
        touched
    }

    #[test]
    fn commands_say_which_samples_they_touch() {
        let found = touched(&[
            "PING",
            "SELECT 0",
            "TS.ADD a 5 1.5 LABELS x y",
            "ts.madd a 7 1 b 100 2",
            "TS.INCRBY c 1 TIMESTAMP 9",
            "TS.DEL b 1 20",
            "TS.ADD d * 1",
            "DEL e f unknown",
            "SET g 1",
        ]);
        let commands: u64 = found.series.values().map(|times| times.commands).sum();
        assert_eq!(commands, 8);
        let spans = |key: &str| found.series[key.as_bytes()].spans();
        assert_eq!(spans("a"), [(5, 5), (7, 7)]);
        assert_eq!(spans("b"), [(1, 20), (100, 100)]);
        assert_eq!(spans("c"), [(9, 9)]);
        assert!(found.series[&b"d"[..]].newest && spans("d").is_empty());
        assert!(found.series[&b"e"[..]].whole && found.series[&b"f"[..]].whole);
        assert!(found.series[&b"a"[..]].is_made && !found.series[&b"e"[..]].is_made);
        assert!(!found.series.contains_key(&b"g"[..]) && !found.all);
        assert!(!found.series.contains_key(&b"unknown"[..]));
        assert!(touched(&["FLUSHALL"]).all);
        let moved = touched(&["RENAME a b", "RESTORE c 0 x"]).series;
        assert!(moved.len() == 3 && moved.values().all(|times| times.whole && times.may_be_made));
    }

    #[test]
    fn many_times_become_a_few_spans_with_the_widest_gaps_between() {
        let mut times = Times::default();
        // Late ones in between, in no order, and more than are held.
        for at in 0..10_000 {
            times.add(1_000_000 + at, 1_000_000 + at);
            if at % 1000 == 0 {
                times.add(at * 10, at * 10);
            }
        }
        let spans = times.spans();
        assert!(spans.len() <= SPANS, "{spans:?}");
        assert_eq!(spans[..2], [(0, 0), (10_000, 10_000)]);
        assert_eq!(spans.last(), Some(&(1_000_000, 1_009_999)));
        let is_in = |at: i64| spans.iter().any(|span| (span.0..=span.1).contains(&at));
        assert!((0..10).all(|at| is_in(at * 10_000)));
    }
}
