//! New and known series over the wire: TS.ADD with labels to keys that do not exist, then to the
//! same keys, with labels and without.

use super::many::{Kind, START_MS};
use super::sender::{Say, Turns};
use super::wire::{Wired, all_held, cpu_seconds};
use crate::base::control::{Control, encoded};
use crate::base::error::Result;
use crate::base::reply::{ReplyExt, rows};
use crate::load::{Load, Shape};
use crate::server::Latewood;
use crate::workload::names::{key, labels};

/// Connections, and commands sent on each before the replies are awaited.
const CONNECTIONS: u64 = 4;
const PIPELINE: usize = 50;
const VALUE: f64 = 21.5;
/// Series whose samples are compared at the end.
const LOOKED_AT: u64 = 100;

/// The sorts of commands, a second apart, what the report calls them, and whether they carry labels.
const PHASES: [(Kind, &str, bool); 3] = [
    (Kind::New, "new", true),
    (Kind::KeyAndLabels, "known_labels", true),
    (Kind::Key, "known", false),
];

/// What one sort of commands took.
pub(crate) struct Phase {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) seconds: f64,
    /// Of the server, until the index held all and the log was on disk.
    pub(crate) cpu_seconds: f64,
}

/// One TS.ADD to each of its series.
#[derive(Default)]
struct Adds {
    next: u64,
    labels: usize,
    timestamp: i64,
}

/// Fills a server of its own; `watch` hears when the server is there, and each sort of commands as
/// it ends.
pub(crate) fn watched(
    series: u64,
    labels: usize,
    mut watch: impl FnMut(&mut Control, Option<Phase>) -> Result<()>,
) -> Result<()> {
    let mut server = Wired::start(&Latewood::default())?;
    let control = &mut server.control;
    watch(control, None)?;
    let share = series.div_ceil(CONNECTIONS);
    let sources = (0..CONNECTIONS).map(|_| Turns::of(Adds::default()));
    let shape = Shape::pipelined(PIPELINE);
    let mut load = Load::connect(server.process.address(), sources.collect(), shape)?;
    for (timestamp, (kind, name, is_labelled)) in times().zip(PHASES) {
        let mut first = 0;
        load.each_source(|source| {
            source.left = share.min(series - first);
            source.says = Adds {
                next: first,
                labels: if is_labelled { labels } else { 0 },
                timestamp,
            };
            first += source.left;
        });
        let before = cpu_seconds(control)?;
        let outcome = load.run(|_| {})?.clean()?;
        // A query brings the index up to date.
        control.run("TS.QUERYINDEX hostname=none")?;
        control.wait_for_log()?;
        let phase = Phase {
            kind,
            name,
            seconds: outcome.elapsed.as_secs_f64(),
            cpu_seconds: cpu_seconds(control)? - before,
        };
        watch(control, Some(phase))?;
    }
    check(control, series)
}

impl Say for Adds {
    fn say(&mut self, out: &mut Vec<u8>) {
        let mut command = format!("TS.ADD {} {} {VALUE}", key(self.next), self.timestamp);
        command += if self.labels > 0 { " LABELS" } else { "" };
        for (name, value) in labels(self.next, self.labels) {
            command += &format!(" {name} {value}");
        }
        out.extend(encoded(&command));
        self.next += 1;
    }
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
