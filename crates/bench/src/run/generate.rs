//! Lines of the benchmarks for senders of your own: to a file, to several, or to standard output.
//!
//! The same arguments give the same bytes. Text protocols are written as they go over the wire,
//! OTLP in JSON, a request a line, remote writes one request a file. Tested by reading what was
//! written with the decoders of the server (`protocol/tests.rs`, and below).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::base::error::{Doing, Error, Result};
use crate::protocol::{self, Protocol, walk};
use crate::workload::hosts::{Batch, CpuLoad, STEP_MS};
use crate::workload::output::Output;
use crate::workload::sensors::Plan;

/// Write the lines of a benchmark, for senders of your own.
#[derive(Clone, Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The form of the lines
    #[arg(long, value_enum)]
    protocol: Protocol,
    /// What is measured
    #[arg(long, value_enum, default_value = "cpu")]
    workload: Workload,
    /// Hosts of `cpu`, series of `walk`
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    scale: u32,
    /// Hours from the first line to the end, a line every ten seconds
    #[arg(long, default_value_t = 1.0, value_parser = hours)]
    hours: f64,
    /// Late lines of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = super::options::percent)]
    late: f64,
    /// Lines of a request, for protocols of requests
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Compress with gzip
    #[arg(long)]
    gzip: bool,
    /// Share hosts or series out among so many files, OUT.1, OUT.2, ...
    #[arg(long, requires = "out", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    files: Option<u32>,
    /// File to write to, a folder for remote writes [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    seed: u64,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// The cpu-only shape of TSBS: ten tags and ten whole numbers a line.
    Cpu,
    /// Sensors with six tags, a random walk each; by Akumuli's protocol.
    Walk,
}

/// Runs the subcommand.
pub(crate) fn run(args: &GenerateArgs) -> Result<()> {
    let steps = (args.hours * 3_600_000.0 / STEP_MS as f64).ceil().max(1.0);
    let lines = f64::from(args.scale) * steps;
    if lines > f64::from(u32::MAX) {
        let text = format!("{lines} lines are more than 2^32; take fewer hosts or hours");
        return Err(Error::new(text));
    }
    match (args.workload, args.protocol) {
        (Workload::Cpu, _) => cpu(args, steps as u32),
        (Workload::Walk, Protocol::Akumuli) => walk(args, steps as u32),
        (Workload::Walk, _) => Err(Error::new("walk is written by --protocol akumuli only")),
    }
}

fn cpu(args: &GenerateArgs, steps: u32) -> Result<()> {
    let load = CpuLoad::new(args.scale, steps, args.seed);
    let order = load.order(args.late / 100.0, args.seed);
    let names = args.names();
    let dealt = load.batches(&order, names.len(), args.batch as usize);
    for (batches, out) in dealt.iter().zip(names) {
        if args.protocol == Protocol::Prometheus {
            let missing =
                "remote writes are requests, not lines: name a folder for them with --out";
            let folder = out.ok_or_else(|| Error::new(missing))?;
            requests(args, &load, batches, &folder)?;
            continue;
        }
        let mut out = Output::open(out.as_deref(), args.gzip)?;
        for batch in batches {
            match args.protocol {
                Protocol::Otlp => out.write(&protocol::json_line(&load, batch)?)?,
                text => out.write(&text.encode(&load, batch)?.bytes)?,
            }
        }
        out.finish()?;
    }
    Ok(())
}

/// A file of each batch.
fn requests(args: &GenerateArgs, load: &CpuLoad, batches: &[Batch], folder: &Path) -> Result<()> {
    if args.gzip {
        return Err(Error::new("remote writes are compressed already"));
    }
    std::fs::create_dir_all(folder).doing(format!("make {}", folder.display()))?;
    for (number, batch) in batches.iter().enumerate() {
        let mut out = Output::open(Some(&folder.join(format!("{number:06}"))), false)?;
        out.write(&args.protocol.encode(load, batch)?.bytes)?;
        out.finish()?;
    }
    Ok(())
}

fn walk(args: &GenerateArgs, steps: u32) -> Result<()> {
    let plan = Plan {
        series: u64::from(args.scale),
        rounds: steps,
        late_percent: args.late,
        reverse: false,
        seed: args.seed,
    };
    plan.check()?;
    let names = args.names();
    let parts = plan.parts(names.len());
    for (mut part, out) in parts.into_iter().zip(names) {
        let mut out = Output::open(out.as_deref(), args.gzip)?;
        walk::write(&mut part, steps, |text| out.write(text))?;
        out.finish()?;
    }
    Ok(())
}

impl GenerateArgs {
    /// The files, or none for standard output.
    fn names(&self) -> Vec<Option<PathBuf>> {
        let (Some(out), Some(files)) = (&self.out, self.files) else {
            return vec![self.out.clone()];
        };
        let numbered = |number| PathBuf::from(format!("{}.{number}", out.display()));
        (1..=files).map(numbered).map(Some).collect()
    }
}

fn hours(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if hours > 0.0 && hours.is_finite() => Ok(hours),
        _ => Err("must be a number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: GenerateArgs,
    }

    /// What `words` write, into a folder of its own; by name.
    fn made(words: &str) -> Result<Vec<(String, Vec<u8>)>> {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("x");
        let hours = if words.contains("--hours") {
            ""
        } else {
            " --hours 0.05"
        };
        let words = format!("x --protocol {words}{hours}");
        let words = words.replace("OUT", &out.display().to_string());
        let cli = Cli::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        run(&cli.args)?;
        let folder = if out.is_dir() { &out } else { dir.path() };
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        };
        let mut made: Vec<_> = std::fs::read_dir(folder).unwrap().map(read).collect();
        made.sort();
        Ok(made)
    }

    fn text(file: &(String, Vec<u8>)) -> String {
        String::from_utf8(file.1.clone()).unwrap()
    }

    fn names(files: &[(String, Vec<u8>)]) -> Vec<&str> {
        files.iter().map(|file| file.0.as_str()).collect()
    }

    #[test]
    fn the_same_arguments_give_the_same_bytes() {
        let words = "influx --scale 7 --late 20 --out OUT";
        let first = made(words).unwrap();
        assert_eq!(first, made(words).unwrap());
        assert_ne!(first, made(&format!("{words} --seed 2")).unwrap());
        let late = text(&first[0]);
        let in_order = text(&made(&words.replace("20", "0")).unwrap()[0]);
        let mut late: Vec<&str> = late.lines().collect();
        let mut in_order: Vec<&str> = in_order.lines().collect();
        assert_ne!(late, in_order);
        assert_eq!(late.len(), 7 * 18);
        late.sort_unstable();
        in_order.sort_unstable();
        assert_eq!(late, in_order, "late lines are the same lines");
    }

    #[test]
    fn compressed_is_the_same() {
        for protocol in ["opentsdb", "akumuli", "otlp", "redis"] {
            let words = format!("{protocol} --scale 3 --out OUT");
            let plain = made(&words).unwrap().remove(0).1;
            let packed = made(&format!("{words} --gzip")).unwrap().remove(0).1;
            let mut unpacked = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(&packed[..]);
            reader.read_to_end(&mut unpacked).unwrap();
            assert!(packed.len() < plain.len() / 2);
            assert!(unpacked == plain, "{protocol}");
        }
    }

    #[test]
    fn files_share_the_hosts_and_remote_writes_are_files() {
        let files = made("influx --scale 5 --files 2 --out OUT").unwrap();
        assert_eq!(names(&files), ["x.1", "x.2"]);
        let [first, second] = [0, 1].map(|at| text(&files[at]));
        assert!(first.contains("host_0,") && !first.contains("host_1,"));
        assert_eq!(first.lines().count() + second.lines().count(), 5 * 18);
        let requests = made("prometheus --scale 5 --batch 40 --out OUT").unwrap();
        assert_eq!(names(&requests), ["000000", "000001", "000002"]);
    }

    #[test]
    fn what_does_not_go_together_is_said() {
        for (words, expected) in [
            ("prometheus", "--out"),
            ("influx --workload walk", "akumuli"),
            ("influx --scale 1000000 --hours 1000", "360000000000 lines"),
        ] {
            let error = made(words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
