//! What the nodes of a log should have alike, as each may become its owner: digests that they tell
//! each other, and in words what differs.
//!
//! The digest of the settings has a part for each of [`PARTS`], so that a difference can be named.
//! Nodes of one version compare them, as they were started: a later CONFIG SET is not told. The part
//! of rule files is set when they are read, also again ([`with_rules`]).
//!
//! Tested by its own tests.

use super::settings::Settings;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Bits of the digest of a part: two that differ are taken for alike once in 4096.
const PART_BITS: u32 = 12;
const PART_MASK: u64 = (1 << PART_BITS) - 1;

/// The parts of the settings, the lowest bits first.
const PARTS: [&str; 5] = ["series", "retention", "time-limits", "reads", "rules"];
/// Where the part of rules is among them.
const RULES_AT: u32 = 4;

/// What each part is of, for people.
const MEANINGS: [&str; 5] = [
    "what new series get: the ts-... options, dump-format, sender-duplicate-policy, influx-db-label, otlp-...",
    "retention, drop-empty-series, max-series",
    "future-limit, past-limit, redis-future-limit, redis-past-limit",
    "reads, max-staleness, durability, promql-lookback, promql-delayed-name-removal, \
     notify-keyspace-events",
    "rules: the files, their paths and what is in them; evaluation-interval, rule-query-offset, \
     external-labels, max-rule-series, rules-correct-back, rules-catch-up, rules-retention",
];

/// The options of a part, for people.
pub(crate) fn options_of(part: &str) -> &'static str {
    let at = PARTS.iter().position(|name| *name == part);
    at.map_or("", |at| MEANINGS[at])
}

impl Settings {
    /// Of the users and of the settings that should be alike, those of rules as without files.
    pub(crate) fn digests(&self) -> [u64; 2] {
        let Self { senders, .. } = self;
        let file = self.aclfile.as_ref().map(std::fs::read_to_string);
        let file = file.and_then(Result::ok).unwrap_or_default();
        // Whoever reads the log must learn nothing of a password.
        let is_secret = |word: &&str| word.starts_with(['>', '<', '#', '!']);
        let words = self
            .users
            .iter()
            .chain([&file])
            .flat_map(|text| text.split_whitespace());
        let words: Vec<&str> = words.filter(|word| !is_secret(word)).collect();
        let promql = (self.promql.lookback_ms, self.promql.delays_name_removal);
        let reads = (self.cluster.reads, self.cluster.nodes.staleness_max_ms);
        let parts = [
            digest(&(
                (self.defaults(), self.compatibility, self.dump_format),
                senders.duplicate_policy,
                &senders.influx_db_label,
                &senders.otlp,
            )),
            digest(&(self.retention_ms, self.drop_empty, self.series_max)),
            digest(&(self.time_limits, senders.time_limits)),
            digest(&(reads, self.durability, promql, self.notify)),
        ];
        let settings = parts
            .into_iter()
            .rev()
            .fold(0, |all, part| all << PART_BITS | bits_of(part));
        let users = digest(&(words, self.requirepass.is_empty()));
        [users, settings]
    }
}

/// A digest of settings with rule files that have the digest `rules`.
pub(crate) fn with_rules(settings: u64, rules: u64) -> u64 {
    let shift = PART_BITS * RULES_AT;
    settings & !(PART_MASK << shift) | bits_of(rules) << shift
}

/// What of a digest is told.
fn bits_of(digest: u64) -> u64 {
    digest >> (u64::BITS - PART_BITS)
}

/// The parts in which two digests of settings differ.
pub(crate) fn differing(one: u64, other: u64) -> Vec<&'static str> {
    let differs = |at: &usize| {
        let shift = PART_BITS * *at as u32;
        (one ^ other) >> shift & PART_MASK != 0
    };
    (0..PARTS.len())
        .filter(differs)
        .map(|at| PARTS[at])
        .collect()
}

/// The digest of what `of` shows.
pub(crate) fn digest(of: &impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{of:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Reads;
    use latewood_engine::DropEmpty;

    fn told(change: impl FnOnce(&mut Settings)) -> Vec<&'static str> {
        let mut other = Settings::default();
        change(&mut other);
        let [users, settings] = other.digests();
        let [own_users, own] = Settings::default().digests();
        let mut told = differing(own, settings);
        if users != own_users {
            told.push("users");
        }
        told
    }

    #[test]
    fn a_difference_is_named() {
        assert_eq!(told(|_| {}), [""; 0]);
        assert_eq!(told(|of| of.cluster.reads = Reads::Strict), ["reads"]);
        assert_eq!(told(|of| of.cluster.nodes.staleness_max_ms = 9), ["reads"]);
        assert_eq!(told(|of| of.promql.lookback_ms = 9), ["reads"]);
        assert_eq!(told(|of| of.retention_ms = 9), ["retention"]);
        assert_eq!(told(|of| of.drop_empty = DropEmpty::None), ["retention"]);
        assert_eq!(told(|of| of.time_limits.past_ms = 9), ["time-limits"]);
        let both = told(|of| {
            of.senders.time_limits.past_ms = 9;
            of.senders.influx_db_label = Some("db".to_owned());
        });
        assert_eq!(both, ["series", "time-limits"]);
        assert_eq!(
            told(|of| of.users.push("ann on +get".to_owned())),
            ["users"]
        );
        // What is of one machine.
        assert_eq!(told(|of| of.memory_bytes = 9), [""; 0]);
        let own = Settings::default().digests()[1];
        let rules = with_rules(own, digest(&"a rule"));
        assert_eq!(differing(own, rules), ["rules"]);
        assert_eq!(with_rules(rules, 0), own);
        let secret = |text: &str| {
            let mut of = Settings::default();
            of.users.push(text.to_owned());
            of.digests()
        };
        assert_eq!(secret("ann on >one"), secret("ann on >two"));
    }

    #[test]
    fn every_part_says_its_options() {
        assert!(PARTS.iter().all(|part| !options_of(part).is_empty()));
    }
}
