//! The measurements behind `docs/benchmarks`, one after the other.
//!
//! They are plain command lines, so that anybody can run one of them alone.

use std::path::PathBuf;

use clap::{Args, Parser};

use crate::error::{Doing, Error, Result};
use crate::{Cli, dispatch};

/// Name of the report and what is measured; `{late}` and `{repeats}` are filled in.
const REPORTS: [(&str, &str); 17] = [
    (
        "late",
        "{late} encoding=compressed chunk=4096 policy=LAST repeats={repeats}",
    ),
    (
        "late-block",
        "{late} encoding=compressed chunk=4096 policy=BLOCK late=0,10,50,99 repeats={repeats}",
    ),
    (
        "late-rules",
        "{late} encoding=compressed chunk=4096 policy=LAST late=0,25,99 rules=0,1,5 repeats={repeats}",
    ),
    (
        "late-uncompressed",
        "{late} encoding=uncompressed chunk=4096 policy=LAST late=0,10,99 repeats={repeats}",
    ),
    (
        "late-chunk-256",
        "{late} encoding=compressed chunk=256 policy=LAST late=0,10,99 repeats={repeats}",
    ),
    (
        "late-pipeline-1",
        "late --start latewood --start redistimeseries --series 32 --samples 10000 \
         --matrix late=0,10,99 encoding=compressed chunk=4096 pipeline=1 connections=32 \
         policy=LAST repeats={repeats}",
    ),
    ("durable", "durable --repeats {repeats}"),
    (
        "fleet",
        "fleet --series 100000 --samples 20000000 --repeats {repeats}",
    ),
    (
        "recover",
        "recover --series 100000 --samples 20000000 --late 10 --repeats 3",
    ),
    (
        "recover-flushed",
        "recover --series 100000 --samples 20000000 --late 0 --flushed --repeats 3",
    ),
    ("wear", "wear --series 10000 --samples 10000000 --repeats 3"),
    (
        "mixed",
        "mixed --series 100000 --samples 20000000 --repeats 3",
    ),
    ("size", "size"),
    ("query", "query --repeats {repeats}"),
    (
        "inprocess",
        "inprocess --samples 4000000 --repeats {repeats}",
    ),
    ("new", "new --repeats {repeats}"),
    // Last, since it needs peers that not every machine can have.
    ("lines", "lines --repeats 3"),
];

/// What the late reports at pipeline 50 share.
const LATE: &str = "late --start latewood --start redistimeseries --series 32 --samples 25000 \
                    --warmup 2000 --matrix pipeline=50 connections=8";

/// Make every report of docs/benchmarks again (about two hours).
#[derive(Debug, Args)]
pub(crate) struct AllArgs {
    /// Folder for runs, pages and charts
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    out: PathBuf,
    /// Runs of every cell
    #[arg(long, default_value_t = 5)]
    repeats: usize,
}

/// Runs the subcommand.
///
/// # Errors
/// With the first measurement that fails.
pub(crate) fn run(args: &AllArgs) -> Result<()> {
    let out = args.out.display().to_string();
    std::fs::create_dir_all(&args.out).doing(format!("make {out}"))?;
    for (name, words) in REPORTS {
        let command = command(name, words, &out, args.repeats);
        eprintln!("latewood-bench {command}");
        let words = std::iter::once("latewood-bench").chain(command.split_whitespace());
        let cli = Cli::try_parse_from(words).map_err(|error| Error::new(error.to_string()))?;
        dispatch(cli.mode, &command)?;
    }
    Ok(())
}

fn command(name: &str, words: &str, out: &str, repeats: usize) -> String {
    let words = words.replace("{late}", LATE);
    let words = words.replace("{repeats}", &repeats.to_string());
    format!("{words} --json {out}/{name}.json --out {out}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_a_command_that_parses() {
        for (name, words) in REPORTS {
            let command = command(name, words, "d", 3);
            assert!(command.contains(&format!("d/{name}.json")));
            let words = std::iter::once("latewood-bench").chain(command.split_whitespace());
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}
