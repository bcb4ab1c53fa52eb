//! The late reports: what a share of late samples costs a server, over its own protocol.

use clap::Args;
use latewood_tls::ClientOptions;
use serde_json::{Value, json};

use super::options::{percent, positive, rule_count};
use super::report::{Output, Report, turns};
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::drive::cell::{self, Cell, Fixed, KEY_PREFIX};
use crate::drive::wire;
use crate::server::{Info, System, Target};

/// Axes of a matrix in the order they vary, the last fastest: the word, the field of a cell, and
/// the values of an axis that is not named; without any that of the other options.
const AXES: [[&str; 3]; 8] = [
    ["policy", "policy", ""],
    ["rules", "rules", ""],
    ["shape", "shape", ""],
    ["connections", "connections", "1,8,64"],
    ["pipeline", "pipeline", "1,50"],
    ["chunk", "chunk_size", "256,4096"],
    ["encoding", "encoding", "compressed,uncompressed"],
    ["late", "late_percent", "0,1,5,10,25,50,99"],
];

/// Measure what late samples cost a RESP time-series server.
#[derive(Debug, Args)]
pub(crate) struct LateArgs {
    /// Host of the server under test
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port of the server under test
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// A running server to measure under a name, as NAME=HOST:PORT; several alternate
    #[arg(long, value_parser = Target::parse)]
    target: Vec<Target>,
    /// A system to start afresh for every run; several alternate
    #[arg(long, value_enum)]
    start: Vec<System>,

    /// Late samples of a hundred
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    late: f64,
    /// DUPLICATE_POLICY of every series [default: the server's]
    #[arg(long, ignore_case = true, value_parser = ["BLOCK", "FIRST", "LAST", "MIN", "MAX", "SUM"])]
    policy: Option<String>,
    /// Series; a matrix uses at least one for each connection
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    series: u64,
    /// Samples of each series; a matrix keeps series x samples constant
    #[arg(long, default_value_t = 100_000)]
    samples: u64,
    /// Compaction rules of each series, up to 5: avg/10, max/60, sum/100, min/600, count/1000
    #[arg(long, default_value_t = 0, value_parser = rule_count)]
    rules: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 12_345)]
    seed: u64,
    /// Samples of each series sent before the clock starts
    #[arg(long, default_value_t = 0)]
    warmup: u64,
    /// Samples of each series sent in order before that, and moved to disk where the server has
    /// a budget for its memory
    #[arg(long, default_value_t = 0)]
    preload: u64,
    /// Budget for the memory of the Latewoods this program starts, such as 64mb
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Prefix of the keys; they must not exist and are deleted afterwards
    #[arg(long, default_value = KEY_PREFIX)]
    key_prefix: String,

    /// Measure many cells: all, or those of axes such as late=0,99 encoding=compressed
    /// chunk=256,4096 pipeline=1,50 connections=1,8,64 policy=LAST,BLOCK rules=0,1,5
    /// shape=delays,backfill repeats=5; one cell: chunk=4096 pipeline=50, a connection a series
    #[arg(long, num_args = 0.., value_name = "AXIS=VALUES")]
    matrix: Option<Vec<String>>,
    #[command(flatten)]
    tls: ClientOptions,
    #[command(flatten)]
    output: Output,
}

/// Runs the subcommand; `command` is its command line, for the report.
pub(crate) fn run(args: &LateArgs, command: &str) -> Result<()> {
    let (fixed, targets) = (args.fixed(), args.targets()?);
    let (cells, repeats) = args.cells()?;
    same_policy(&targets, &cells)?;
    let mut settings = json!(fixed);
    settings["repeats"] = repeats.into();
    let shared = json!({"settings": settings});
    let mut report = Report::begin("late", command, &args.output, shared);
    let total = cells.len() * repeats * targets.len();
    for cell in &cells {
        for repeat in 0..repeats {
            for at in turns(repeat, targets.len()) {
                let number = report.len("runs") + 1;
                let label = format!("{number}/{total} {}", targets[at].name());
                let turn = (repeat, label);
                run_cell(&mut report, "runs", &targets[at], turn, cell, &fixed)?;
            }
        }
    }
    report.finish()
}

/// Adds a run of one cell on one server to a list, unless it is a peer that cannot be measured.
pub(super) fn run_cell(
    report: &mut Report,
    list: &str,
    target: &Target,
    (repeat, label): (usize, String),
    cell: &Cell,
    fixed: &Fixed,
) -> Result<()> {
    let name = target.name();
    let turn = || {
        let ready = target.ready()?;
        let version = wire::version(&mut Control::connect(&ready.address)?)?;
        let measured = cell::measure(&ready.address, cell, fixed, label, |_, _| Ok(()))?;
        let info = Info {
            name: target.name(),
            version,
            settings: ready.settings.clone(),
        };
        Ok((info, measured))
    };
    let Some((info, measured)) = report.turn(&name, target.is_started_peer(), turn)? else {
        return Ok(());
    };
    report.note(&info);
    let run = json!({"target": name, "repeat": repeat, "cell": cell, "measured": measured});
    report.push(list, run)
}

/// Systems that are compared must treat duplicates alike: an error when a peer is started beside
/// others and a cell leaves the policy to each of them.
fn same_policy(targets: &[Target], cells: &[Cell]) -> Result<()> {
    let has_peer = targets.iter().any(Target::is_started_peer);
    if targets.len() > 1 && has_peer && cells.iter().any(|cell| cell.policy.is_empty()) {
        return Err(Error::new(
            "servers have different duplicate policies by default: name one, such as \
             --policy LAST or --matrix policy=LAST",
        ));
    }
    Ok(())
}

impl LateArgs {
    fn fixed(&self) -> Fixed {
        Fixed {
            preload: self.preload,
            key_prefix: self.key_prefix.clone(),
            ..Fixed::new(self.seed, self.warmup)
        }
    }

    fn targets(&self) -> Result<Vec<Target>> {
        let (_, is_tls) = self.tls.split(&self.host).map_err(Error::new)?;
        let connector = self.tls.connector(is_tls).map_err(Error::new)?;
        let started = |&system: &System| Target::Start {
            system,
            memory: self.memory.clone(),
        };
        let mut targets: Vec<Target> = self.start.iter().map(started).collect();
        let running = self.target.iter().cloned();
        targets.extend(running.map(|target| target.by(&connector)));
        if targets.is_empty() {
            let address = Address::new(&format!("{}:{}", self.host, self.port));
            let name = address.to_string();
            targets.push(Target::Running { name, address }.by(&connector));
        }
        Ok(targets)
    }

    /// The cells to measure and how often each.
    fn cells(&self) -> Result<(Vec<Cell>, usize)> {
        let single = Cell {
            late_percent: self.late,
            policy: self.policy.clone().unwrap_or_default().to_uppercase(),
            rules: self.rules,
            ..Cell::in_order(self.series, self.samples, 50)
        };
        match &self.matrix {
            None => Ok((vec![single], 1)),
            Some(words) => matrix(words, &single),
        }
    }
}

/// Every combination of words such as `late=0,99`, and how often each is measured. The total
/// number of samples is that of `base`; each connection has a series of its own at least.
fn matrix(words: &[String], base: &Cell) -> Result<(Vec<Cell>, usize)> {
    let wrong = |word: &str| Error::new(format!("--matrix does not know {word:?}"));
    let mut repeats = 5;
    let mut axes = AXES;
    for word in words {
        let (axis, values) = word.split_once('=').ok_or_else(|| wrong(word))?;
        if axis == "repeats" {
            repeats = positive(values).map_err(|_| wrong(word))?;
            continue;
        }
        let named = axes.iter_mut().find(|[known, ..]| *known == axis);
        named.ok_or_else(|| wrong(word))?[2] = values;
    }
    let mut cells = vec![json!(base)];
    for [_, field, values] in axes.iter().filter(|[.., values]| !values.is_empty()) {
        let with = |(cell, value): (&Value, &str)| {
            let mut cell = cell.clone();
            let value = if *field == "policy" {
                value.to_uppercase()
            } else {
                value.to_owned()
            };
            cell[field] = serde_json::from_str(&value).unwrap_or_else(|_| value.into());
            cell
        };
        let pairs = cells
            .iter()
            .flat_map(|cell| values.split(',').map(move |value| (cell, value)));
        cells = pairs.map(with).collect();
    }
    let read = |cell: Value| -> Result<Cell> {
        let shown = cell.to_string();
        let mut cell: Cell = serde_json::from_value(cell).map_err(|_| wrong(&shown))?;
        cell.series = base.series.max(cell.connections as u64);
        let fits = percent(&cell.late_percent.to_string()).is_ok()
            && rule_count(&cell.rules.to_string()).is_ok()
            && cell.pipeline > 0
            && cell.connections > 0;
        cell.samples = (base.series * base.samples / cell.series).max(1);
        Some(cell).filter(|_| fits).ok_or_else(|| wrong(&shown))
    };
    let cells: Result<Vec<Cell>> = cells.into_iter().map(read).collect();
    Ok((cells?, repeats))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::workload::shape::LateShape::{DeviceDay, Uniform};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: LateArgs,
    }

    fn cells(text: &str) -> Result<(Vec<Cell>, usize)> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        matrix(&words, &Cell::in_order(8, 1000, 50))
    }

    #[test]
    fn the_whole_matrix_is_that_of_the_public_comparison() {
        let (cells, repeats) = cells("").unwrap();
        assert_eq!((cells.len(), repeats), (7 * 2 * 2 * 2 * 3, 5));
        for cell in cells {
            assert!(cell.series >= cell.connections as u64 && cell.series * cell.samples == 8000);
        }
    }

    #[test]
    fn a_part_is_chosen_by_axes() {
        let rest = "late=0,99 encoding=uncompressed chunk=256 pipeline=1 connections=64";
        let (some, repeats) = cells(&format!("{rest} policy=last,BLOCK repeats=2")).unwrap();
        assert_eq!((some.len(), repeats), (4, 2));
        let of = |cell: &Cell| (cell.late_percent, cell.policy.clone());
        assert_eq!(of(&some[1]), (99.0, "LAST".to_owned()));
        assert_eq!(of(&some[2]), (0.0, "BLOCK".to_owned()));
        assert_eq!((some[0].series, some[0].samples), (64, 125));
        let (some, _) = cells(&format!("{rest} rules=0,5 shape=uniform,device-day")).unwrap();
        let varied = some.iter().step_by(2).map(|cell| (cell.rules, cell.shape));
        let expected = [(0, Uniform), (0, DeviceDay), (5, Uniform), (5, DeviceDay)];
        assert_eq!(varied.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn unknown_words_are_refused() {
        let words = "late late=-1 late=101 pipeline=0 color=red encoding=zip rules=6 shape=round \
                     chunk=x";
        for word in words.split(' ') {
            assert!(cells(word).is_err(), "{word}");
        }
    }

    #[test]
    fn what_is_compared_treats_duplicates_alike() {
        let refused = |words: &str| {
            let words = ["x --start latewood", words].join(" ");
            let args = Cli::parse_from(words.split(' ')).args;
            same_policy(&args.targets().unwrap(), &args.cells().unwrap().0).is_err()
        };
        assert!(refused("--start redistimeseries"));
        assert!(refused("--start redistimeseries --matrix late=0,99"));
        assert!(!refused("--start redistimeseries --policy last"));
        assert!(!refused(
            "--start redistimeseries --matrix late=0 policy=LAST,BLOCK"
        ));
        assert!(!refused("--start latewood-no-wal"));
    }
}
