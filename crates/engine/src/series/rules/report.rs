//! What a source reports of its rules. Tested by `tests/db_rules/states.rs`.

use crate::base::window::{Bucket, join_spans};
use crate::series::rules::dirty::DirtyBuckets;
use crate::series::rules::{Rule, Source};
use latewood_model::Timestamp;

impl Source {
    /// The dirty buckets that concern all rules, whether in flight or not.
    pub(crate) fn shared_dirty(&self) -> DirtyBuckets {
        let mut dirty = DirtyBuckets::default();
        for part in [&self.prompt, &self.late, &self.in_flight] {
            dirty.extend(part);
        }
        dirty
    }
}

impl Rule {
    /// The number of dirty buckets, given those that concern all rules of the source.
    /// Those that a deletion made dirty count whether they hold samples or not.
    pub(crate) fn dirty_buckets(&self, shared: &DirtyBuckets) -> u64 {
        let open = self.open.filter(|_| !self.interpolates());
        let open = open.map_or(Timestamp::MAX, |open| open.first);
        let mut dirty = Vec::new();
        for part in [shared, &self.own, &self.own_in_flight] {
            part.spans(self.window(), open, &mut dirty);
        }
        join_spans(&mut dirty);
        self.expired.leave_alone(&mut dirty);
        self.buckets_in(&dirty)
    }

    /// The number of buckets in spans.
    pub(crate) fn buckets_in(&self, spans: &[Bucket]) -> u64 {
        let buckets = |span: &Bucket| {
            let span_ms = span.last.abs_diff(span.first);
            span_ms / self.spec.bucket_ms.unsigned_abs().max(1) + 1
        };
        spans.iter().map(buckets).fold(0, u64::saturating_add)
    }
}
