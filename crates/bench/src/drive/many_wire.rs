//! New and known series over the wire: TS.ADD with labels to keys that do not exist, then to the
//! same keys, with labels and without.

use serde::Serialize;

use super::many::{Kind, START_MS};
use super::wire::{Wired, all_held, cpu_seconds};
use crate::base::control::{Control, encoded};
use crate::base::error::Result;
use crate::base::reply::{ReplyExt, rows};
use crate::load::{Load, Shape, Source};
use crate::server::Latewood;
use crate::workload::names::{key, labels};

/// Connections, and commands sent on each before the replies are awaited.
const CONNECTIONS: u64 = 4;
const PIPELINE: usize = 50;
const VALUE: f64 = 21.5;
/// Series whose samples are compared at the end.
const LOOKED_AT: u64 = 100;

/// The sorts of commands, a second apart, and whether they carry labels.
const PHASES: [(Kind, bool); 3] = [
    (Kind::New, true),
    (Kind::KeyAndLabels, true),
    (Kind::Key, false),
];

/// How fast one sort of commands went.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Rate {
    per_second: f64,
    /// Samples a second of the server's processor time, until the index held all and the log was
    /// on disk.
    pub(crate) per_cpu_second: f64,
}

/// Sends TS.ADD, one to each of its series.
#[derive(Debug)]
struct Adds {
    next: u64,
    end: u64,
    labels: usize,
    timestamp: i64,
}

/// Fills a server of its own; `watch` hears when the server is there, and each sort of commands as
/// it ends.
pub(crate) fn watched(
    series: u64,
    labels: usize,
    mut watch: impl FnMut(&mut Control, Option<(Kind, Rate)>) -> Result<()>,
) -> Result<()> {
    let mut server = Wired::start(&Latewood::default())?;
    watch(&mut server.control, None)?;
    let share = series.div_ceil(CONNECTIONS);
    let sources = (0..CONNECTIONS).map(|at| Adds {
        next: series,
        end: series.min((at + 1) * share),
        labels: 0,
        timestamp: 0,
    });
    let shape = Shape::pipelined(PIPELINE);
    let mut load = Load::connect(server.process.address(), sources.collect(), shape)?;
    for (timestamp, (kind, is_labelled)) in times().zip(PHASES) {
        let mut first = 0;
        load.each_source(|source| {
            source.next = std::mem::replace(&mut first, source.end);
            source.labels = if is_labelled { labels } else { 0 };
            source.timestamp = timestamp;
        });
        let rate = send(&mut load, &mut server.control, series)?;
        watch(&mut server.control, Some((kind, rate)))?;
    }
    check(&mut server.control, series)
}

fn times() -> impl Iterator<Item = i64> {
    (0..).map(|phase| START_MS + phase * 1_000)
}

/// Counts the series, and compares all samples of some of them.
fn check(control: &mut Control, series: u64) -> Result<()> {
    let held = control.run("DBSIZE")?.number().unwrap_or(0);
    all_held(held as u64, series)?;
    let expected: Vec<_> = times().take(PHASES.len()).map(|at| (at, VALUE)).collect();
    let step = (series / LOOKED_AT).max(1) as usize;
    for number in (0..series).step_by(step).chain([series - 1]) {
        let key = key(number);
        let held = rows(&control.run(&format!("TS.RANGE {key} - +"))?)?;
        super::fleet::same(&key, &held, &expected)?;
    }
    Ok(())
}

fn send(load: &mut Load<Adds>, control: &mut Control, series: u64) -> Result<Rate> {
    let before = cpu_seconds(control)?;
    let outcome = load.run(|_| {})?.clean()?;
    // A query brings the index up to date.
    control.run("TS.QUERYINDEX hostname=none")?;
    control.wait_for_log()?;
    let cpu_seconds = cpu_seconds(control)? - before;
    Ok(Rate {
        per_second: series as f64 / outcome.elapsed.as_secs_f64(),
        per_cpu_second: series as f64 / cpu_seconds.max(0.001),
    })
}

impl Source for Adds {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let count = self.end.saturating_sub(self.next).min(most as u64);
        for number in self.next..self.next + count {
            let mut command = format!("TS.ADD {} {} {VALUE}", key(number), self.timestamp);
            command += if self.labels > 0 { " LABELS" } else { "" };
            for (name, value) in labels(number, self.labels) {
                command += &format!(" {name} {value}");
            }
            out.extend(encoded(&command));
        }
        self.next += count;
        count as usize
    }
}
