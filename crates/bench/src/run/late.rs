//! The late reports: what a share of late samples costs a server, over its own protocol.

use serde_json::json;

use super::options::{Mode, Options, turns};
use super::report::Report;
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::drive::cell::{self, Cell, Fixed};
use crate::drive::rules::RULES;
use crate::server::{Info, Target};

pub(crate) const MODE: Mode = Mode {
    name: "late",
    about: "Measure what late samples cost a RESP time-series server, for every combination of lists",
    options: &["\
host=127.0.0.1: Host of a running server to measure
port=6379: Its port
target=: Running servers, as NAME=HOST:PORT; several alternate
start=: Systems to start afresh for every run; several alternate
policy=: DUPLICATE_POLICY of every series [default: the server's]
rules=0: Rules of each series: avg/10, max/60, sum/100, min/600, count/1000
shape=uniform: How late samples are late
connections=: Connections [default: one for each series]
pipeline=50: Commands sent before their replies are awaited
chunk=4096: CHUNK_SIZE of every series
encoding=compressed: compressed, uncompressed
late=0: Late samples of a hundred
series=8: Series; each connection has one at least
samples=100000: Samples of each series, fewer where connections ask for more series
warmup=0: Samples of each series sent before the clock starts
preload=0: Those sent in order before that, and moved to disk
memory=: Budget for the memory of Latewoods started, such as 64mb
key-prefix=ooo-client#: Of keys, which must not exist and are deleted"],
    run,
};

fn run(options: &Options, report: &mut Report) -> Result<()> {
    let fixed = Fixed {
        preload: options.get("preload")?,
        key_prefix: options.text("key-prefix").to_owned(),
        ..Fixed::new(options.seed()?, options.get("warmup")?)
    };
    let (targets, cells) = (targets(options)?, cells(options)?);
    same_policy(&targets, &cells)?;
    let repeats = options.repeats()?;
    let mut settings = json!(fixed);
    settings["repeats"] = repeats.into();
    report.share(json!({"settings": settings}));
    for cell in &cells {
        for repeat in 0..repeats {
            for at in turns(repeat, targets.len()) {
                run_cell(report, "runs", &targets[at], repeat, cell, &fixed)?;
            }
        }
    }
    Ok(())
}

/// Adds a run of one cell on one server to a list, unless it is a peer that cannot be measured.
pub(super) fn run_cell(
    report: &mut Report,
    list: &str,
    target: &Target,
    repeat: usize,
    cell: &Cell,
    fixed: &Fixed,
) -> Result<()> {
    let name = target.name();
    let turn = || {
        let ready = target.ready()?;
        let info = Info {
            name: target.name(),
            version: Control::connect(&ready.address)?.version()?,
            settings: ready.settings.clone(),
        };
        let label = target.name();
        let measured = cell::measure(&ready.address, cell, fixed, label, |_, _| Ok(()))?;
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
             --policy LAST",
        ));
    }
    Ok(())
}

/// The servers that were named, else the one at `--host`.
fn targets(options: &Options) -> Result<Vec<Target>> {
    let tls = options.client()?;
    let (host, port) = (options.text("host"), options.get::<u16>("port")?);
    let (host, is_tls) = tls.split(host).map_err(Error::new)?;
    let connector = tls.connector(is_tls).map_err(Error::new)?;
    let started = options.choices("start")?.into_iter();
    let memory = options.given("memory");
    let mut targets: Vec<Target> = started
        .map(|system| Target::Start {
            system,
            memory: memory.clone(),
        })
        .collect();
    for target in options.words("target") {
        targets.push(Target::parse(target).map_err(Error::new)?.by(&connector));
    }
    if targets.is_empty() {
        let address = Address::new(&format!("{host}:{port}"));
        let name = address.to_string();
        targets.push(Target::Running { name, address }.by(&connector));
    }
    Ok(targets)
}

/// Every combination of the lists. The total number of samples is that of `--series` and `--samples`;
/// each connection has a series of its own at least.
fn cells(options: &Options) -> Result<Vec<Cell>> {
    let [series, samples] = ["series", "samples"].map(|of| options.count::<u64>(of));
    let base = Cell {
        policy: String::new(),
        ..Cell::in_order(series?, samples?, 50)
    };
    let mut cells = vec![base.clone()];
    let policies = options.words("policy").into_iter().map(str::to_uppercase);
    vary(&mut cells, policies.collect(), |cell, of| cell.policy = of);
    let rules = options.list("rules", 0, RULES.len())?;
    vary(&mut cells, rules, |cell, of| cell.rules = of);
    vary(&mut cells, options.choices("shape")?, |cell, of| {
        cell.shape = of
    });
    let connections = options.list("connections", 1, 100_000)?;
    vary(&mut cells, connections, |cell, of| cell.connections = of);
    let pipelines = options.list("pipeline", 1, 1_000_000)?;
    vary(&mut cells, pipelines, |cell, of| cell.pipeline = of);
    let chunks = options.list("chunk", 1, u32::MAX)?;
    vary(&mut cells, chunks, |cell, of| cell.chunk_size = of);
    let encodings = options.choices("encoding")?;
    vary(&mut cells, encodings, |cell, of| cell.encoding = of);
    let late = options.percents("late")?;
    vary(&mut cells, late, |cell, of| cell.late_percent = of);
    for cell in &mut cells {
        cell.series = base.series.max(cell.connections as u64);
        cell.samples = (base.series.saturating_mul(base.samples) / cell.series).max(1);
    }
    Ok(cells)
}

/// Each cell with each of the values, which change fastest; as it is without any.
fn vary<T: Clone>(cells: &mut Vec<Cell>, values: Vec<T>, set: impl Fn(&mut Cell, T)) {
    if values.is_empty() {
        return;
    }
    let with = |cell: &Cell, value: &T| {
        let mut cell = cell.clone();
        set(&mut cell, value.clone());
        cell
    };
    let of = |cell: &Cell| {
        values
            .iter()
            .map(|value| with(cell, value))
            .collect::<Vec<_>>()
    };
    *cells = cells.iter().flat_map(of).collect();
}

#[cfg(test)]
mod tests {
    use super::super::options::read;
    use super::*;
    use crate::workload::shape::LateShape::{DeviceDay, Uniform};

    fn made(words: &str) -> Result<Vec<Cell>> {
        cells(&read(&MODE, words))
    }

    #[test]
    fn lists_are_combined_and_the_last_of_them_varies_fastest() {
        let rest =
            "--samples 1000 --encoding uncompressed --chunk 256 --pipeline 1 --connections 64";
        let some = made(&format!("{rest} --late 0,99 --policy last,BLOCK")).unwrap();
        assert_eq!(some.len(), 4);
        let of = |cell: &Cell| (cell.late_percent, cell.policy.clone());
        assert_eq!(of(&some[1]), (99.0, "LAST".to_owned()));
        assert_eq!(of(&some[2]), (0.0, "BLOCK".to_owned()));
        assert_eq!((some[0].series, some[0].samples), (64, 125));
        let some = made(&format!("{rest} --rules 0,5 --shape uniform,device-day")).unwrap();
        let varied = some.iter().map(|cell| (cell.rules, cell.shape));
        let expected = [(0, Uniform), (0, DeviceDay), (5, Uniform), (5, DeviceDay)];
        assert_eq!(varied.collect::<Vec<_>>(), expected);
        let all = "--connections 1,8,64 --pipeline 1,50 --chunk 256,4096 \
                   --encoding compressed,uncompressed --late 0,1,5,10,25,50,99";
        let all = made(all).unwrap();
        assert_eq!(all.len(), 7 * 2 * 2 * 2 * 3);
        assert!(
            all.iter()
                .all(|cell| cell.series >= cell.connections as u64)
        );
    }

    #[test]
    fn unknown_words_are_refused() {
        for words in [
            "--late=-1",
            "--late 101",
            "--pipeline 0",
            "--encoding zip",
            "--rules 6",
            "--shape round",
            "--chunk x",
        ] {
            assert!(made(words).is_err(), "{words}");
        }
    }

    #[test]
    fn what_is_compared_treats_duplicates_alike() {
        let refused = |words: &str| {
            let options = read(&MODE, &format!("--start latewood {words}"));
            same_policy(&targets(&options).unwrap(), &cells(&options).unwrap()).is_err()
        };
        assert!(refused("--start redistimeseries"));
        assert!(refused("--start redistimeseries --late 0,99"));
        assert!(!refused("--start redistimeseries --policy last"));
        assert!(!refused("--start redistimeseries --policy LAST,BLOCK"));
        assert!(!refused("--start latewood-no-wal"));
    }
}
