//! A report goes on without a peer that does not start, and says so.

use super::*;
use crate::report;
use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: LateArgs,
}

fn empty_report() -> LateReport {
    LateReport {
        machine: Machine::look("late"),
        settings: Settings {
            repeats: 2,
            preload: 0,
            warmup: 0,
            seed: 1,
            rate: 0.0,
            client_threads: 1,
        },
        targets: Vec::new(),
        absent: Absent::default(),
        runs: Vec::new(),
    }
}

/// Two repeats of one cell on both systems; `run` says what comes of a target.
fn measured(run: impl Fn(&Target) -> Result<Measured>) -> Result<LateReport> {
    let words = "x --start latewood --start redistimeseries";
    let args = Cli::parse_from(words.split(' ')).args;
    let (cells, _) = args.cells()?;
    let mut report = empty_report();
    for repeat in 0..2 {
        for target in args.targets() {
            let info = TargetInfo {
                name: target.name(),
                version: "1".to_owned(),
                settings: String::new(),
            };
            report.take(&target, &cells[0], repeat, || Ok((info, run(&target)?)))?;
        }
    }
    Ok(report)
}

#[test]
fn a_peer_that_cannot_start_is_named_on_the_page_and_the_rest_is_measured() {
    let report = measured(|target| match target.is_started_peer() {
        true => Err(Error::new("install failed: for Linux x86_64 only")),
        false => Ok(Measured::default()),
    });
    let report = report.unwrap();
    let targets: Vec<&str> = report.runs.iter().map(|run| run.target.as_str()).collect();
    assert_eq!(targets, ["Latewood", "Latewood"]);
    let page = report::text(&Measurement::Late(report), "late").unwrap();
    let said = "**RedisTimeSeries: not measured here: install failed: for Linux x86_64 only**";
    assert!(page.contains(said), "{page}");
    assert!(page.contains("| Latewood |"), "{page}");
}

#[test]
fn what_is_compared_treats_duplicates_alike() {
    let both = "x --start latewood --start redistimeseries";
    let refused = |words: &str| {
        let args = Cli::parse_from(words.split(' ')).args;
        let (cells, _) = args.cells().unwrap();
        same_policy(&args.targets(), &cells).is_err()
    };
    assert!(refused(both) && refused(&format!("{both} --matrix late=0,99")));
    assert!(!refused(&format!("{both} --policy last")));
    assert!(!refused(&format!(
        "{both} --matrix late=0 policy=LAST,BLOCK"
    )));
    assert!(!refused("x --start latewood --start latewood-no-wal"));
    assert!(!refused("x --start redistimeseries"));
}

#[test]
fn latewood_that_fails_is_a_failure() {
    let failed = measured(|target| match target.is_started_peer() {
        true => Ok(Measured::default()),
        false => Err(Error::new("3 samples lost")),
    });
    assert_eq!(failed.unwrap_err().to_string(), "3 samples lost");
}
