//! The compaction policy: which compactions a series gets when a write creates it.
//!
//! The text is `aggregator:bucket:retention[:align]`, several joined by `;`.
//! A duration is digits and a unit: `m` milliseconds, `s` seconds, `M`
//! minutes, `h` hours, `d` days; 0 needs no unit. A policy keeps its text, so
//! that CONFIG GET returns what CONFIG SET was given.
//!
//! Invariant: buckets are above 0, and every duration fits an `i64` of
//! milliseconds. Tested below.

use crate::limits::COMPACTIONS_MAX;
use crate::{Aggregator, LabelError, Labels};

/// The compactions of new series; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPolicy {
    text: Box<str>,
    compactions: Box<[Compaction]>,
}

/// One compaction of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// How the samples of a bucket become one.
    pub aggregator: Aggregator,
    /// Width of a bucket in milliseconds, above 0.
    pub bucket_ms: i64,
    /// Retention of the destination in milliseconds; 0 keeps all.
    pub retention_ms: u64,
    /// A boundary between two buckets, milliseconds, not negative.
    pub align_ms: i64,
}

/// Why a policy was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A rule with parts that are missing, wrong or too many.
    #[error("{rule:?} {wrong}")]
    Rule {
        /// The rule.
        rule: String,
        /// What is wrong with it.
        wrong: &'static str,
    },
    /// More rules than a policy may have.
    #[error("more than {COMPACTIONS_MAX} rules")]
    TooMany,
}

impl CompactionPolicy {
    /// Parses a policy. Empty parts are ignored.
    ///
    /// # Errors
    /// Names the first rule that is wrong; more than [`COMPACTIONS_MAX`] are refused.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let rules = text.split(';').filter(|rule| !rule.is_empty());
        let parsed = rules.map(|rule| {
            Compaction::parse(rule).map_err(|wrong| PolicyError::Rule {
                rule: rule.to_owned(),
                wrong,
            })
        });
        let compactions: Box<[_]> = parsed.collect::<Result<_, _>>()?;
        if compactions.len() > COMPACTIONS_MAX {
            return Err(PolicyError::TooMany);
        }
        Ok(Self {
            text: text.into(),
            compactions,
        })
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its compactions, in the order of the text.
    pub fn compactions(&self) -> &[Compaction] {
        &self.compactions
    }
}

impl Compaction {
    /// The error says what is wrong with the rule.
    fn parse(rule: &str) -> Result<Self, &'static str> {
        let mut parts = rule.split(':');
        let aggregator = parts.next().unwrap_or_default();
        let aggregator =
            Aggregator::of_name(aggregator.as_bytes()).ok_or("has no known aggregator")?;
        let bucket_ms = parts.next().ok_or("has no bucket")?;
        let bucket_ms = duration_ms(bucket_ms).filter(|&bucket_ms| bucket_ms > 0);
        let retention_ms = parts.next().ok_or("has no retention");
        let align_ms = parts.next().map_or(Some(0), duration_ms);
        let compaction = Self {
            aggregator,
            bucket_ms: bucket_ms.ok_or("has a bucket that is not a time above 0, such as 10s")?,
            retention_ms: duration_ms(retention_ms?)
                .ok_or("has a retention that is not a time, such as 30d or 0")?
                .unsigned_abs(),
            align_ms: align_ms.ok_or("has an align that is not a time, such as 500m")?,
        };
        match parts.next() {
            None => Ok(compaction),
            Some(_) => Err("has more than four parts"),
        }
    }

    /// The key of the destination: `key_AVG_60000`, followed by `_align` if that
    /// is not 0.
    pub fn destination(&self, key: &[u8]) -> Vec<u8> {
        let aggregator = self.aggregator.name().to_ascii_uppercase();
        let mut name = format!("_{aggregator}_{}", self.bucket_ms);
        if self.align_ms != 0 {
            name.push_str(&format!("_{}", self.align_ms));
        }
        [key, name.as_bytes()].concat()
    }

    /// The labels of the destination: those of the source, then `aggregation`
    /// and `time_bucket`, even if the source has labels of these names.
    ///
    /// # Errors
    /// As [`Labels::new`], over the limits.
    pub fn labels(&self, source: &Labels) -> Result<Labels, LabelError> {
        let aggregator = self.aggregator.name().to_ascii_uppercase();
        let bucket = self.bucket_ms.to_string();
        let own: [(&[u8], &[u8]); 2] = [
            (b"aggregation", aggregator.as_bytes()),
            (b"time_bucket", bucket.as_bytes()),
        ];
        Labels::new(source.iter().chain(own))
    }
}

/// A duration in milliseconds, not negative.
fn duration_ms(text: &str) -> Option<i64> {
    if !text.is_empty() && text.bytes().all(|digit| digit == b'0') {
        return Some(0);
    }
    let (at, unit) = text.char_indices().next_back()?;
    let unit_ms = match unit {
        'm' => 1,
        's' => 1000,
        'M' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return None,
    };
    let digits = &text[..at];
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok()?.checked_mul(unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(aggregator: Aggregator, bucket_ms: i64, retention_ms: u64, align_ms: i64) -> Compaction {
        Compaction {
            aggregator,
            bucket_ms,
            retention_ms,
            align_ms,
        }
    }

    #[test]
    fn units_and_parts_are_read_and_the_text_is_kept() {
        let text = ";MAX:1m:1h;avg:10s:5d;sum:1M:0:500m;;std.p:02h:0d:0;";
        let policy = CompactionPolicy::parse(text).unwrap();
        assert_eq!(policy.as_str(), text);
        assert_eq!(
            policy.compactions(),
            [
                of(Aggregator::Max, 1, 3_600_000, 0),
                of(Aggregator::Avg, 10_000, 432_000_000, 0),
                of(Aggregator::Sum, 60_000, 0, 500),
                of(Aggregator::StdP, 7_200_000, 0, 0),
            ]
        );
        assert_eq!(CompactionPolicy::parse(""), Ok(CompactionPolicy::default()));
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in [
            "avg",
            "avg:1m",
            "avg:1m:1m:1m:1m",
            "median:1m:1m",
            "avg:1:1m",
            "avg:0m:1m",
            "avg:m:1m",
            "avg:-1m:1m",
            "avg:+1m:1m",
            "avg: 1m:1m",
            "avg:1.5s:1m",
            "avg:1S:1m",
            "avg:1m:7",
            "avg:1m:",
            "avg:1m:1d1",
            "avg:1m:1d:7",
            "avg:1\u{e9}:1d",
            "avg:9223372036854775808m:1m",
            "avg:99999999999999d:1d",
        ] {
            assert!(CompactionPolicy::parse(text).is_err(), "{text}");
        }
        let many = "avg:1m:0;".repeat(COMPACTIONS_MAX);
        assert!(CompactionPolicy::parse(&many).is_ok());
        let one_more = CompactionPolicy::parse(&(many + "avg:1m:0"));
        assert_eq!(one_more, Err(PolicyError::TooMany));
    }

    #[test]
    fn the_rule_that_is_wrong_is_named_with_its_part() {
        for (rule, wrong) in [
            ("median:1m:1m", "has no known aggregator"),
            ("avg", "has no bucket"),
            (
                "avg:1x:1",
                "has a bucket that is not a time above 0, such as 10s",
            ),
            ("avg:1m", "has no retention"),
            (
                "avg:1m:7",
                "has a retention that is not a time, such as 30d or 0",
            ),
            (
                "avg:1m:1m:7",
                "has an align that is not a time, such as 500m",
            ),
            ("avg:1m:1m:1m:1m", "has more than four parts"),
        ] {
            let error = CompactionPolicy::parse(&format!("max:1m:0;{rule};sum")).unwrap_err();
            assert_eq!(error.to_string(), format!("{rule:?} {wrong}"));
        }
    }

    #[test]
    fn destinations_are_named_and_labelled_after_their_source() {
        let plain = of(Aggregator::StdP, 7_200_000, 0, 0);
        assert_eq!(plain.destination(b"k"), b"k_STD.P_7200000");
        let aligned = of(Aggregator::Sum, 1, 0, 70);
        assert_eq!(aligned.destination(b"k"), b"k_SUM_1_70");
        let source: [(&[u8], &[u8]); 2] = [(b"time_bucket", b"3"), (b"a", b"b")];
        let labels = aligned.labels(&Labels::new(source).unwrap()).unwrap();
        let own: [(&[u8], &[u8]); 2] = [(b"aggregation", b"SUM"), (b"time_bucket", b"1")];
        assert!(labels.iter().eq(source.into_iter().chain(own)));
    }
}
