//! Buckets of time: which one holds a timestamp and which comes next.
//!
//! Boundaries lie at `align + k * bucket_ms` for every integer k. A bucket is
//! kept by its first and last millisecond, cut off at the ends of `i64`, so
//! that nothing overflows whatever the sizes. Pure arithmetic; tested at the
//! ends of `i64` against 128-bit numbers.

/// Which moment of a bucket stands in its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketStamp {
    /// Its first millisecond.
    #[default]
    Start,
    /// The middle, rounded down.
    Mid,
    /// The first millisecond after it.
    End,
}

/// The milliseconds from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Bucket {
    pub(crate) fn contains(&self, timestamp: i64) -> bool {
        self.first <= timestamp && timestamp <= self.last
    }

    /// Where the next bucket begins: the edge lines are cut at.
    pub(crate) fn end(&self) -> i64 {
        self.last.saturating_add(1)
    }
}

/// The division of time into buckets, walked in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    bucket_ms: i64,
    /// The boundary in `0..bucket_ms`.
    offset_ms: i64,
    stamp: BucketStamp,
    reverse: bool,
}

impl Window {
    /// Buckets of `bucket_ms` (above 0) with a boundary at `align`, walked in the
    /// direction of the query.
    pub(crate) fn new(bucket_ms: i64, align: i64, stamp: BucketStamp, reverse: bool) -> Self {
        Self {
            bucket_ms,
            offset_ms: align.rem_euclid(bucket_ms),
            stamp,
            reverse,
        }
    }

    /// Buckets of `bucket_ms` (above 0) with a boundary at `align`, stamped
    /// with their beginnings and walked forwards.
    pub(crate) fn grid(bucket_ms: i64, align: i64) -> Self {
        Self::new(bucket_ms, align, BucketStamp::Start, false)
    }

    /// The bucket that holds `timestamp`.
    pub(crate) fn containing(&self, timestamp: i64) -> Bucket {
        let mut past = timestamp.rem_euclid(self.bucket_ms) - self.offset_ms;
        if past < 0 {
            past += self.bucket_ms;
        }
        Bucket {
            first: timestamp.saturating_sub(past),
            last: timestamp.saturating_add(self.bucket_ms - 1 - past),
        }
    }

    /// The same, cheaper if it is `near` or the one after that.
    #[inline]
    pub(crate) fn containing_near(&self, near: Option<Bucket>, timestamp: i64) -> Bucket {
        if let Some(near) = near {
            if near.contains(timestamp) {
                return near;
            }
            if let Some(next) = self.after(near).filter(|next| next.contains(timestamp)) {
                return next;
            }
        }
        self.containing(timestamp)
    }

    /// The neighbour of `bucket` in the direction of the walk; `None` at the
    /// end of time.
    pub(crate) fn after(&self, bucket: Bucket) -> Option<Bucket> {
        let reach = self.bucket_ms - 1;
        if self.reverse {
            let last = bucket.first.checked_sub(1)?;
            let first = last.saturating_sub(reach);
            Some(Bucket { first, last })
        } else {
            let first = bucket.last.checked_add(1)?;
            let last = first.saturating_add(reach);
            Some(Bucket { first, last })
        }
    }

    /// Whether the walk meets `bucket` before `other`.
    pub(crate) fn precedes(&self, bucket: Bucket, other: Bucket) -> bool {
        if self.reverse {
            bucket.last > other.last
        } else {
            bucket.first < other.first
        }
    }

    /// How many buckets the walk meets from `from` on before `end`.
    pub(crate) fn count(&self, from: Bucket, end: Bucket) -> u64 {
        let apart_ms = if self.reverse {
            from.last.abs_diff(end.last)
        } else {
            from.first.abs_diff(end.first)
        };
        // The first one may be cut off at the end of time.
        apart_ms.div_ceil(self.bucket_ms.unsigned_abs())
    }

    /// The timestamp of the bucket's row. The bucket that time begins in
    /// counts as beginning at 0: clients know no negative timestamps.
    pub(crate) fn stamp(&self, bucket: Bucket) -> i64 {
        let start = if bucket.contains(0) { 0 } else { bucket.first };
        match self.stamp {
            BucketStamp::Start => start,
            BucketStamp::Mid => start.saturating_add(self.bucket_ms / 2),
            BucketStamp::End => start.saturating_add(self.bucket_ms),
        }
    }
}

/// Sorts spans and joins those that overlap or meet.
pub(crate) fn join_spans(spans: &mut Vec<Bucket>) {
    spans.sort_unstable_by_key(|span| span.first);
    spans.dedup_by(|later, kept| {
        let meets = later.first <= kept.end();
        if meets {
            kept.last = kept.last.max(later.last);
        }
        meets
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(bucket_ms: i64, align: i64, reverse: bool) -> Window {
        Window::new(bucket_ms, align, BucketStamp::Start, reverse)
    }

    const TIMES: [i64; 9] = [
        i64::MIN,
        i64::MIN + 1,
        -8,
        -1,
        0,
        1,
        7,
        i64::MAX - 1,
        i64::MAX,
    ];

    #[test]
    fn boundaries_agree_with_wide_arithmetic_everywhere() {
        for bucket_ms in [1, 2, 7, 1 << 62, i64::MAX - 1, i64::MAX] {
            for align in TIMES {
                for time in TIMES {
                    let (t, a, b) = (i128::from(time), i128::from(align), i128::from(bucket_ms));
                    let first = a + (t - a).div_euclid(b) * b;
                    let cut = |x: i128| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                    let expected = Bucket {
                        first: cut(first),
                        last: cut(first + b - 1),
                    };
                    assert_eq!(window(bucket_ms, align, false).containing(time), expected);
                }
            }
        }
    }

    #[test]
    fn a_stretch_is_counted_as_it_is_walked() {
        for reverse in [false, true] {
            for (bucket_ms, align) in [(1 << 61, 3), (i64::MAX - 7, -5), (i64::MAX, 5)] {
                let window = window(bucket_ms, align, reverse);
                let (from, end) = if reverse {
                    (i64::MAX, i64::MIN)
                } else {
                    (i64::MIN, i64::MAX)
                };
                let (mut bucket, end) = (window.containing(from), window.containing(end));
                let counted = window.count(bucket, end);
                let mut walked = 0;
                while window.precedes(bucket, end) {
                    bucket = window.after(bucket).unwrap();
                    walked += 1;
                }
                assert_eq!(counted, walked, "{bucket_ms} {reverse}");
            }
        }
    }

    #[test]
    fn neighbours_touch_and_time_ends() {
        for reverse in [false, true] {
            let window = window(i64::MAX, 5, reverse);
            let mut bucket = window.containing(0);
            let mut steps = 0;
            while let Some(next) = window.after(bucket) {
                assert_eq!(window.containing(next.first).last, next.last);
                bucket = next;
                steps += 1;
            }
            assert_eq!(steps, 1);
        }
    }
}
