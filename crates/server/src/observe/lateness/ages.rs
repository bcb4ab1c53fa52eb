//! Counts of late samples by their age.
//!
//! The buckets are those of [`latewood_engine::histogram`]: eight for each power of two
//! milliseconds, so that a quantile is known to one part in eight. Ages of 35 years and more
//! share the last bucket. Memory is taken with the first sample.

use latewood_engine::histogram::{bucket_of, longest_in};

/// Buckets of each power of two, as a power of two.
const SPLIT_BITS: u32 = 3;
/// How much larger than the true value a quantile may be: one part in eight. It is never smaller.
pub(crate) const QUANTILE_ERROR: f64 = 1.0 / (1 << SPLIT_BITS) as f64;
/// Ages from 2^40 ms on share the last bucket.
const LONGEST_MS: u64 = (1 << 40) - 1;
const BUCKETS: usize = bucket_of(LONGEST_MS, SPLIT_BITS) + 1;

/// Late samples of a stretch of time.
#[derive(Debug, Default)]
pub(crate) struct LateAges {
    counts: Option<Box<[u32; BUCKETS]>>,
    late: u64,
    max_ms: u64,
}

impl LateAges {
    /// Counts a sample of this age.
    #[inline]
    pub(super) fn note(&mut self, age_ms: u64) {
        let counts = self.counts.get_or_insert_with(|| Box::new([0; BUCKETS]));
        let count = &mut counts[bucket_of(age_ms.min(LONGEST_MS), SPLIT_BITS)];
        *count = count.saturating_add(1);
        self.late += 1;
        self.max_ms = self.max_ms.max(age_ms);
    }

    /// How many there are.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if let Some(more) = &other.counts {
            let counts = self.counts.get_or_insert_with(|| Box::new([0; BUCKETS]));
            for (count, more) in counts.iter_mut().zip(more.iter()) {
                *count = count.saturating_add(*more);
            }
        }
        self.late += other.late;
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// Bytes of memory beside its own.
    pub(super) fn len_bytes(&self) -> usize {
        self.counts
            .as_ref()
            .map_or(0, |_| size_of::<[u32; BUCKETS]>())
    }
}

/// Late samples of several stretches, and all samples among which they came.
#[derive(Debug)]
pub(crate) struct LateSum {
    /// All samples, if they are counted.
    pub(crate) samples: u64,
    /// Late ones.
    pub(crate) late: u64,
    /// The largest age.
    pub(crate) max_ms: u64,
    counts: Box<[u64; BUCKETS]>,
}

impl Default for LateSum {
    fn default() -> Self {
        Self {
            samples: 0,
            late: 0,
            max_ms: 0,
            counts: Box::new([0; BUCKETS]),
        }
    }
}

impl LateSum {
    /// Adds late samples.
    pub(crate) fn add(&mut self, ages: &LateAges) {
        for (sum, &count) in self
            .counts
            .iter_mut()
            .zip(ages.counts.iter().flat_map(|c| c.iter()))
        {
            *sum += u64::from(count);
        }
        self.late += ages.late;
        self.max_ms = self.max_ms.max(ages.max_ms);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts.iter()) {
            *sum += count;
        }
        self.samples += other.samples;
        self.late += other.late;
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// The age that this share of the late samples does not exceed.
    pub(crate) fn age_ms(&self, share: f64) -> u64 {
        self.quantile(share, 0)
    }

    /// The delay after which this share of all samples has come, where those that are not late
    /// come at once.
    pub(crate) fn delay_ms(&self, share: f64) -> u64 {
        self.quantile(share, self.samples.saturating_sub(self.late))
    }

    fn quantile(&self, share: f64, on_time: u64) -> u64 {
        let wanted = (share * (on_time + self.late) as f64).ceil().max(1.0) as u64;
        let mut seen = on_time;
        if seen >= wanted {
            return 0;
        }
        for (bucket, count) in self.counts[..BUCKETS - 1].iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return longest_in(bucket, SPLIT_BITS).min(self.max_ms);
            }
        }
        self.max_ms
    }
}
