//! The answer of a query, piece by piece, as Prometheus' JSON.
//!
//! The first piece is large, so that an error that comes late still has its status; behind it an
//! error breaks the answer off.

use super::registry::Listed;
use super::views::Views;
use super::wanted::Wanted;
use crate::http::answer::Answer;
use crate::http::read::asked::Asked;
use crate::http::read::list::put_text;
use crate::http::read::series::put_labels;
use crate::http::read::stream::{PIECE_BYTES, Pieces};
use crate::observe::reads::add;
use axum::http::StatusCode;
use latewood_promql::annotation::{Annotations, Level};
use latewood_promql::column::{Column, Grid};
use latewood_promql::engine::{Error, EvalError, Evaluation, Query, Stats, Value};
use latewood_promql::labels::Labels;
use latewood_promql::number::{push_json, push_plain, push_seconds, push_short_seconds};
use latewood_promql::source::Interrupt;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of the first piece.
const FIRST_BYTES: usize = 1 << 20;
/// Warnings, and information, that are told of.
const ANNOTATIONS_MAX: usize = 10;
/// The status of a query whose client left, as Prometheus has it.
const CLIENT_CLOSED: u16 = 499;
/// Bytes of a sample in a vector that is being answered, beside its labels.
const SAMPLE_BYTES: usize = 16;

/// A query and its answer.
pub(super) struct Answering {
    wanted: Wanted,
    state: State,
    /// Series written.
    written: usize,
    /// Whether there are more than the limit.
    is_cut: bool,
    began: Option<Instant>,
    /// What it reads, once it has begun.
    views: Option<Arc<Views>>,
    listed: Listed,
}

enum State {
    New,
    Range(Box<Evaluation<'static>>, Stamps, Arc<Views>),
    Rows(std::vec::IntoIter<Row>, Annotations, Stats),
}

/// A series of the result of an instant query.
enum Row {
    Sample(Labels, (i64, f64)),
    Samples(Labels, Vec<(i64, f64)>),
}

impl Answering {
    pub(super) fn new(wanted: Wanted, listed: Listed) -> Self {
        Self {
            wanted,
            state: State::New,
            written: 0,
            is_cut: false,
            began: None,
            views: None,
            listed,
        }
    }

    /// Evaluates the query as far as an answer can begin; true where it has ended already.
    fn begin(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        self.began = Some(Instant::now());
        let wanted = &self.wanted;
        let running = Arc::clone(&self.listed.running);
        running
            .check()
            .map_err(|error| refusal(EvalError::from(error).into(), None))?;
        let query = Query::new(&wanted.text).map_err(|error| refusal(error, None))?;
        let samples_max = wanted
            .settings
            .samples_max
            .min(wanted.settings.memory_bytes_max / 16);
        let views = Arc::new(Views::new(Arc::clone(asked), running, samples_max));
        self.views = Some(Arc::clone(&views));
        let refused = |error| refusal(error, Some(&views));
        if wanted.is_range {
            let source = Arc::clone(&views);
            let evaluation = query.begin(wanted.times, wanted.settings.clone(), source);
            let evaluation = evaluation.map_err(refused)?;
            put_head("matrix", out);
            let stamps = Stamps::of(evaluation.grid());
            self.state = State::Range(Box::new(evaluation), stamps, views);
            return Ok(false);
        }
        let at_ms = wanted.times.start_ms;
        let outcome = query
            .instant(at_ms, &wanted.settings, &*views)
            .map_err(refused)?;
        let rows: Vec<Row> = match outcome.value {
            Value::Scalar(value) => {
                put_head("scalar", out);
                out.push(b'[');
                push_short_seconds(out, at_ms);
                out.extend_from_slice(b",\"");
                push_plain(out, value);
                out.extend_from_slice(b"\"]");
                self.end(outcome.annotations, outcome.stats, out);
                return Ok(true);
            }
            Value::String(text) => {
                put_head("string", out);
                out.push(b'[');
                push_short_seconds(out, at_ms);
                out.push(b',');
                put_text(&text, out);
                out.push(b']');
                self.end(outcome.annotations, outcome.stats, out);
                return Ok(true);
            }
            Value::Vector(vector) => {
                put_head("vector", out);
                let row = |(labels, value)| Row::Sample(labels, (at_ms, value));
                vector.into_iter().map(row).collect()
            }
            Value::Matrix(matrix) => {
                put_head("matrix", out);
                let row = |(labels, samples)| Row::Samples(labels, samples);
                matrix.into_iter().map(row).collect()
            }
        };
        asked.hold_bytes(outcome.stats.samples * SAMPLE_BYTES)?;
        out.push(b'[');
        self.state = State::Rows(rows.into_iter(), outcome.annotations, outcome.stats);
        Ok(false)
    }

    /// Closes the answer behind its result.
    fn end(&self, annotations: Annotations, stats: Stats, out: &mut Vec<u8>) {
        if !self.wanted.stats.is_empty() {
            out.extend_from_slice(b",\"stats\":");
            out.extend_from_slice(self.stats(stats).to_string().as_bytes());
        }
        out.push(b'}');
        let (mut warnings, mut infos) = (Vec::new(), Vec::new());
        for annotation in annotations.iter() {
            let text = annotation.shown(&self.wanted.text);
            match annotation.level {
                Level::Warning => warnings.push(text),
                Level::Info => infos.push(text),
            }
        }
        if self.is_cut {
            warnings.push("results truncated due to limit".to_owned());
        }
        if !matches!(&*self.wanted.stats, "" | "true" | "all") {
            let given = &self.wanted.stats;
            warnings.push(format!(
                "value {given:?} for parameter \"stats\" is deprecated and will be rejected in \
                 the next major release, use \"true\" or \"all\""
            ));
        }
        put_texts("warnings", "warning", warnings, out);
        put_texts("infos", "info", infos, out);
        out.extend_from_slice(b"}\n");
    }

    fn stats(&self, stats: Stats) -> serde_json::Value {
        let asked = self.listed.running.began();
        let began = self.began.unwrap_or(asked);
        let (queued_s, ran_s) = ((began - asked).as_secs_f64(), began.elapsed().as_secs_f64());
        let mut shown = json!({
            "timings": {
                "evalTotalTime": ran_s,
                "resultSortTime": 0.0,
                "queryPreparationTime": 0.0,
                "innerEvalTime": ran_s,
                "execQueueTime": queued_s,
                "execTotalTime": queued_s + ran_s,
            },
            "samples": {
                "totalQueryableSamples": stats.samples_read,
                "samplesRead": stats.samples_read,
                "seriesTouched": stats.series_read,
                "peakSamples": stats.peak_bytes / SAMPLE_BYTES,
            },
        });
        if self.wanted.stats == "all" {
            shown["latewood"] = json!({
                "samplesDecoded": stats.samples_read,
                "samplesFromStatistics": 0,
                "lateSamplesMerged": self.views.as_ref().map_or(0, |views| views.late()),
                "peakBytes": stats.peak_bytes,
            });
        }
        shown
    }
}

impl Pieces for Answering {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let is_first = matches!(self.state, State::New);
        if is_first && self.begin(asked, out)? {
            return Ok(false);
        }
        let bytes_max = if is_first { FIRST_BYTES } else { PIECE_BYTES };
        let limit = self.wanted.limit.unwrap_or(usize::MAX);
        let (written_before, mut samples) = (self.written, 0);
        let (written, is_cut) = (&mut self.written, &mut self.is_cut);
        let mut next = |out: &mut Vec<u8>| {
            *is_cut |= *written == limit;
            let takes = *written < limit;
            if takes && *written > 0 {
                out.push(b',');
            }
            *written += usize::from(takes);
            takes
        };
        let mut is_over = false;
        match &mut self.state {
            State::New => {}
            State::Range(evaluation, stamps, views) => {
                if is_first {
                    out.push(b'[');
                }
                while !is_over && out.len() < bytes_max {
                    let more = evaluation.more(&mut |labels, column| {
                        if next(out) {
                            samples += column.len();
                            put_column(labels, column, stamps, out);
                        }
                        Ok(())
                    });
                    is_over = !more.map_err(|error| refusal(error, Some(views)))?;
                }
            }
            State::Rows(rows, ..) => {
                while out.len() < bytes_max {
                    let Some(row) = rows.next() else {
                        is_over = true;
                        break;
                    };
                    if next(out) {
                        samples += row.put(out);
                    }
                }
            }
        }
        add(&asked.counters().items, self.written - written_before);
        add(&asked.counters().samples, samples);
        if !is_over {
            return Ok(true);
        }
        out.push(b']');
        let (annotations, stats) = match std::mem::replace(&mut self.state, State::New) {
            State::New => (Annotations::default(), Stats::default()),
            State::Range(evaluation, ..) => {
                let outcome = evaluation.outcome();
                (outcome.annotations, outcome.stats)
            }
            State::Rows(_, annotations, stats) => (annotations, stats),
        };
        self.end(annotations, stats, out);
        Ok(false)
    }
}

impl Row {
    /// Appends it; how many samples it has.
    fn put(&self, out: &mut Vec<u8>) -> usize {
        match self {
            Self::Sample(labels, (time_ms, value)) => {
                put_metric(labels, out);
                out.extend_from_slice(b",\"value\":");
                put_sample(*time_ms, *value, out);
                out.push(b'}');
                1
            }
            Self::Samples(labels, samples) => {
                put_metric(labels, out);
                put_values(samples.iter().copied(), out);
                samples.len()
            }
        }
    }
}

/// The answer for an error of a query.
fn refusal(error: Error, views: Option<&Arc<Views>>) -> Answer {
    let (status, error_type) = match &error {
        Error::Parse(_) | Error::Prepare(_) | Error::Type(_) => {
            return Answer::parameter("query", error);
        }
        Error::Eval(EvalError::Source(_)) => {
            if let Some(answer) = views.and_then(|views| views.take_refusal()) {
                return answer;
            }
            (StatusCode::UNPROCESSABLE_ENTITY, "execution")
        }
        Error::Eval(EvalError::Interrupt(Interrupt::Timeout)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "timeout")
        }
        Error::Eval(EvalError::Interrupt(Interrupt::Canceled)) => {
            let status = StatusCode::from_u16(CLIENT_CLOSED);
            (
                status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
                "canceled",
            )
        }
        Error::Eval(EvalError::Crowded) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        Error::Eval(_) => (StatusCode::UNPROCESSABLE_ENTITY, "execution"),
    };
    let mut answer = Answer::new(status, error.to_string());
    answer.error_type = Some(error_type);
    answer
}

fn put_head(kind: &str, out: &mut Vec<u8>) {
    let head = format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"{kind}\",\"result\":");
    out.extend_from_slice(head.as_bytes());
}

/// Appends `,"warnings":[...]`, unless there are none.
fn put_texts(name: &str, one: &str, mut texts: Vec<String>, out: &mut Vec<u8>) {
    if texts.is_empty() {
        return;
    }
    let omitted = texts.len().saturating_sub(ANNOTATIONS_MAX);
    if omitted > 0 {
        texts.truncate(ANNOTATIONS_MAX);
        texts.push(format!("{omitted} more {one} annotations omitted"));
    }
    out.extend_from_slice(format!(",\"{name}\":").as_bytes());
    out.extend_from_slice(json!(texts).to_string().as_bytes());
}

/// Appends `{"metric":{...}`.
fn put_metric(labels: &Labels, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"metric\":");
    put_labels(labels, out);
}

/// What stands before the value at each step: `[1700000000.123,"`, written once.
struct Stamps {
    text: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
}

impl Stamps {
    fn of(grid: Grid) -> Self {
        let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(grid.steps));
        for step in 0..grid.steps {
            text.push(b'[');
            push_seconds(&mut text, grid.time_ms(step));
            text.extend_from_slice(b",\"");
            ends.push(text.len());
        }
        Self { text, ends }
    }

    fn get(&self, step: usize) -> &[u8] {
        let start = step.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[step]]
    }
}

fn put_column(labels: &Labels, column: &Column, stamps: &Stamps, out: &mut Vec<u8>) {
    put_metric(labels, out);
    out.extend_from_slice(b",\"values\":[");
    for (at, step) in column.present().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(stamps.get(step));
        push_json(out, column.values[step]);
        out.extend_from_slice(b"\"]");
    }
    out.extend_from_slice(b"]}");
}

/// Appends `,"values":[...]}`.
fn put_values(samples: impl Iterator<Item = (i64, f64)>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"values\":[");
    for (at, (time_ms, value)) in samples.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        put_sample(time_ms, value, out);
    }
    out.extend_from_slice(b"]}");
}

/// Appends `[1700000000.123,"1.5"]`.
fn put_sample(time_ms: i64, value: f64, out: &mut Vec<u8>) {
    out.push(b'[');
    push_seconds(out, time_ms);
    out.extend_from_slice(b",\"");
    push_json(out, value);
    out.extend_from_slice(b"\"]");
}
