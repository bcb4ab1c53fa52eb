//! The size benchmark: what real measurements take, coding by coding and as stored.
//!
//! Real series are unlike random walks: noise of floating-point arithmetic, gaps, plateaus,
//! counters. Every series is encoded in whole frames as the engine does, and with the coding of
//! the Gorilla paper for comparison; then all of them go to a server and what lies on its disk
//! is counted, index, labels and all. Without `--data` the series of `data/nab` are taken; with
//! it those of a folder, such as a checkout of the Numenta Anomaly Benchmark.

mod recordings;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use latewood_codec::{Encoder, FRAME_SAMPLES_MAX, Frame, Hint, TimestampCoding, ValueCoding};
use serde::{Deserialize, Serialize};

use self::recordings::Recording;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::fleet;
use crate::machine::Machine;
use crate::output::Output;
use crate::reply::ReplyExt;
use crate::report::json::{Measurement, SizeReport};
use crate::target::Latewood;
use crate::usage::{self, Footprint};

/// Samples of one TS.MADD.
const BATCH_SAMPLES: usize = 500;

/// Measure bytes a sample on real measurements.
#[derive(Clone, Debug, Args)]
pub(crate) struct SizeArgs {
    /// Folder with CSV files of rows "timestamp,value" [default: a few series that come along]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What the samples of a series take in frames.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SeriesSize {
    /// Its name.
    pub(crate) name: String,
    /// Samples.
    pub(crate) samples: u64,
    /// Bytes of the values, statistics of the frames included.
    pub(crate) value_bytes: u64,
    /// All other bytes of the frames.
    pub(crate) timestamp_bytes: u64,
    /// Bytes of the values under XOR, as in the Gorilla paper.
    pub(crate) xor_bytes: u64,
    /// Frames by the coding that was chosen for their values.
    pub(crate) codings: BTreeMap<String, u64>,
}

/// What all series take in a server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// Samples it holds.
    pub(crate) samples: u64,
    /// memoryUsage of TS.INFO, all series together.
    pub(crate) memory_bytes: u64,
    /// What lies on its disk once everything is there.
    pub(crate) on_disk: Footprint,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When a file cannot be read or the server fails.
pub(crate) fn run(args: &SizeArgs, command: &str) -> Result<()> {
    let recordings = match &args.data {
        Some(dir) => recordings::read(dir)?,
        None => recordings::own()?,
    };
    let latewood = Latewood::default();
    let report = SizeReport {
        machine: Machine::look(command),
        settings: latewood.settings(),
        series: recordings.iter().map(encode).collect::<Result<_>>()?,
        stored: store(&latewood, &recordings)?,
    };
    args.output.finish(&Measurement::Size(report), "size")
}

fn encode(recording: &Recording) -> Result<SeriesSize> {
    let failed = |error: latewood_codec::Error| Error::new(format!("{}: {error}", recording.name));
    let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
    let mut size = SeriesSize {
        name: recording.name.clone(),
        samples: recording.samples.len() as u64,
        value_bytes: 0,
        timestamp_bytes: 0,
        xor_bytes: 0,
        codings: BTreeMap::new(),
    };
    for samples in recording.samples.chunks(FRAME_SAMPLES_MAX) {
        let (timestamps, values): (Vec<i64>, Vec<f64>) = samples.iter().copied().unzip();
        let mut bytes = Vec::new();
        let chosen = encoder.encode(&timestamps, &values, &mut hint, &mut bytes);
        chosen.map_err(failed)?;
        let (frame, len) = Frame::parse(&bytes).map_err(failed)?;
        size.value_bytes += frame.values_len_bytes() as u64;
        size.timestamp_bytes += (len - frame.values_len_bytes()) as u64;
        let coding = format!("{:?}", frame.value_coding());
        *size.codings.entry(coding).or_default() += 1;
        bytes.clear();
        let (time, value) = (TimestampCoding::Raw, ValueCoding::Xor);
        let xor = encoder.encode_as(&timestamps, &values, time, value, &mut bytes);
        xor.map_err(failed)?;
        let (frame, _) = Frame::parse(&bytes).map_err(failed)?;
        size.xor_bytes += frame.values_len_bytes() as u64;
    }
    Ok(size)
}

fn store(latewood: &Latewood, recordings: &[Recording]) -> Result<Stored> {
    let (process, _) = latewood.start()?;
    let mut control = Control::connect(process.address())?;
    let mut commands = Vec::new();
    for recording in recordings {
        let key = recording.name.as_bytes();
        commands.push(vec![b"TS.CREATE".to_vec(), key.to_vec()]);
        for samples in recording.samples.chunks(BATCH_SAMPLES) {
            let mut words = vec![b"TS.MADD".to_vec()];
            for (timestamp_ms, value) in samples {
                words.push(key.to_vec());
                words.push(timestamp_ms.to_string().into_bytes());
                words.push(zmij::Buffer::new().format_finite(*value).into());
            }
            commands.push(words);
        }
    }
    control.run_all(&commands)?;
    fleet::drain(&mut control)?;
    let mut stored = Stored {
        samples: 0,
        memory_bytes: 0,
        on_disk: usage::footprint(&process.data()),
    };
    for recording in recordings {
        let info = control.run(&[b"TS.INFO", recording.name.as_bytes()])?;
        let field = |name| {
            let number = info.field(name).and_then(ReplyExt::number);
            number.map_or(0, i64::cast_unsigned)
        };
        if field("totalSamples") != recording.samples.len() as u64 {
            let text = format!("{} does not hold what was sent", recording.name);
            return Err(Error::new(text));
        }
        stored.samples += field("totalSamples");
        stored.memory_bytes += field("memoryUsage");
    }
    Ok(stored)
}
