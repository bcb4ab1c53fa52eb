//! What the parts of a query did, piece by piece as JSON.
//!
//! The query is evaluated before the first piece, as an instant query is; of its result nothing is
//! kept. The nodes of its tree are a flat list, so that no reader needs a stack for a deep one.

use super::json::put_texts;
use super::refusal::{before_evaluation, refusal};
use super::registry::Listed;
use super::result::IDLE_MAX;
use super::text::{PLAN_BYTES, TREE_BYTES};
use super::views::Asking;
use super::wanted::Wanted;
use crate::http::answer::Answer;
use crate::http::read::asked::Asked;
use crate::http::read::stream::{PIECE_BYTES, Pieces};
use crate::observe::reads::add;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use latewood_promql::QUERY_BYTES_MAX;
use latewood_promql::annotation::{Annotation, Level};
use latewood_promql::engine::{EvalError, Query};
use latewood_promql::explain::Explanation;
use latewood_promql::source::Interrupt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Bytes for each byte of a query's text: of what is recorded of its nodes.
const RECORD_BYTES: usize = 128;
/// Bytes of an explanation: of its nodes and of the labels that they show.
const EXPLANATION_BYTES: usize = 6 << 20;
/// Annotations that are shown with their positions, and bytes of each.
const ANNOTATIONS_MAX: usize = 100;
const ANNOTATION_BYTES_MAX: usize = 2048;

/// A query and what is said of it.
pub(super) struct Explained {
    wanted: Wanted,
    listed: Listed,
    has_begun: bool,
    explanation: Option<Explanation>,
    /// Nodes written.
    written: usize,
    late: u64,
    /// What [`Views::warning`](super::views::Views::warning) says.
    doubt: Option<String>,
    /// Since when its reader is waited for.
    idle_since: Option<Instant>,
}

impl Explained {
    pub(super) fn new(wanted: Wanted, listed: Listed) -> Self {
        Self {
            wanted,
            listed,
            has_begun: false,
            explanation: None,
            written: 0,
            late: 0,
            doubt: None,
            idle_since: None,
        }
    }

    /// Evaluates the query.
    fn explain(&mut self, asked: &Arc<Asked>) -> Result<Explanation, Answer> {
        self.has_begun = true;
        let running = Arc::clone(&self.listed.running);
        running.check().map_err(before_evaluation)?;
        let Wanted { text, settings, .. } = &self.wanted;
        let text_bytes = text.len().min(QUERY_BYTES_MAX);
        asked.hold_bytes(EXPLANATION_BYTES)?;
        let each_bytes = PLAN_BYTES + TREE_BYTES + RECORD_BYTES;
        let _tree_memory = asked.permits().memory(text_bytes * each_bytes)?;
        let query = Query::new(text).map_err(|error| refusal(error, None))?;
        running.parsed();
        let views = Asking::views(asked, running);
        let (times, is_range) = (self.wanted.times, self.wanted.is_range);
        let explanation = query.explain(text, times, is_range, settings, &*views);
        self.late = views.late();
        self.doubt = views.warning();
        explanation.map_err(|error| refusal(error, Some(&views)))
    }

    /// Appends nodes until `out` is a piece; whether there are no more.
    fn put_nodes(&mut self, of: &Explanation, asked: &Asked, out: &mut Vec<u8>) -> bool {
        let before = self.written;
        while out.len() < PIECE_BYTES && self.written < of.nodes.len() {
            if self.written > 0 {
                out.push(b',');
            }
            let node = of.nodes[self.written].to_json(self.written);
            out.extend_from_slice(node.to_string().as_bytes());
            self.written += 1;
        }
        add(&asked.counters().items, self.written - before);
        self.written == of.nodes.len()
    }

    /// Closes the answer behind the nodes.
    fn end(&self, of: &Explanation, out: &mut Vec<u8>) {
        let (grid, stats) = (of.grid, of.stats);
        let seconds = |time_ms: i64| time_ms as f64 / 1000.0;
        let query = json!({
            "nodesOmitted": of.nodes_omitted,
            "resultType": match (self.wanted.is_range, of.ty.name()) {
                (true, _) => "matrix",
                (false, name) => name,
            },
            "range": self.wanted.is_range,
            "start": seconds(grid.start_ms),
            "end": seconds(grid.end_ms()),
            "step": if self.wanted.is_range { seconds(grid.step_ms) } else { 0.0 },
            "steps": grid.steps,
            "evaluationMs": of.took.as_micros() as f64 / 1000.0,
            "stats": {
                "series": stats.series,
                "samples": stats.samples,
                "seriesRead": stats.series_read,
                "samplesRead": stats.samples_read,
                "lateSamplesMerged": self.late,
                "peakBytes": stats.peak_bytes,
            },
            "annotations": of.annotations.iter().take(ANNOTATIONS_MAX).map(shown).collect::<Value>(),
        });
        // The fields follow those that are written already.
        let query = query.to_string();
        out.extend_from_slice(b"],");
        out.extend_from_slice(&query.as_bytes()[1..]);
        let texts = |level: Level| -> Vec<String> {
            let annotations = of.annotations.iter();
            let wanted = annotations.filter(|annotation| annotation.level == level);
            wanted.map(|one| one.shown(&self.wanted.text)).collect()
        };
        let mut warnings = texts(Level::Warning);
        warnings.extend(self.doubt.clone());
        put_texts("warnings", "warning", warnings, out);
        put_texts("infos", "info", texts(Level::Info), out);
        out.extend_from_slice(b"}\n");
    }
}

fn shown(annotation: Annotation) -> Value {
    let text = &annotation.text;
    let end = text.floor_char_boundary(ANNOTATION_BYTES_MAX);
    json!({
        "level": match annotation.level {
            Level::Warning => "warning",
            Level::Info => "info",
        },
        "text": text[..end],
        "start": annotation.at.0,
        "end": annotation.at.1,
    })
}

impl Pieces for Explained {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let running = Arc::clone(&self.listed.running);
        if let Some(since) = self.idle_since.take() {
            running.idled(since.elapsed());
        }
        let explanation = match self.explanation.take() {
            Some(explanation) => explanation,
            None => {
                let explanation = self.explain(asked)?;
                out.extend_from_slice(b"{\"status\":\"success\",\"data\":{\"nodes\":[");
                explanation
            }
        };
        if running.idle() > self.wanted.longest.saturating_mul(IDLE_MAX) {
            return Err(refusal(EvalError::from(Interrupt::Timeout).into(), None));
        }
        if running.is_cancelled() {
            return Err(refusal(EvalError::from(Interrupt::Canceled).into(), None));
        }
        if self.put_nodes(&explanation, asked, out) {
            self.end(&explanation, out);
            return Ok(false);
        }
        self.explanation = Some(explanation);
        self.idle_since = Some(Instant::now());
        Ok(true)
    }

    fn ended(&self) -> BoxFuture<'static, Answer> {
        let running = Arc::clone(&self.listed.running);
        Box::pin(running.ended(self.has_begun).map(before_evaluation))
    }
}
