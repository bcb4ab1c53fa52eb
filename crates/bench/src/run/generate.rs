//! Lines of the benchmarks for senders of your own: on standard output, or remote writes in a folder.
//!
//! The same arguments give the same bytes. Text protocols are written as they go over the wire,
//! OTLP in JSON, a request a line, remote writes one request a file. What is written is read back
//! by the decoders of the server in `protocol/tests.rs`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;

use crate::base::error::{Doing, Error, Result};
use crate::protocol::{self, Protocol};
use crate::workload::hosts::{CpuLoad, STEP_MS};

/// Write the lines of a benchmark, for senders of your own.
#[derive(Clone, Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The form of the lines
    #[arg(long, value_enum)]
    protocol: Protocol,
    /// Hosts, each with ten tags and ten fields
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    scale: u32,
    /// Hours from the first line to the end, a line every ten seconds
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    hours: u32,
    /// Late lines of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    late: f64,
    /// Lines of a request, for protocols of requests
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Folder for remote writes, a file each
    #[arg(long, value_name = "DIR", required_if_eq("protocol", "prometheus"))]
    out: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    seed: u64,
}

/// Runs the subcommand.
pub(crate) fn run(args: &GenerateArgs) -> Result<()> {
    if !(0.0..=100.0).contains(&args.late) {
        return Err(Error::new("--late: not a number from 0 to 100"));
    }
    let steps = i64::from(args.hours) * 3_600_000 / STEP_MS;
    let lines = i64::from(args.scale) * steps;
    if lines > i64::from(u32::MAX) {
        let text = format!("{lines} lines are more than 2^32; take fewer hosts or hours");
        return Err(Error::new(text));
    }
    let load = CpuLoad::new(args.scale, steps as u32, args.seed);
    let order = load.order(args.late / 100.0, args.seed);
    let batches = load.batches(&order, 1, args.batch as usize).concat();
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).doing(format!("make {}", folder.display()))?;
    }
    let mut stdout = BufWriter::with_capacity(1 << 20, std::io::stdout());
    for (number, batch) in batches.iter().enumerate() {
        let bytes = match args.protocol {
            Protocol::Otlp => protocol::json_line(&load, batch)?,
            protocol => protocol.encode(&load, batch)?.bytes,
        };
        match &args.out {
            Some(folder) => std::fs::write(folder.join(format!("{number:06}")), bytes),
            None => stdout.write_all(&bytes),
        }
        .doing("write a request")?;
    }
    stdout.flush().doing("write standard output")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn made(words: &str) -> Result<Vec<Vec<u8>>> {
        let dir = tempfile::tempdir().unwrap();
        let words = format!("x --out {} {words}", dir.path().display());
        run(&Cli::try_parse_from(words.split(' ')).unwrap().args)?;
        let paths = std::fs::read_dir(dir.path()).unwrap();
        let mut paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        Ok(paths
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect())
    }

    #[test]
    fn the_same_arguments_give_the_same_lines_late_or_not() {
        let words = "--protocol influx --scale 7 --late 20";
        let late = made(words).unwrap();
        assert_eq!((late.len(), &late), (3, &made(words).unwrap()));
        assert_ne!(late, made(&format!("{words} --seed 2")).unwrap());
        let in_order = made("--protocol influx --scale 7").unwrap();
        let [late, in_order] = [late, in_order].map(|files| {
            let text = String::from_utf8(files.concat()).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let sent = lines.clone();
            lines.sort();
            (sent, lines)
        });
        assert_eq!(late.0.len(), 7 * 360);
        assert!(late.0 != in_order.0 && late.1 == in_order.1);
        assert_eq!(
            made("--protocol prometheus --scale 5 --batch 600")
                .unwrap()
                .len(),
            3
        );
        let error = made("--protocol influx --scale 1000000 --hours 1000").unwrap_err();
        assert!(error.to_string().contains("360000000000 lines"), "{error}");
        assert!(Cli::try_parse_from(["x", "--protocol", "prometheus"]).is_err());
    }
}
