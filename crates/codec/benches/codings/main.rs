//! Size and speed of every coding on synthetic and real data.
//!
//! `cargo bench -p latewood-codec` prints two tables: value codings on frames
//! with regular timestamps, and timestamp codings under one kind of values.
//! `frame` is what the encoder chooses. `--json FILE` writes the raw results;
//! `--series FILE` (again and again) adds a CSV of `unix_ms,value` rows;
//! `--only WORD` keeps the data sets whose name contains it.
//! Times are the best of several rounds, so that neighbours disturb little.

mod data;
mod measure;

use data::Series;
use latewood_codec::{TimestampCoding, ValueCoding};
use measure::{Codings, Row};
use std::error::Error;
use std::fmt::Write as _;

/// Bits per value at 1,024 a block, ns per value, measured earlier on a 2-core
/// AMD EPYC (Zen 4, AVX-512) with other implementations: for orientation only.
/// Order: Gorilla, pco level 8, decimal family (the best of the two measured).
const REFERENCE_BITS: [(&str, [f64; 3]); 4] = [
    ("cpu integers", [5.8, 3.4, 3.2]),
    ("walk, 2 decimals", [49.4, 9.2, 8.5]),
    ("counter", [15.9, 6.2, 6.3]),
    ("full-precision walk", [55.2, 51.2, 53.0]),
];
/// Bits per timestamp on the same machine: Gorilla, delta + PFOR with restarts.
const REFERENCE_TIMESTAMP_BITS: [(&str, [f64; 2]); 5] = [
    ("regular 10 s", [1.13, 0.09]),
    ("1 % missing", [1.55, 0.42]),
    ("scrape 15 s +- 2 ms", [8.46, 4.38]),
    ("drift", [6.46, 2.09]),
    ("Poisson 1 s", [15.3, 12.4]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut rows = Vec::new();

    println!("Values, frames of 512, regular timestamps; ns per sample of the whole frame\n");
    println!("| data | coding | bytes/value | encode ns | decode ns | reference bytes/value |");
    println!("|---|---|---|---|---|---|");
    let mut value_sets = data::values();
    value_sets.extend(data::weather()?);
    for path in &options.series {
        value_sets.push(data::read(path)?);
    }
    for series in value_sets
        .iter()
        .filter(|series| options.wants(&series.name))
    {
        let codings = ValueCoding::ALL.map(|value| Codings::Fixed(TimestampCoding::Regular, value));
        for codings in codings.into_iter().chain([Codings::Chosen]) {
            if let Some(row) = measure::values(series, codings) {
                print_value_row(&row);
                rows.push(row);
            }
        }
    }
    print_mean(&rows);

    println!("\nTimestamps, frames of 512; exists: half of the timestamps looked for are there\n");
    println!(
        "| data | coding | bytes/timestamp | encode ns | decode ns | exists ns | reference bytes |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut time_sets = data::timestamps();
    time_sets.extend(data::weather()?.into_iter().take(1));
    for series in time_sets
        .iter()
        .filter(|series| options.wants(&series.name))
    {
        let codings = TimestampCoding::ALL.map(|time| Codings::Fixed(time, ValueCoding::Constant));
        for codings in codings.into_iter().chain([Codings::Chosen]) {
            if let Some(row) = measure::timestamps(series, codings) {
                print_timestamp_row(&row);
                rows.push(row);
            }
        }
    }
    if let Some(path) = options.json {
        std::fs::write(path, to_json(&rows))?;
    }
    Ok(())
}

struct Options {
    json: Option<String>,
    series: Vec<String>,
    only: Option<String>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            json: None,
            series: Vec::new(),
            only: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--json" => options.json = Some(value()?),
                "--series" => options.series.push(value()?),
                "--only" => options.only = Some(value()?),
                // Cargo passes this to every benchmark.
                "--bench" => {}
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
    }
}

fn print_value_row(row: &Row) {
    let reference = REFERENCE_BITS
        .iter()
        .find(|(name, _)| *name == row.data)
        .map(|(_, bits)| match row.coding.as_str() {
            "Xor" => format!("{:.2} (Gorilla)", bits[0] / 8.0),
            "frame" => format!(
                "{:.2} (decimal family), {:.2} (pco 8)",
                bits[2] / 8.0,
                bits[1] / 8.0
            ),
            _ => String::new(),
        });
    println!(
        "| {} | {} | {:.3} | {:.2} | {:.2} | {} |",
        row.data,
        row.coding,
        row.bytes,
        row.encode_ns,
        row.decode_ns,
        reference.unwrap_or_default()
    );
}

fn print_timestamp_row(row: &Row) {
    let reference = REFERENCE_TIMESTAMP_BITS
        .iter()
        .find(|(name, _)| *name == row.data)
        .map(|(_, bits)| match row.coding.as_str() {
            "Gorilla" => format!("{:.2}", bits[0] / 8.0),
            "frame" => format!("{:.2} (delta + PFOR)", bits[1] / 8.0),
            _ => String::new(),
        });
    println!(
        "| {} | {} | {:.3} | {:.2} | {:.2} | {:.1} | {} |",
        row.data,
        row.coding,
        row.bytes,
        row.encode_ns,
        row.decode_ns,
        row.exists_ns.unwrap_or(f64::NAN),
        reference.unwrap_or_default()
    );
}

fn print_mean(rows: &[Row]) {
    for coding in ["Xor", "frame"] {
        let real: Vec<f64> = rows
            .iter()
            .filter(|row| row.is_real && row.coding == coding)
            .map(|row| row.bytes)
            .collect();
        if !real.is_empty() {
            let mean = real.iter().sum::<f64>() / real.len() as f64;
            println!(
                "\nMean of {} real series, {coding}: {mean:.3} bytes/value",
                real.len()
            );
        }
    }
}

fn to_json(rows: &[Row]) -> String {
    let mut json = String::from("[\n");
    for (index, row) in rows.iter().enumerate() {
        let exists = row
            .exists_ns
            .map_or("null".to_owned(), |ns| format!("{ns:.3}"));
        // Names are ours or file names; quotes and backslashes would be the only trouble.
        let name = row.data.replace(['"', '\\'], "_");
        let _ = write!(
            json,
            "{}{{\"data\":\"{name}\",\"coding\":\"{}\",\"part\":\"{}\",\"bytes\":{:.5},\"encode_ns\":{:.3},\"decode_ns\":{:.3},\"exists_ns\":{exists}}}",
            if index == 0 { "" } else { ",\n" },
            row.coding,
            row.part,
            row.bytes,
            row.encode_ns,
            row.decode_ns,
        );
    }
    json.push_str("\n]\n");
    json
}

/// The frames of a series, 512 samples each; a short last frame is left out.
fn frames(series: &Series) -> impl Iterator<Item = (&[i64], &[f64])> {
    series
        .timestamps
        .chunks_exact(512)
        .zip(series.values.chunks_exact(512))
}
