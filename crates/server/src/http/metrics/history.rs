//! `--self-metrics`: what `GET /metrics` answers, and which metrics, senders and values of a label are late
//! most ([`LATENESS`]), written to the database itself every so often, so that PromQL reads their history,
//! over any span and after restarts.
//!
//! The series are those that a Prometheus would write that scrapes this server, and have the label
//! [`OWN`] too, which tells them from such. They are written past the intake of senders, so they count
//! in no figure of what came from others, late samples and refused ones among them. At most
//! [`SERIES_MAX`] are written; they end `--self-retention` after their last sample. Where nodes share a
//! log the owner writes its own. Tested by `tests/http/self_metrics.rs`.

use super::text::{Kind, PREFIX};
use super::text_of;
use crate::base::clock::now_ms;
use crate::http::context::Context;
use crate::intake::{InPause, enter};
use crate::messaging::{ADD_EVENT, Class};
use crate::observe::{HOUR_MINUTES, Origin, RankedRow};
use crate::state::{Settings, Shared};
use latewood_engine::{Append, Create, Scratch, shown_key};
use latewood_model::limits::APPEND_BATCH_MAX;
use latewood_model::{Labels, SeriesOptions, Timestamp, Told};
use latewood_wire::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use latewood_wire::prometheus::exposition::{Decoder, Format};
use latewood_wire::series_name::{METRIC, SeriesName};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::Arguments;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// The label of series that a server writes about itself.
const OWN: &[u8] = b"__self__";
/// Many times the number of figures there are.
const SERIES_MAX: usize = 8192;
/// Metrics, senders and values that are written at a time: those with most late samples in the last hour.
const LATE_ROWS: usize = 20;
/// Metrics, senders and values that are written until the server stops; then no others are.
const LATE_NAMES_MAX: usize = 1000;
/// What is written of these; their names are in no answer of `/metrics`, which all may read.
pub(super) const LATENESS: [(&str, Kind, &str); 6] = [
    (
        "late_metric_samples_total",
        Kind::Counter,
        "Late samples of a metric, since it is among those with most of them.",
    ),
    (
        "late_metric_age_seconds",
        Kind::Gauge,
        "Age that this share of the late samples of a metric did not exceed in the last hour.",
    ),
    (
        "late_sender_samples_total",
        Kind::Counter,
        "Late samples of a sender, since it is among those with most of them.",
    ),
    (
        "late_sender_age_seconds",
        Kind::Gauge,
        "Age that this share of the late samples of a sender did not exceed in the last hour.",
    ),
    (
        "late_label_samples_total",
        Kind::Counter,
        "Late samples of a value of --lateness-label, since it is among those with most of them.",
    ),
    (
        "late_label_age_seconds",
        Kind::Gauge,
        "Age that this share of the late samples of a value did not exceed in the last hour.",
    ),
];

/// Writes every so often, until the server stops.
pub(in crate::http) async fn record(context: Context, mut stop: watch::Receiver<bool>) {
    let settings = &context.shared.settings.senders;
    if settings.self_metrics_ms == 0 {
        return;
    }
    let mut ticks = interval(Duration::from_millis(settings.self_metrics_ms));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut has_failed, before) = (false, Arc::<Mutex<Before>>::default());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        if context.ready(true).is_err() {
            continue;
        }
        let (worker, before) = (context.clone(), before.clone());
        let written =
            context.block(move || write(&worker.shared, &text_of(&worker), &mut before.lock()));
        let failure = written.await.map_err(|answer| answer.text).flatten().err();
        // Not at each turn.
        if let Some(error) = failure.as_ref().filter(|_| !has_failed) {
            tracing::warn!(error, "the server cannot write its own figures");
        }
        has_failed = failure.is_some();
    }
}

/// Writes the samples of a text, and the lateness of metrics and senders.
///
/// # Errors
/// Why some were not written.
fn write(shared: &Arc<Shared>, text: &str, before: &mut Before) -> Result<(), String> {
    let mut found = Found::new(shared);
    Decoder::new(Format::Prometheus).decode(text.as_bytes(), true, &mut found);
    let came = found.lateness(before);
    let mut scratch = Scratch::new();
    for some in found.samples.chunks(APPEND_BATCH_MAX) {
        let batch: Vec<_> = some
            .iter()
            .map(|&(at, timestamp, value)| {
                let (key, options) = &found.series[at];
                Append {
                    key,
                    timestamp,
                    value,
                    on_duplicate: None,
                    create: Create::Sent(options),
                }
            })
            .collect();
        // As with samples of others: no EXEC sees them before its WATCH does.
        let _pass = enter(shared, InPause::Refuse).map_err(|failure| failure.to_string())?;
        let written = shared.db.append(&batch, &mut scratch);
        written.map_err(|error| error.to_string())?;
        for (append, outcome) in batch.iter().zip(scratch.outcomes()) {
            if let Err(refusal) = outcome {
                let key = shown_key(append.key);
                found.failure.get_or_insert(format!("{key}: {refusal}"));
            } else if shared.events.is_listening() {
                shared.changed(Class::Module, ADD_EVENT, append.key);
            }
        }
    }
    match found.failure {
        Some(failure) => Err(failure),
        None => {
            before.at_ms = Some(found.at_ms);
            for (table, came) in before.names.iter_mut().zip(came) {
                table.extend(came);
            }
            Ok(())
        }
    }
}

/// The address that a Prometheus scrapes, as HOST:PORT.
fn instance(settings: &Settings) -> String {
    let advertised = settings.advertised().map(|addresses| addresses.http);
    let advertised = advertised.ok().filter(|address| !address.is_empty());
    let senders = &settings.senders;
    let listening = || senders.http.address().or(senders.https.as_deref());
    let address = advertised.or_else(|| listening().map(str::to_owned));
    let address = address.unwrap_or_default();
    address.trim_start_matches("https://").to_owned()
}

/// The metrics, the senders and the values that were written, with the rows in which they were counted.
type LateNames = [HashMap<Box<[u8]>, u64>; 3];

/// What was written before.
#[derive(Default)]
struct Before {
    at_ms: Option<Timestamp>,
    names: LateNames,
}

/// What is written at a time.
struct Found<'a> {
    shared: &'a Shared,
    at_ms: i64,
    instance: String,
    series: Vec<(Box<[u8]>, SeriesOptions)>,
    /// With the place of its series, and their times.
    samples: Vec<(usize, Timestamp, f64)>,
    failure: Option<String>,
}

impl<'a> Found<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            at_ms: now_ms(),
            instance: instance(&shared.settings),
            series: Vec::new(),
            samples: Vec::new(),
            failure: None,
        }
    }

    fn options(&self, name: &SeriesName) -> Result<SeriesOptions, Refused> {
        let labels = Labels::new(name.labels()).map_err(|error| Refused {
            reason: Reason::Name,
            text: error.to_string(),
        })?;
        let settings = &self.shared.settings.senders;
        Ok(SeriesOptions {
            labels,
            retention_ms: settings.self_retention_ms,
            ..self.shared.db.defaults().series.clone()
        })
    }

    /// The series of a figure; `name` has its metric and labels.
    fn series(&mut self, mut name: SeriesName) -> Result<usize, Refused> {
        if self.series.len() >= SERIES_MAX {
            return Err(Refused {
                reason: Reason::Limit,
                text: format!("there are more than {SERIES_MAX} figures"),
            });
        }
        name.label(b"job", b"latewood");
        name.label(b"instance", self.instance.as_bytes());
        name.label(OWN, b"true");
        name.finish()?;
        let options = self.options(&name)?;
        self.series.push((name.key().into(), options));
        Ok(self.series.len() - 1)
    }

    /// Adds those metrics, senders and values that are late most; tells which of them are new.
    fn lateness(&mut self, before: &Before) -> LateNames {
        let mut all = LateNames::default();
        let lateness = &self.shared.observe.lateness;
        let (label, values) = lateness.label_values(self.at_ms, HOUR_MINUTES).unzip();
        let label = label.as_deref().unwrap_or_default();
        let tables = [
            lateness.metrics(self.at_ms, HOUR_MINUTES),
            lateness.senders(self.at_ms, HOUR_MINUTES),
            values.unwrap_or_default(),
        ];
        let just_before_ms = self.at_ms - 1;
        // Nothing of an earlier run of the server is newer.
        let begun_ms = before.at_ms.unwrap_or(just_before_ms).min(just_before_ms);
        let tables = tables.into_iter().zip(&before.names).zip(&mut all);
        for (family, (((rows, _), names), came)) in LATENESS.chunks(2).zip(tables) {
            for (name, kind, help) in family {
                let told = Told {
                    kind: Some(kind.name()),
                    help: Some(help),
                    unit: None,
                };
                self.metadata(&format!("{PREFIX}{name}"), told);
            }
            for row in rows.iter().take(LATE_ROWS) {
                let known = names.get(&row.name);
                if known.is_none() && names.len() + came.len() >= LATE_NAMES_MAX {
                    continue;
                }
                let Ok(name) = std::str::from_utf8(&row.name) else {
                    continue;
                };
                let begun_ms = match known {
                    None => Some(begun_ms),
                    Some(number) if *number == row.number => None,
                    // It has a sample of the time before.
                    Some(_) => Some(just_before_ms),
                };
                match self.late_row(family, (label, name), row, begun_ms) {
                    Ok(samples) if begun_ms.is_some() => {
                        self.samples.extend(samples);
                        came.insert(row.name.clone(), row.number);
                    }
                    Ok(samples) => self.samples.extend(samples),
                    Err(refused) => {
                        self.refuse(0, refused.reason, format_args!("{}", refused.text));
                    }
                }
            }
        }
        all
    }

    /// The samples of a row of a table; of a new one that it was at 0 at `begun_ms`, or what came first
    /// would not be in an increase.
    fn late_row(
        &mut self,
        family: &[(&str, Kind, &str)],
        (label, name): (&str, &str),
        row: &RankedRow,
        begun_ms: Option<Timestamp>,
    ) -> Result<Vec<(usize, Timestamp, f64)>, Refused> {
        let (sender, user) = Origin::parts(name.as_bytes());
        let mut samples = Vec::new();
        let [(counter, ..), (gauge, ..)] = family else {
            return Ok(samples);
        };
        let labels: &[(&str, &str)] = match *counter {
            "late_metric_samples_total" => &[("metric", name)],
            "late_label_samples_total" => &[("label", label), ("value", name)],
            _ => &[("sender", &sender), ("user", &user)],
        };
        let mut add = |figure: &str, share: &str, value: f64| {
            let mut series = SeriesName::new();
            series.begin(format!("{PREFIX}{figure}").as_bytes());
            for (label, value) in labels.iter().chain(&[("share", share)]) {
                series.label(label.as_bytes(), value.as_bytes());
            }
            let at = self.series(series)?;
            let begun_ms = begun_ms.filter(|_| figure == *counter);
            samples.extend(begun_ms.map(|begun_ms| (at, begun_ms, 0.0)));
            samples.push((at, self.at_ms, value));
            Ok::<_, Refused>(())
        };
        add(counter, "", row.total as f64)?;
        let ages_ms = [
            ("0.5", row.sum.age_ms(0.5)),
            ("0.99", row.sum.age_ms(0.99)),
            ("1", row.sum.max_ms),
        ];
        for (share, age_ms) in ages_ms {
            add(gauge, share, age_ms as f64 / 1000.0)?;
        }
        Ok(samples)
    }
}

impl Intake for Found<'_> {
    fn follow(&mut self, _: &[u8]) -> Option<(Row, usize)> {
        None
    }

    fn find(&mut self, _: &[u8]) -> Option<Row> {
        None
    }

    fn add(&mut self, _: &[u8]) -> Row {
        Row(0)
    }

    fn field(&mut self, _: Row, _: usize, _: &[u8]) -> Option<Slot> {
        None
    }

    fn expect(&mut self, _: Row, _: usize, _: &[u8]) -> Option<(Slot, usize)> {
        None
    }

    fn learn(&mut self, _: Row, _: &[u8], series: &SeriesName) -> Result<Slot, Refused> {
        let is_metric = |(label, _): &(&[u8], &[u8])| *label == METRIC;
        let mut name = SeriesName::new();
        name.begin(
            series
                .labels()
                .find(is_metric)
                .map_or(b"", |(_, metric)| metric),
        );
        let labels = series.labels().filter(|one| !is_metric(one));
        labels.for_each(|(label, value)| name.label(label, value));
        self.series(name).map(|at| Slot(at as u32))
    }

    fn samples(&mut self, samples: &[(Slot, f64)], _: Moment, _: u32) {
        let samples = samples.iter();
        let samples = samples.map(|(slot, value)| (slot.0 as usize, self.at_ms, *value));
        self.samples.extend(samples);
    }

    fn refuse(&mut self, _: u32, _: Reason, text: Arguments<'_>) {
        self.failure.get_or_insert(text.to_string());
    }

    fn skip_text(&mut self) {}

    fn metadata(&mut self, metric: &str, told: Told<'_>) {
        self.shared.db.note_metadata(metric, told);
    }

    fn now_ms(&self) -> i64 {
        self.at_ms
    }
}
