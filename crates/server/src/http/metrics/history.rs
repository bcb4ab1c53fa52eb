//! `--self-metrics`: what `GET /metrics` answers, written to the database itself every so often, so that
//! PromQL reads its history, over any span and after restarts.
//!
//! The series are those that a Prometheus would write that scrapes this server, and have the label
//! [`OWN`] too, which tells them from such. They are written past the intake of senders, so they count
//! in no figure of what came from others, late samples and refused ones among them. At most
//! [`SERIES_MAX`] are written; they end `--self-retention` after their last sample. Where nodes share a
//! log the owner writes its own. Tested by `tests/http/self_metrics.rs`.

use super::text_of;
use crate::base::clock::now_ms;
use crate::http::context::Context;
use crate::intake::{InPause, enter};
use crate::messaging::{ADD_EVENT, Class};
use crate::state::{Settings, Shared};
use latewood_engine::{Append, Create, Scratch};
use latewood_model::limits::APPEND_BATCH_MAX;
use latewood_model::{Labels, SeriesOptions, Told};
use latewood_wire::intake::{Intake, Moment, Reason, Refused, Row, Slot};
use latewood_wire::prometheus::exposition::{Decoder, Format};
use latewood_wire::series_name::{METRIC, SeriesName};
use std::fmt::Arguments;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// The label of series that a server writes about itself.
const OWN: &[u8] = b"__self__";
/// Many times the number of figures there are.
const SERIES_MAX: usize = 8192;

/// Writes every so often, until the server stops.
pub(in crate::http) async fn record(context: Context, mut stop: watch::Receiver<bool>) {
    let settings = &context.shared.settings.senders;
    if settings.self_metrics_ms == 0 {
        return;
    }
    let mut ticks = interval(Duration::from_millis(settings.self_metrics_ms));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_failed = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        if context.ready(true).is_err() {
            continue;
        }
        let worker = context.clone();
        let written = context.block(move || write(&worker.shared, &text_of(&worker)));
        let failure = written.await.map_err(|answer| answer.text).flatten().err();
        // Not at each turn.
        if let Some(error) = failure.as_ref().filter(|_| !has_failed) {
            tracing::warn!(error, "the server cannot write its own figures");
        }
        has_failed = failure.is_some();
    }
}

/// Writes the samples of a text.
///
/// # Errors
/// Why some were not written.
fn write(shared: &Arc<Shared>, text: &str) -> Result<(), String> {
    let mut found = Found::new(shared);
    Decoder::new(Format::Prometheus).decode(text.as_bytes(), true, &mut found);
    let mut scratch = Scratch::new();
    for some in found.samples.chunks(APPEND_BATCH_MAX) {
        let batch: Vec<_> = some
            .iter()
            .map(|(slot, value)| {
                let (key, options) = &found.series[*slot];
                Append {
                    key,
                    timestamp: found.at_ms,
                    value: *value,
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
                let key = latewood_engine::shown_key(append.key);
                found.failure.get_or_insert(format!("{key}: {refusal}"));
            } else if shared.events.is_listening() {
                shared.changed(Class::Module, ADD_EVENT, append.key);
            }
        }
    }
    found.failure.map_or(Ok(()), Err)
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

/// What is in a text.
struct Found<'a> {
    shared: &'a Shared,
    at_ms: i64,
    instance: String,
    series: Vec<(Box<[u8]>, SeriesOptions)>,
    /// With the place of its series.
    samples: Vec<(usize, f64)>,
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
        if self.series.len() >= SERIES_MAX {
            return Err(Refused {
                reason: Reason::Limit,
                text: format!("there are more than {SERIES_MAX} figures"),
            });
        }
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
        name.label(b"job", b"latewood");
        name.label(b"instance", self.instance.as_bytes());
        name.label(OWN, b"true");
        name.finish()?;
        let options = self.options(&name)?;
        self.series.push((name.key().into(), options));
        Ok(Slot(self.series.len() as u32 - 1))
    }

    fn samples(&mut self, samples: &[(Slot, f64)], _: Moment, _: u32) {
        let samples = samples.iter();
        self.samples
            .extend(samples.map(|(slot, value)| (slot.0 as usize, *value)));
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
