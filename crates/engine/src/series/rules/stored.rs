//! Conversion of a source's rules to and from a row of a series file.
//!
//! A row holds all dirty buckets, so that a database restored from files and log
//! knows which buckets must be recomputed.

use crate::base::window::{Bucket, Window};
use crate::format::expired_buckets::ExpiredBuckets;
use crate::series::rules::dirty::DirtyBuckets;
use crate::series::rules::{Rule, Source};
use crate::storage::files::{DirtyRow, RuleRow, SourceRow};
use latewood_model::Timestamp;

impl Source {
    /// The row of the source in a series file.
    pub(crate) fn row(&self) -> SourceRow {
        SourceRow {
            rules: self.rules.iter().map(Rule::row).collect(),
            prompt: self.prompt.row(),
            late: self.late.row(),
            in_flight: self.in_flight.row(),
            lost_to: self.lost_to,
            kept: self.kept,
        }
    }

    /// Restores the source from a row.
    pub(crate) fn restore(row: SourceRow) -> Self {
        let rules = row.rules.into_iter();
        let mut source = Self {
            rules: rules.map(|rule| Rule::restore(rule, row.lost_to)).collect(),
            prompt: DirtyBuckets::restore(row.prompt),
            late: DirtyBuckets::restore(row.late),
            in_flight: DirtyBuckets::restore(row.in_flight),
            lost_to: row.lost_to,
            kept: row.kept,
            ..Self::default()
        };
        source.note_open();
        source.try_failed_again();
        // None of its late operations are in memory.
        source.settled();
        source
    }
}

impl Rule {
    fn row(&self) -> RuleRow {
        RuleRow {
            destination: self.destination,
            spec: self.spec,
            since: self.since,
            open: self.open,
            own: self.own.row(),
            own_in_flight: self.own_in_flight.row(),
            expired: Some(self.expired.clone()),
            failed: self.failed.clone(),
            backfill: self.backfill.clone(),
        }
    }

    fn restore(row: RuleRow, lost_to: Timestamp) -> Self {
        let expired = row
            .expired
            .clone()
            .unwrap_or_else(|| row.unknown_expired(lost_to));
        Self {
            expired,
            destination: row.destination,
            spec: row.spec,
            since: row.since,
            open: row.open,
            own: DirtyBuckets::restore(row.own),
            own_in_flight: DirtyBuckets::restore(row.own_in_flight),
            failed: row.failed,
            backfill: row.backfill,
            recomputed_ms: None,
        }
    }
}

impl RuleRow {
    /// The expired buckets of a rule whose row has none: any bucket may have been
    /// touched.
    fn unknown_expired(&self, lost_to: Timestamp) -> ExpiredBuckets {
        let to = |last| {
            let first = Timestamp::MIN;
            vec![Bucket { first, last }]
        };
        let window = Window::grid(self.spec.bucket_ms, self.spec.align);
        ExpiredBuckets {
            touched: self.open.map_or_else(Vec::new, |open| to(open.last)),
            lost: if lost_to > 0 {
                to(window.containing(lost_to - 1).last)
            } else {
                Vec::new()
            },
        }
    }
}

impl DirtyBuckets {
    fn row(&self) -> DirtyRow {
        DirtyRow {
            timestamps: self.timestamps.clone(),
            spans: self.spans.clone(),
        }
    }

    fn restore(row: DirtyRow) -> Self {
        let spans = row.spans.iter().map(|&(from, _)| from);
        let oldest: Option<Timestamp> = row.timestamps.iter().copied().chain(spans).min();
        Self {
            deduped_len: 0,
            timestamps: row.timestamps,
            spans: row.spans,
            oldest,
        }
    }
}
