//! The late reports: what a share of late samples costs a server, over its own protocol.

use latewood_tls::ClientOptions;

use super::prelude::*;
use crate::base::address::Address;
use crate::drive::cell::{self, Cell, Encoding, Fixed};
use crate::drive::rules::RULES;
use crate::drive::wire;
use crate::server::{System, Target};
use crate::workload::shape::LateShape;

mode! {
    MODE: late(Args), "Measure what late samples cost a RESP time-series server, for every combination of lists";
    one host: String = "127.0.0.1", "Host of a running server to measure";
    one port: u16 = "6379", "Its port";
    one series: u64 = "8" in 1..=u64::MAX, "Series; each connection has one at least";
    one samples: u64 = "100000" in 1..=u64::MAX, "Samples of each series, fewer where connections ask for more series";
    one warmup: u64 = "0", "Samples of each series sent before the clock starts";
    one preload: u64 = "0", "Those sent in order before that, and moved to disk";
    one key_prefix: String = "ooo-client#", "Of keys, which must not exist and are deleted";
    may memory: String, "Budget for the memory of Latewoods started, such as 64mb";
    list target: String = [], "Running servers, as NAME=HOST:PORT; several alternate";
    list start: System = [], "Systems to start afresh for every run; several alternate";
    list policy: String = [], "DUPLICATE_POLICY of every series [default: the server's]";
    list rules: usize = ["0"] in 0..=RULES.len(), "Rules of each series: avg/10, max/60, sum/100, min/600, count/1000";
    list shape: LateShape = ["uniform"], "How late samples are late";
    list connections: usize = [] in 1..=100_000, "Connections [default: one for each series]";
    list pipeline: usize = ["50"] in 1..=1_000_000, "Commands sent before their replies are awaited";
    list chunk: u32 = ["4096"] in 1..=u32::MAX, "CHUNK_SIZE of every series";
    list encoding: Encoding = ["compressed"], "How samples are kept";
    list late: f64 = ["0"] in 0.0..=100.0, "Late samples of a hundred";
    with tls: ClientOptions;
}

fn late(args: &Args, report: &mut Report) -> Result<()> {
    let fixed = Fixed {
        preload: args.preload,
        key_prefix: args.key_prefix.clone(),
        ..Fixed::new(report.common.seed, args.warmup)
    };
    let (mut targets, cells) = (targets(args)?, cells(args)?);
    same_policy(&targets, &cells)?;
    let repeats = report.common.repeats;
    let mut settings = json!(fixed);
    settings["repeats"] = repeats.into();
    report.share(json!({"settings": settings}));
    for cell in &cells {
        for repeat in 0..repeats {
            report.round("runs", repeat, &mut targets, |report, target| {
                on(report, target, cell, &fixed)
            })?;
        }
    }
    Ok(())
}

/// A run of one cell on one server; none of a peer that cannot be measured.
pub(super) fn on(
    report: &mut Report,
    target: &Target,
    cell: &Cell,
    fixed: &Fixed,
) -> Result<Option<Value>> {
    let name = target.name();
    let turn = || {
        let (ready, info) = wire::ready(target)?;
        let (measured, _) =
            cell::measure(&ready.address, cell, fixed, target.name(), |_, _| Ok(()))?;
        Ok((info, measured))
    };
    let made = report.turn(&name, target.is_started_peer(), turn)?;
    Ok(made.map(|(info, measured)| {
        report.note(&info);
        json!({"target": name, "cell": cell, "measured": measured})
    }))
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
fn targets(args: &Args) -> Result<Vec<Target>> {
    let (host, is_tls) = args.tls.split(&args.host).map_err(Error::new)?;
    let connector = args.tls.connector(is_tls).map_err(Error::new)?;
    let start = |&system| Target::Start {
        system,
        memory: args.memory.clone(),
    };
    let mut targets: Vec<Target> = args.start.iter().map(start).collect();
    for target in &args.target {
        targets.push(Target::parse(target).map_err(Error::new)?.by(&connector));
    }
    if targets.is_empty() {
        let address = Address::new(&format!("{host}:{}", args.port));
        let name = address.to_string();
        targets.push(Target::Running { name, address }.by(&connector));
    }
    Ok(targets)
}

/// Every combination of the lists, of which the last changes fastest. The total number of samples is
/// that of `--series` and `--samples`; each connection has a series of its own at least.
fn cells(args: &Args) -> Result<Vec<Cell>> {
    let base = Cell {
        policy: String::new(),
        ..Cell::in_order(args.series, args.samples, 50)
    };
    let policies: Vec<String> = args
        .policy
        .iter()
        .map(|policy| policy.to_uppercase())
        .collect();
    let lists = [
        ("policy", json!(policies)),
        ("rules", json!(args.rules)),
        ("shape", json!(args.shape)),
        ("connections", json!(args.connections)),
        ("pipeline", json!(args.pipeline)),
        ("chunk_size", json!(args.chunk)),
        ("encoding", json!(args.encoding)),
        ("late_percent", json!(args.late)),
    ];
    let mut cells = vec![json!(base)];
    for (name, values) in lists {
        let values = values.as_array().filter(|values| !values.is_empty());
        let Some(values) = values else { continue };
        let with = |cell: Value| {
            let of = |value: &Value| {
                let mut cell = cell.clone();
                cell[name] = value.clone();
                cell
            };
            values.iter().map(of).collect::<Vec<_>>()
        };
        cells = cells.into_iter().flat_map(with).collect();
    }
    let read = |cell| {
        let mut cell: Cell = serde_json::from_value(cell).doing("combine the lists")?;
        cell.series = base.series.max(cell.connections as u64);
        cell.samples = (base.series.saturating_mul(base.samples) / cell.series).max(1);
        Ok(cell)
    };
    cells.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::workload::shape::LateShape::{DeviceDay, Uniform};

    fn read(words: &str) -> std::result::Result<Args, clap::Error> {
        Args::try_parse_from(format!("late {words}").split_whitespace())
    }

    fn made(words: &str) -> Vec<Cell> {
        cells(&read(words).unwrap()).unwrap()
    }

    #[test]
    fn lists_are_combined_and_the_last_of_them_varies_fastest() {
        let rest =
            "--samples 1000 --encoding uncompressed --chunk 256 --pipeline 1 --connections 64";
        let some = made(&format!("{rest} --late 0,99 --policy last,BLOCK"));
        assert_eq!(some.len(), 4);
        let of = |cell: &Cell| (cell.late_percent, cell.policy.clone());
        assert_eq!(of(&some[1]), (99.0, "LAST".to_owned()));
        assert_eq!(of(&some[2]), (0.0, "BLOCK".to_owned()));
        assert_eq!((some[0].series, some[0].samples), (64, 125));
        let some = made(&format!("{rest} --rules 0,5 --shape uniform,device-day"));
        let varied = some.iter().map(|cell| (cell.rules, cell.shape));
        let expected = [(0, Uniform), (0, DeviceDay), (5, Uniform), (5, DeviceDay)];
        assert_eq!(varied.collect::<Vec<_>>(), expected);
        let all = "--connections 1,8,64 --pipeline 1,50 --chunk 256,4096 \
                   --encoding compressed,uncompressed --late 0,1,5,10,25,50,99";
        let all = made(all);
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
            assert!(read(words).is_err(), "{words}");
        }
    }

    #[test]
    fn what_is_compared_treats_duplicates_alike() {
        let refused = |words: &str| {
            let options = read(&format!("--start latewood {words}")).unwrap();
            same_policy(&targets(&options).unwrap(), &cells(&options).unwrap()).is_err()
        };
        assert!(refused("--start redistimeseries"));
        assert!(refused("--start redistimeseries --late 0,99"));
        assert!(!refused("--start redistimeseries --policy last"));
        assert!(!refused("--start redistimeseries --policy LAST,BLOCK"));
        assert!(!refused("--start latewood-no-wal"));
    }
}
