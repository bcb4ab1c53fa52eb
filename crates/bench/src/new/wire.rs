//! New and known series over the wire: TS.ADD with labels to keys that are not there, then to the
//! same keys, with labels and without.

use latewood_wire::resp::{Value, encode_command};
use serde::{Deserialize, Serialize};

use super::START_MS;
use super::library::Kind;
use super::names::{key, labels};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late::cpu_seconds;
use crate::load::{Load, Shape, Source};
use crate::reply::ReplyExt;
use crate::target::Latewood;

/// Connections, and commands sent on each before the replies are awaited.
const CONNECTIONS: u64 = 4;
const PIPELINE: usize = 50;
/// Samples of each series, a second apart, and what all of them are.
const ROUNDS: i64 = 3;
const VALUE: &str = "21.5";
/// Series whose samples are compared at the end.
const LOOKED_AT: u64 = 100;

/// New and known series of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireRun {
    /// How the server was started.
    pub(crate) settings: String,
    /// Series.
    pub(crate) series: u64,
    /// Labels of each.
    pub(crate) labels: usize,
    /// First samples, with labels.
    pub(crate) new: Rate,
    /// Known series by a command with labels.
    pub(crate) known_labels: Rate,
    /// Known series by key alone.
    pub(crate) known: Rate,
}

/// How fast one sort of commands went.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rate {
    /// Samples a second.
    pub(crate) per_second: f64,
    /// Samples a second of the server's processor time, until the index held all and the log was on disk.
    pub(crate) per_cpu_second: f64,
}

/// Sends TS.ADD, one to each of its series.
#[derive(Debug)]
struct Adds {
    next: u64,
    end: u64,
    labels: usize,
    timestamp: String,
}

/// Fills a server of its own.
///
/// # Errors
/// When it does not start, refuses a command or loses a series.
pub(super) fn run(series: u64, labels: usize) -> Result<WireRun> {
    watched(series, labels, |_, _| Ok(()))
}

/// The same; `watch` hears when the server is there, and each sort of commands as it ends.
///
/// # Errors
/// Those of `run` and of `watch`.
pub(crate) fn watched(
    series: u64,
    labels: usize,
    mut watch: impl FnMut(&mut Control, Option<(Kind, Rate)>) -> Result<()>,
) -> Result<WireRun> {
    let latewood = Latewood::default();
    let (process, settings) = latewood.start()?;
    let mut control = Control::connect(process.address())?;
    watch(&mut control, None)?;
    let share = series.div_ceil(CONNECTIONS);
    let sources = (0..CONNECTIONS).map(|at| Adds {
        next: series,
        end: series.min((at + 1) * share),
        labels: 0,
        timestamp: String::new(),
    });
    let shape = Shape {
        pipeline: PIPELINE,
        threads: 1,
        rate: 0.0,
    };
    let mut load = Load::connect(process.address(), sources.collect(), shape)?;
    let mut phase = |round: i64, kind, labels| {
        let mut first = 0;
        load.each_source(|source| {
            source.next = std::mem::replace(&mut first, source.end);
            source.labels = labels;
            source.timestamp = (START_MS + round * 1_000).to_string();
        });
        let rate = send(&mut load, &mut control, series)?;
        watch(&mut control, Some((kind, rate)))?;
        Ok::<_, Error>(rate)
    };
    let new = phase(0, Kind::New, labels)?;
    let known_labels = phase(1, Kind::KeyAndLabels, labels)?;
    let known = phase(2, Kind::Key, 0)?;
    check(&mut control, series)?;
    Ok(WireRun {
        settings,
        series,
        labels,
        new,
        known_labels,
        known,
    })
}

/// Counts the series, and compares all samples of some of them.
fn check(control: &mut Control, series: u64) -> Result<()> {
    let held = control.run(&[b"DBSIZE"])?.number();
    if held != i64::try_from(series).ok() {
        return Err(Error::new(format!("{held:?} series held, {series} sent")));
    }
    let expected: Vec<_> = (0..ROUNDS)
        .map(|round| (Some(START_MS + round * 1_000), VALUE.to_owned()))
        .collect();
    let step = usize::try_from(series / LOOKED_AT).unwrap_or(usize::MAX);
    for number in (0..series).step_by(step.max(1)).chain([series - 1]) {
        let key = key(number);
        let reply = control.run(&[b"TS.RANGE", key.as_bytes(), b"-", b"+"])?;
        let row = |row: &Value| match row {
            Value::Array(row) if row.len() == 2 => (row[0].number(), row[1].text()),
            _ => (None, String::new()),
        };
        let got: Vec<_> = match &reply {
            Value::Array(rows) => rows.iter().map(row).collect(),
            _ => Vec::new(),
        };
        if got != expected {
            let message = format!("{key}: expected the samples {expected:?}, got {got:?}");
            return Err(Error::new(message));
        }
    }
    Ok(())
}

fn send(load: &mut Load<Adds>, control: &mut Control, series: u64) -> Result<Rate> {
    let before = cpu_seconds(control)?;
    let outcome = load.run(|_| {})?;
    if let Some((text, count)) = outcome.errors.by_text().first() {
        return Err(Error::new(format!("{count} x {text}")));
    }
    if let Some(why) = &outcome.lost {
        return Err(Error::new(format!("the load broke off: {why}")));
    }
    // A query brings the index up to date.
    control.run(&[b"TS.QUERYINDEX", b"hostname=none"])?;
    control.wait_for_log()?;
    let cpu_seconds = cpu_seconds(control)? - before;
    Ok(Rate {
        per_second: series as f64 / outcome.elapsed.as_secs_f64(),
        per_cpu_second: series as f64 / cpu_seconds.max(0.001),
    })
}

impl Source for Adds {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let end = self.end.min(self.next.saturating_add(most as u64));
        let numbers = self.next.min(end)..end;
        let count = numbers.clone().count();
        for number in numbers {
            let (key, labels) = (key(number), labels(number, self.labels));
            let mut words: Vec<&[u8]> = vec![
                b"TS.ADD",
                key.as_bytes(),
                self.timestamp.as_bytes(),
                VALUE.as_bytes(),
            ];
            if !labels.is_empty() {
                words.push(b"LABELS");
            }
            for (name, value) in &labels {
                words.extend([name.as_bytes(), value.as_bytes()]);
            }
            encode_command(out, &words);
        }
        self.next = end.max(self.next);
        count
    }
}

impl WireRun {
    /// One line for the terminal.
    pub(super) fn sentence(&self) -> String {
        let of = |rate: Rate| {
            let (seconds, cpu) = (rate.per_second / 1e6, rate.per_cpu_second / 1e6);
            format!("{seconds:.2} M/s, {cpu:.2} M per server CPU-s")
        };
        format!(
            "over the wire, {} labels: new {}; known with labels {}; known {}",
            self.labels,
            of(self.new),
            of(self.known_labels),
            of(self.known),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_sent_once() {
        let mut adds = Adds {
            next: 3,
            end: 10,
            labels: 2,
            timestamp: START_MS.to_string(),
        };
        let mut out = Vec::new();
        assert_eq!([adds.fill(&mut out, 5), adds.fill(&mut out, 5)], [5, 2]);
        assert_eq!((adds.fill(&mut out, 5), adds.next), (0, 10));
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("TS.ADD").count(), 7);
        assert_eq!(text.matches("hostname").count(), 7);
        assert!(text.contains("host_9\r\n") && !text.contains("host_10"));
    }
}
