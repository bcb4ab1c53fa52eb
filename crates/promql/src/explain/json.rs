//! Nodes of an explanation as JSON; `docs/promql.md` describes the fields.

use super::matching::{Matched, Pair, Shown, Side};
use super::{Figures, Node};
use serde_json::{Map, Value, json};

impl Node {
    /// The node as JSON; `id` is its place.
    pub fn to_json(&self, id: usize) -> Value {
        let mut out = json!({
            "id": id,
            "parent": self.parent,
            "depth": self.depth,
            "children": self.children,
            "childrenOmitted": self.children_omitted,
            "kind": self.kind,
            "name": self.name,
            "text": self.text,
            "start": self.span.start,
            "end": self.span.end,
            "type": self.ty.name(),
            "evaluated": self.figures.is_some(),
            "totalMs": millis(self.total_ns),
            "notes": self.notes,
        });
        if let Some(figures) = self.figures {
            put_figures(&mut out, figures);
        }
        if let Some(matching) = &self.matching {
            out["matching"] = matching.to_json();
        }
        out
    }
}

fn put_figures(out: &mut Value, figures: Figures) {
    out["steps"] = figures.steps.into();
    out["series"] = figures.series.into();
    out["samples"] = figures.samples.into();
    out["seriesKnown"] = figures.series_known.into();
    out["seriesEvaluated"] = figures.series_evaluated.into();
    out["columns"] = figures.columns.into();
    out["ownMs"] = millis(figures.own_ns).into();
    out["peakBytes"] = figures.peak_bytes.into();
    out["seriesRead"] = figures.series_read.into();
    out["samplesRead"] = figures.samples_read.into();
    out["lateSamplesMerged"] = figures.late_read.into();
}

/// Milliseconds with their microseconds.
fn millis(ns: u64) -> f64 {
    (ns / 1000) as f64 / 1000.0
}

impl Matched {
    fn to_json(&self) -> Value {
        let by = &self.by;
        let pair =
            |pair: &Pair| json!({"left": pair.left.to_json(), "right": pair.right.to_json()});
        json!({
            "card": by.cardinality.name(),
            "on": by.is_on,
            "labels": by.labels,
            "include": by.include,
            "fillLeft": by.fill_left,
            "fillRight": by.fill_right,
            "left": self.left.to_json(),
            "right": self.right.to_json(),
            "pairs": self.pairs,
            "examples": self.examples.iter().map(pair).collect::<Value>(),
            "examplesOmitted": self.is_cut,
        })
    }
}

impl Side {
    fn to_json(&self) -> Value {
        json!({
            "series": self.series,
            "matched": self.matched,
            "unmatched": self.series - self.matched,
            "examples": self.unmatched.iter().map(Shown::to_json).collect::<Value>(),
        })
    }
}

impl Shown {
    fn to_json(&self) -> Value {
        let text = |text: &String| Value::from(&**text);
        let pairs = self.labels.iter();
        let labels: Map<String, Value> = pairs
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        json!({"labels": labels, "labelsOmitted": self.omitted})
    }
}
