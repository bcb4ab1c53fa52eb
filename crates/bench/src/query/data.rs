//! The data that is asked about, and how it gets into a server.
//!
//! Samples are one second apart. Values have two digits after the point and wander, as those of
//! a sensor do, from a random seed that all servers share. Everything a set holds follows from
//! its sizes, so that a server can be checked against it.

use super::Sizes;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::reply::ReplyExt;

/// Timestamp of every series' first sample.
pub(super) const START_MS: u64 = 1_700_000_000_000;
/// Time between two samples.
pub(super) const STEP_MS: u64 = 1_000;
/// Samples of one TS.MADD.
const BATCH_SAMPLES: u64 = 500;
/// Commands that are made at a time.
const BATCH_COMMANDS: usize = 512;

/// What a set is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Many series of some samples: TS.MRANGE.
    Wide,
    /// One series of many samples: TS.RANGE.
    Long,
    /// Very many series of one sample and six labels: TS.QUERYINDEX, TS.MGET. Their chunks are
    /// small, so that they fit the memory of any server.
    Index,
    /// The same, fewer, with chunks of the size the server takes by itself.
    Idle,
}

/// Series of one shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set {
    pub(super) kind: Kind,
    pub(super) series: u64,
    /// Samples of each series.
    pub(super) samples: u64,
}

/// All sets of a run.
pub(super) fn sets(sizes: &Sizes) -> [Set; 4] {
    let set = |kind, series, samples| Set {
        kind,
        series,
        samples,
    };
    [
        set(Kind::Wide, sizes.wide_series, sizes.wide_samples),
        set(Kind::Long, 1, sizes.long_samples),
        set(Kind::Index, sizes.index_series, 1),
        set(Kind::Idle, sizes.idle_series, 1),
    ]
}

impl Set {
    /// Fills an empty server.
    ///
    /// # Errors
    /// When it refuses a command or holds something else afterwards.
    pub(super) fn load(&self, control: &mut Control, name: &str) -> Result<()> {
        let label = format!("{name}: loading {:?}", self.kind);
        let mut progress = Progress::new(label, self.series * self.samples);
        let mut done = 0;
        let mut commands: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut flush = |commands: &mut Vec<Vec<Vec<u8>>>, samples: u64| -> Result<()> {
            for reply in control.run_all(commands)? {
                if let latewood_wire::resp::Value::Array(replies) = reply
                    && let Some(refused) = replies.iter().find(|reply| reply.number().is_none())
                {
                    return Err(Error::new(format!("TS.MADD: {}", refused.text())));
                }
            }
            commands.clear();
            done += samples;
            progress.show(done);
            Ok(())
        };
        let mut waiting = 0;
        for number in 0..self.series {
            commands.push(self.create(number));
            let mut value = Wander::new(number);
            for first in (0..self.samples).step_by(BATCH_SAMPLES as usize) {
                let end = self.samples.min(first + BATCH_SAMPLES);
                commands.push(madd(number, first..end, &mut value));
                waiting += end - first;
                if commands.len() >= BATCH_COMMANDS {
                    flush(&mut commands, std::mem::take(&mut waiting))?;
                }
            }
        }
        flush(&mut commands, waiting)?;
        progress.finish();
        self.check(control)
    }

    /// The labels of a series; six of them.
    fn create(&self, number: u64) -> Vec<Vec<u8>> {
        let mut words = format!("TS.CREATE {}", key(number));
        if self.kind == Kind::Index {
            words += " CHUNK_SIZE 48";
        }
        words += &format!(
            " LABELS region r{} kind k{} batch b{} host h{} rack q{} unit celsius",
            number % 100,
            number % 3,
            number % 10,
            number / 10,
            number / 1_000,
        );
        words.split(' ').map(Into::into).collect()
    }

    /// Whether everything arrived.
    fn check(&self, control: &mut Control) -> Result<()> {
        let wrong = |what: &str, found: i64, sent: u64| {
            Err(Error::new(format!(
                "the server holds {found} {what}, {sent} were sent"
            )))
        };
        let keys = control.run(&[b"DBSIZE"])?.number().unwrap_or_default();
        if keys.cast_unsigned() != self.series {
            return wrong("series", keys, self.series);
        }
        let all: Vec<u64> = (0..self.series).collect();
        let mut held = 0;
        for some in all.chunks(BATCH_COMMANDS) {
            let words = |number: &u64| vec![b"TS.INFO".to_vec(), key(*number).into_bytes()];
            let commands: Vec<_> = some.iter().map(words).collect();
            for reply in control.run_all(&commands)? {
                held += reply
                    .field("totalSamples")
                    .and_then(ReplyExt::number)
                    .unwrap_or_default();
            }
        }
        if held.cast_unsigned() != self.series * self.samples {
            return wrong("samples", held, self.series * self.samples);
        }
        Ok(())
    }
}

/// The key of a series.
pub(super) fn key(number: u64) -> String {
    format!("sensor:{number:07}")
}

fn madd(number: u64, range: std::ops::Range<u64>, value: &mut Wander) -> Vec<Vec<u8>> {
    let mut words = vec![b"TS.MADD".to_vec()];
    for index in range {
        words.push(key(number).into_bytes());
        words.push((START_MS + index * STEP_MS).to_string().into_bytes());
        words.push(value.next_text().into_bytes());
    }
    words
}

/// A value that wanders in hundredths; a xorshift generator as Marsaglia gives it in "Xorshift
/// RNGs" (2003).
struct Wander {
    state: u64,
    hundredths: i64,
}

impl Wander {
    fn new(number: u64) -> Self {
        Wander {
            state: (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            hundredths: 2_000,
        }
    }

    fn next_text(&mut self) -> String {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.hundredths += (self.state >> 32).cast_signed() % 21 - 10;
        let sign = if self.hundredths < 0 { "-" } else { "" };
        let hundredths = self.hundredths.abs();
        format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
    }
}
