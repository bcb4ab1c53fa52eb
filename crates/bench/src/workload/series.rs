//! The late-sample workload, as the public out-of-order client for RedisTimeSeries defines it.
//!
//! Each sample is, with the wanted probability, late, in one of the ways of `shape`; otherwise it is
//! the newest plus one millisecond. Values are uniform in [0, 32) with single precision, in their
//! shortest text. A series knows how many different timestamps it has sent.

use latewood_wire::resp::encode_command;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::shape::{LateShape, Lateness};
use crate::load::Source;

const VALUE_MAX: f32 = 32.0;

/// One series and its generator.
#[derive(Debug)]
pub(crate) struct Series {
    key: String,
    rng: SmallRng,
    late_share: f64,
    newest_ms: i64,
    sent: u64,
    lateness: Lateness,
    /// What it is made of again.
    shape: LateShape,
    seed: u64,
    number: u64,
    in_order: u64,
}

/// The series of one connection, served round robin.
#[derive(Debug)]
pub(crate) struct Writer {
    series: Vec<Series>,
    next: usize,
    left: u64,
}

impl Series {
    /// A series of its own random stream: the same `seed` and `number` give the same samples.
    pub(crate) fn new(key: String, late_share: f64, seed: u64, number: u64) -> Self {
        Self::shaped(key, LateShape::Uniform, late_share, seed, number)
    }

    /// The same with late samples of another shape.
    pub(crate) fn shaped(
        key: String,
        shape: LateShape,
        late_share: f64,
        seed: u64,
        number: u64,
    ) -> Self {
        // Any odd constant keeps the streams of neighbouring numbers apart.
        let stream = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = SmallRng::seed_from_u64(seed ^ stream);
        Series {
            key,
            lateness: shape.begin(late_share, &mut rng),
            rng,
            late_share,
            newest_ms: shape.start_ms(),
            sent: 0,
            shape,
            seed,
            number,
            in_order: 0,
        }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Different timestamps generated so far.
    pub(crate) fn distinct(&self) -> u64 {
        self.lateness.distinct(self.newest_ms, self.sent)
    }

    /// The next timestamp (ms) and value.
    #[inline]
    pub(crate) fn next_sample(&mut self) -> (i64, f32) {
        self.sent += 1;
        let (newest_ms, share) = (&mut self.newest_ms, self.late_share);
        let timestamp_ms = self.lateness.next_ms(newest_ms, share, &mut self.rng);
        (timestamp_ms, self.rng.random::<f32>() * VALUE_MAX)
    }

    /// The next sample if none were late; only before the first that may be late.
    pub(crate) fn next_in_order(&mut self) -> (i64, f32) {
        self.sent += 1;
        self.in_order += 1;
        self.newest_ms += 1;
        (self.newest_ms, self.rng.random::<f32>() * VALUE_MAX)
    }

    /// Everything generated so far once more, in the same order.
    pub(crate) fn replay(&self) -> impl Iterator<Item = (i64, f32)> {
        let (shape, share, in_order) = (self.shape, self.late_share, self.in_order);
        let mut twin = Series::shaped(String::new(), shape, share, self.seed, self.number);
        (0..self.sent).map(move |at| {
            if at < in_order {
                twin.next_in_order()
            } else {
                twin.next_sample()
            }
        })
    }

    #[inline]
    fn encode_next(&mut self, out: &mut Vec<u8>) {
        let (timestamp_ms, value) = self.next_sample();
        let (mut timestamp, mut number) = (itoa::Buffer::new(), zmij::Buffer::new());
        let timestamp = timestamp.format(timestamp_ms).as_bytes();
        let number = number.format_finite(value).as_bytes();
        encode_command(out, &[b"TS.ADD", self.key.as_bytes(), timestamp, number]);
    }
}

impl Writer {
    /// A writer that has nothing to send until `allow` says how much.
    pub(crate) fn new(series: Vec<Series>) -> Self {
        Writer {
            series,
            next: 0,
            left: 0,
        }
    }

    /// Lets every series send `samples` more.
    pub(crate) fn allow(&mut self, samples: u64) {
        self.left += samples * self.series.len() as u64;
    }

    pub(crate) fn series(&self) -> &[Series] {
        &self.series
    }

    pub(crate) fn series_mut(&mut self, at: usize) -> &mut Series {
        &mut self.series[at]
    }
}

impl Source for Writer {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        for _ in 0..count {
            self.series[self.next].encode_next(out);
            self.next = (self.next + 1) % self.series.len();
        }
        self.left -= count as u64;
        count
    }
}

/// `count` writers for `keys`, which are dealt out in turn; every series has its own stream.
pub(crate) fn writers(
    keys: Vec<String>,
    count: usize,
    (shape, late_share): (LateShape, f64),
    seed: u64,
) -> Vec<Writer> {
    let hands = count.clamp(1, keys.len().max(1));
    let mut dealt: Vec<Writer> = (0..hands).map(|_| Writer::new(Vec::new())).collect();
    for (number, key) in keys.into_iter().enumerate() {
        let series = Series::shaped(key, shape, late_share, seed, number as u64);
        dealt[number % hands].series.push(series);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_can_be_replayed_and_others_differ() {
        for &shape in LateShape::all() {
            let samples = |number| {
                let mut series = Series::shaped("k".into(), shape, 0.5, 9, number);
                let mut sent: Vec<_> = (0..500).map(|_| series.next_in_order()).collect();
                sent.extend((0..5_000).map(|_| series.next_sample()));
                assert!(series.replay().eq(sent.iter().copied()), "{}", shape.name());
                sent
            };
            assert_ne!(samples(4), samples(5));
        }
    }

    #[test]
    fn a_writer_serves_its_series_in_turn_and_stops() {
        let keys = (0..3).map(|n| format!("k{n}")).collect();
        let mut writers = writers(keys, 2, (LateShape::Uniform, 0.0), 1);
        assert_eq!(writers.len(), 2);
        let writer = &mut writers[0];
        writer.allow(2);
        let mut out = Vec::new();
        assert_eq!([3; 3].map(|most| writer.fill(&mut out, most)), [3, 1, 0]);
        let text = String::from_utf8(out).unwrap();
        let first = "*4\r\n$6\r\nTS.ADD\r\n$2\r\nk0\r\n$6\r\n100001\r\n";
        assert!(text.starts_with(first), "{text}");
        let keys: Vec<_> = text.lines().filter(|line| line.starts_with('k')).collect();
        assert_eq!(keys, ["k0", "k2", "k0", "k2"]);
        assert!(writer.series().iter().all(|series| series.sent() == 2));
    }
}
