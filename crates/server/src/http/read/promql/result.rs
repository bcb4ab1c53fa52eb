//! The answer of a query, piece by piece, as Prometheus' JSON.
//!
//! The first piece is large, so that an error that comes late still has its status; behind it an
//! error breaks the answer off.

use super::json::{Stamps, put_column, put_head, put_texts};
use super::refusal::{before_evaluation, refusal};
use super::registry::{Listed, QUICK_BYTES_MAX};
use super::rows::{Row, Rows};
use super::rules;
use super::text::{PLAN_BYTES, TREE_BYTES};
use super::views::{Asking, Views};
use super::wanted::Wanted;
use crate::http::answer::Answer;
use crate::http::read::asked::Asked;
use crate::http::read::list::put_text;
use crate::http::read::stream::{PIECE_BYTES, Pieces};
use crate::observe::reads::add;
use axum::http::StatusCode;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use latewood_promql::QUERY_BYTES_MAX;
use latewood_promql::annotation::{Annotations, Level};
use latewood_promql::engine::{EvalError, Evaluation, Query, Stats, Value, alone};
use latewood_promql::number::{push_plain, push_short_seconds};
use latewood_promql::source::Interrupt;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the first piece.
const FIRST_BYTES: usize = 1 << 20;
/// How much longer than a query may take its reader may, all waits together.
pub(super) const IDLE_MAX: u32 = 10;
/// Bytes of a sample, the unit of `peakSamples`.
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
    /// Since when its reader is waited for.
    idle_since: Option<Instant>,
    /// Late samples that were merged.
    late: u64,
    /// What [`Views::warning`] says.
    doubt: Option<String>,
    /// Rows of rules that wait for late samples, in words.
    stale: Vec<String>,
    listed: Listed,
}

enum State {
    New,
    Range(Box<Evaluation<'static>>, Stamps, Arc<Views>),
    Rows(Rows, Annotations, Stats),
}

impl Answering {
    pub(super) fn new(wanted: Wanted, listed: Listed) -> Self {
        Self {
            wanted,
            state: State::New,
            written: 0,
            is_cut: false,
            began: None,
            idle_since: None,
            late: 0,
            doubt: None,
            stale: Vec::new(),
            listed,
        }
    }

    /// Evaluates the query as far as an answer can begin; true where it has ended already.
    fn begin(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        self.began = Some(Instant::now());
        let wanted = &self.wanted;
        let running = Arc::clone(&self.listed.running);
        running.check().map_err(before_evaluation)?;
        let text_bytes = wanted.text.len().min(QUERY_BYTES_MAX);
        asked.hold_bytes(text_bytes * PLAN_BYTES)?;
        let _tree_memory = asked.permits().memory(text_bytes * TREE_BYTES)?;
        let query = Query::new(&wanted.text).map_err(|error| refusal(error, None))?;
        running.parsed();
        self.stale = rules::look(asked, wanted, &query, running.deadline())?;
        let views = Asking::views(asked, running);
        let refused = |error| refusal(error, Some(&views));
        if wanted.is_range {
            let source = Arc::clone(&views);
            let evaluation = query.begin(wanted.times, wanted.settings.clone(), source);
            let evaluation = evaluation.map_err(refused)?;
            put_head("matrix", out);
            out.push(b'[');
            let stamps = Stamps::of(evaluation.grid());
            self.state = State::Range(Box::new(evaluation), stamps, views);
            return Ok(false);
        }
        let at_ms = wanted.times.start_ms;
        let outcome = query
            .instant(at_ms, &wanted.settings, &*views)
            .map_err(refused)?;
        self.late = views.late();
        self.doubt = views.warning();
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
        asked.hold_bytes(rows.iter().map(Row::memory_bytes).sum())?;
        out.push(b'[');
        self.state = State::Rows(Rows::new(rows), outcome.annotations, outcome.stats);
        Ok(false)
    }

    /// Closes the answer behind its result.
    fn end(&self, annotations: Annotations, stats: Stats, out: &mut Vec<u8>) {
        if !self.wanted.stats.is_empty() {
            out.extend_from_slice(b",\"stats\":");
            out.extend_from_slice(self.stats(stats).to_string().as_bytes());
        }
        out.push(b'}');
        let (mut warnings, mut infos) = (Vec::from_iter(self.doubt.clone()), Vec::new());
        warnings.extend(self.stale.iter().cloned());
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
        if let Some(began) = self.began.filter(|_| !self.wanted.is_range) {
            self.listed.running.took(began.elapsed(), out.len());
        }
    }

    fn stats(&self, stats: Stats) -> serde_json::Value {
        let running = &self.listed.running;
        let queued = self
            .began
            .map_or(Duration::ZERO, |began| began - running.began());
        let ran_s = running.worked().saturating_sub(queued).as_secs_f64();
        let queued_s = queued.as_secs_f64();
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
                "samplesDecoded": stats.samples_read - stats.samples_together,
                "samplesFromStatistics": stats.samples_together,
                "lateSamplesMerged": self.late,
                "peakBytes": stats.peak_bytes,
            });
        }
        shown
    }

    /// Appends series to the result; true where there are no more.
    fn put_series(
        &mut self,
        asked: &Asked,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<bool, Answer> {
        let limit = self.wanted.limit.unwrap_or(usize::MAX);
        let (written_before, mut samples) = (self.written, 0);
        let (written, is_cut) = (&mut self.written, &mut self.is_cut);
        let mut begins = |out: &mut Vec<u8>| {
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
                while !is_over && out.len() < bytes_max {
                    let more = evaluation.more(&mut |labels, column| {
                        if begins(out) {
                            samples += column.len();
                            put_column(labels, column, stamps, out);
                        }
                        Ok(())
                    });
                    is_over = !more.map_err(|error| refusal(error, Some(views)))?;
                }
            }
            State::Rows(rows, ..) => (is_over, samples) = rows.put(out, bytes_max, begins),
        }
        add(&asked.counters().items, self.written - written_before);
        add(&asked.counters().samples, samples);
        Ok(is_over)
    }
}

impl Pieces for Answering {
    fn at_once(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Option<Result<bool, Answer>> {
        let is_new = matches!(self.state, State::New);
        let is_quick = is_new && self.listed.running.was_quick();
        // An EXEC is waited for.
        let waits = self.wanted.is_fresh || asked.shared().exec_lock.is_wanted();
        if !is_quick || self.wanted.is_range || waits {
            return None;
        }
        let made = asked.briefly(|| alone(|| self.more(asked, out)));
        let fails = match &made {
            // It may be for a want of time, of a file or of memory.
            Err(answer) => answer.status == StatusCode::SERVICE_UNAVAILABLE,
            // To pack it takes too long.
            Ok(follows) => *follows || out.len() > QUICK_BYTES_MAX,
        };
        if fails {
            // From the beginning, then.
            (self.state, self.written, self.is_cut) = (State::New, 0, false);
            self.idle_since = None;
            return None;
        }
        Some(made)
    }

    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let running = Arc::clone(&self.listed.running);
        if let Some(since) = self.idle_since.take() {
            running.idled(since.elapsed());
        }
        let is_first = matches!(self.state, State::New);
        if is_first && self.begin(asked, out)? {
            return Ok(false);
        }
        // Readers have time, but not without end: what a query holds is missing to others.
        if running.idle() > self.wanted.longest.saturating_mul(IDLE_MAX) {
            return Err(refusal(EvalError::from(Interrupt::Timeout).into(), None));
        }
        // The time of what is evaluated already does not count.
        if running.is_cancelled() {
            return Err(refusal(EvalError::from(Interrupt::Canceled).into(), None));
        }
        let bytes_max = if is_first { FIRST_BYTES } else { PIECE_BYTES };
        if !self.put_series(asked, out, bytes_max)? {
            self.idle_since = Some(Instant::now());
            return Ok(true);
        }
        out.push(b']');
        // What it read goes now, not when its reader has all.
        let (annotations, stats) = match std::mem::replace(&mut self.state, State::New) {
            State::New => (Annotations::default(), Stats::default()),
            State::Range(evaluation, _, views) => {
                self.late = views.late();
                self.doubt = views.warning();
                let outcome = evaluation.outcome();
                (outcome.annotations, outcome.stats)
            }
            State::Rows(_, annotations, stats) => (annotations, stats),
        };
        self.end(annotations, stats, out);
        Ok(false)
    }

    fn query_bytes(&self) -> usize {
        match &self.state {
            State::Range(evaluation, ..) => evaluation.held_bytes(),
            State::New | State::Rows(..) => 0,
        }
    }

    fn ended(&self) -> BoxFuture<'static, Answer> {
        let running = Arc::clone(&self.listed.running);
        let has_begun = self.began.is_some();
        Box::pin(running.ended(has_begun).map(before_evaluation))
    }
}
