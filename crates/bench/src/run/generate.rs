//! Lines of the benchmarks for senders of your own: to a file, to several, or to standard output.
//!
//! The same arguments give the same bytes. Text protocols are written as they go over the wire,
//! so that `nc`, `curl` or `redis-cli --pipe` can send them; OTLP is written in JSON, a request a
//! line, as the collector reads files; remote writes are written one request a file. Tested by
//! reading what was written with the decoders of the server (`protocol/tests.rs`, and below).

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
    let steps = if steps <= f64::from(u32::MAX) {
        steps as u32
    } else {
        return Err(Error::new("so many hours are too many lines"));
    };
    match (args.workload, args.protocol) {
        (Workload::Cpu, _) => cpu(args, steps),
        (Workload::Walk, Protocol::Akumuli) => walk(args, steps),
        (Workload::Walk, _) => Err(Error::new("walk is written by --protocol akumuli only")),
    }
}

fn cpu(args: &GenerateArgs, steps: u32) -> Result<()> {
    let lines = u64::from(args.scale) * u64::from(steps);
    if u32::try_from(lines).is_err() {
        return Err(Error::new(format!(
            "{lines} lines are more than 2^32; take fewer hosts or hours"
        )));
    }
    let load = CpuLoad::new(args.scale, steps, args.seed);
    let order = load.order(args.late / 100.0, args.seed);
    let parts = args.files.unwrap_or(1) as usize;
    let dealt = load.batches(&order, parts, args.batch as usize);
    for (batches, out) in dealt.iter().zip(args.names()) {
        match (args.protocol, &out) {
            (Protocol::Prometheus, Some(folder)) => requests(args, &load, batches, folder)?,
            (Protocol::Prometheus, None) => {
                return Err(Error::new(
                    "remote writes are requests, not lines: name a folder for them with --out",
                ));
            }
            _ => lines_of(args, &load, batches, out.as_deref())?,
        }
    }
    Ok(())
}

/// One file of all batches.
fn lines_of(
    args: &GenerateArgs,
    load: &CpuLoad,
    batches: &[Batch],
    out: Option<&Path>,
) -> Result<()> {
    let mut out = Output::open(out, args.gzip)?;
    for batch in batches {
        match args.protocol {
            Protocol::Otlp => out.write(&protocol::json_line(load, batch)?)?,
            text => out.write(&text.encode(load, batch)?.bytes)?,
        }
    }
    out.finish()
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
    let parts = plan.parts(args.files.unwrap_or(1) as usize);
    for (mut part, out) in parts.into_iter().zip(args.names()) {
        let mut out = Output::open(out.as_deref(), args.gzip)?;
        walk::write(&mut part, steps, |text| out.write(text))?;
        out.finish()?;
    }
    Ok(())
}

impl GenerateArgs {
    /// The files, or none for standard output.
    fn names(&self) -> Vec<Option<PathBuf>> {
        let numbered = |out: &Path, number| {
            let mut name = out.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        match (&self.out, self.files) {
            (Some(out), Some(files)) => (1..=files)
                .map(|number| Some(numbered(out, number)))
                .collect(),
            (out, _) => vec![out.clone()],
        }
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
        let out = dir.path().join("x").display().to_string();
        let words = words.replace("OUT", &out);
        let args = Cli::try_parse_from(std::iter::once("x").chain(words.split(' ')))
            .unwrap_or_else(|error| panic!("{error}"))
            .args;
        run(&args)?;
        let mut made = Vec::new();
        let mut folders = vec![dir.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => made.push((
                        path.file_name().unwrap().to_str().unwrap().to_owned(),
                        std::fs::read(&path).unwrap(),
                    )),
                }
            }
        }
        made.sort();
        Ok(made)
    }

    #[test]
    fn the_same_arguments_give_the_same_bytes() {
        let words = "--protocol influx --scale 7 --hours 0.1 --late 20 --out OUT";
        let first = made(words).unwrap();
        assert_eq!(first, made(words).unwrap());
        let text = String::from_utf8(first[0].1.clone()).unwrap();
        assert_eq!(text.lines().count(), 7 * 36);
        let other = made(&format!("{words} --seed 2")).unwrap();
        assert_ne!(first[0].1, other[0].1);
        let mut sorted: Vec<&str> = text.lines().collect();
        let in_order = made(&words.replace("20", "0")).unwrap();
        let in_order = String::from_utf8(in_order[0].1.clone()).unwrap();
        let mut lines: Vec<&str> = in_order.lines().collect();
        assert_ne!(sorted, lines);
        sorted.sort_unstable();
        lines.sort_unstable();
        assert_eq!(sorted, lines, "late lines are the same lines");
    }

    #[test]
    fn compressed_is_the_same() {
        for protocol in ["opentsdb", "akumuli", "otlp", "redis"] {
            let words = format!("--protocol {protocol} --scale 3 --hours 0.05 --out OUT");
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
        let words = "--protocol influx --scale 5 --hours 0.05 --files 2 --out OUT";
        let files = made(words).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
        assert_eq!(names, ["x.1", "x.2"]);
        let of = |at: usize| String::from_utf8(files[at].1.clone()).unwrap();
        assert!(of(0).contains("host_0,") && !of(0).contains("host_1,"));
        assert_eq!(of(0).lines().count() + of(1).lines().count(), 5 * 18);
        let words = "--protocol prometheus --scale 5 --hours 0.05 --batch 40 --out OUT";
        let requests = made(words).unwrap();
        let names: Vec<&str> = requests.iter().map(|file| file.0.as_str()).collect();
        assert_eq!(names, ["000000", "000001", "000002"]);
    }

    #[test]
    fn what_does_not_go_together_is_said() {
        let error = |words| made(words).unwrap_err().to_string();
        let folder = error("--protocol prometheus");
        assert!(folder.contains("--out"), "{folder}");
        let walk = error("--protocol influx --workload walk");
        assert!(walk.contains("akumuli"), "{walk}");
        let many = error("--protocol influx --scale 1000000 --hours 1000");
        assert!(many.contains("360000000000 lines"), "{many}");
    }
}
