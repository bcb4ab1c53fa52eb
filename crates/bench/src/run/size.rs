//! The size report: what real measurements take, coding by coding and as stored.
//!
//! Every series is encoded in whole frames as the engine does, and with the coding of the Gorilla
//! paper for comparison; then all of them go to a server and what lies on its disk is counted,
//! index, labels and all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use latewood_codec::{Encoder, FRAME_SAMPLES_MAX, Frame, Hint, TimestampCoding, ValueCoding};

use super::prelude::*;
use crate::base::reply::count;
use crate::drive::wire::{Wired, all_held, drain};
use crate::measure::usage::footprint;
use crate::server::Latewood;
use crate::workload::recordings::{self, Recording};

/// Samples of one TS.MADD.
const BATCH_SAMPLES: usize = 500;

mode! {
    MODE: size(Args), "Measure bytes a sample on real measurements";
    may data: PathBuf, "Folder with CSV files of rows 'timestamp,value' [default: a few that come along]";
}

fn size(args: &Args, report: &mut Report) -> Result<()> {
    let recordings = match &args.data {
        Some(dir) => recordings::read(dir)?,
        None => recordings::own()?,
    };
    let latewood = Latewood::default();
    let stored = store(&latewood, &recordings)?;
    report.share(json!({"settings": latewood.settings(), "stored": stored}));
    for recording in &recordings {
        report.push("series", encode(recording)?)?;
    }
    Ok(())
}

/// What the samples of a series take in frames: the values, statistics of the frames included, all
/// other bytes, and the values under XOR.
fn encode(recording: &Recording) -> Result<Value> {
    let failed = |error: latewood_codec::Error| Error::new(format!("{}: {error}", recording.name));
    let (mut encoder, mut hint) = (Encoder::new(), Hint::default());
    let (mut value_bytes, mut timestamp_bytes, mut xor_bytes) = (0, 0, 0);
    let mut codings: BTreeMap<String, u64> = BTreeMap::new();
    for samples in recording.samples.chunks(FRAME_SAMPLES_MAX) {
        let (timestamps, values): (Vec<i64>, Vec<f64>) = samples.iter().copied().unzip();
        let mut bytes = Vec::new();
        let encoded = encoder.encode(&timestamps, &values, &mut hint, &mut bytes);
        encoded.map_err(failed)?;
        let (frame, len) = Frame::parse(&bytes).map_err(failed)?;
        value_bytes += frame.values_len_bytes();
        timestamp_bytes += len - frame.values_len_bytes();
        let coding = format!("{:?}", frame.value_coding());
        *codings.entry(coding).or_default() += 1;
        bytes.clear();
        let (time, value) = (TimestampCoding::Raw, ValueCoding::Xor);
        let xor = encoder.encode_as(&timestamps, &values, time, value, &mut bytes);
        xor.map_err(failed)?;
        let (frame, _) = Frame::parse(&bytes).map_err(failed)?;
        xor_bytes += frame.values_len_bytes();
    }
    Ok(json!({
        "name": recording.name, "samples": recording.samples.len(), "value_bytes": value_bytes,
        "timestamp_bytes": timestamp_bytes, "xor_bytes": xor_bytes, "codings": codings,
    }))
}

/// What all series take in a server.
fn store(latewood: &Latewood, recordings: &[Recording]) -> Result<Value> {
    let mut server = Wired::start(latewood)?;
    let control = &mut server.control;
    for Recording { name, samples } in recordings {
        control.run(&format!("TS.CREATE {name}"))?;
        let madd = |samples: &[(i64, f64)]| {
            let word = |(at, value): &(i64, f64)| {
                format!(" {name} {at} {}", zmij::Buffer::new().format_finite(*value))
            };
            format!("TS.MADD{}", samples.iter().map(word).collect::<String>())
        };
        control.run_all(samples.chunks(BATCH_SAMPLES).map(madd))?;
    }
    drain(control)?;
    let on_disk = footprint(&server.process.data());
    let (mut samples, mut memory_bytes) = (0, 0);
    for recording in recordings {
        let info = control.run(&format!("TS.INFO {}", recording.name))?;
        let held = count(&info, "totalSamples")?;
        all_held(held, recording.samples.len() as u64)?;
        samples += held;
        memory_bytes += count(&info, "memoryUsage")?;
    }
    Ok(json!({"samples": samples, "memory_bytes": memory_bytes, "on_disk": on_disk}))
}
