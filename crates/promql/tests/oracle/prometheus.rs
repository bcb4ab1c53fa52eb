//! The oracle as a process: lines of JSON in and out.

use crate::oracle::compare::{Answer, Row};
use crate::oracle::data::Series;
use crate::oracle::query::Query;
use latewood_promql::source::is_stale;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running oracle.
pub(crate) struct Prometheus {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Builds the oracle.
pub(crate) fn build() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = manifest.join("../../tests/promql/oracle");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("promql-oracle");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(source)
        .status()
        .expect("go starts; LEFT_OUT=go leaves this test out");
    assert!(status.success(), "the oracle does not build");
    program
}

impl Prometheus {
    pub(crate) fn start(program: &Path) -> Self {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the oracle starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            child,
            input,
            output,
        }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.input, "{line}").expect("the oracle reads");
    }

    /// Replaces all series.
    pub(crate) fn load(&mut self, all: &[Series]) {
        let value = |value: f64| match value {
            _ if is_stale(value) => "stale".to_owned(),
            f64::INFINITY => "+Inf".to_owned(),
            f64::NEG_INFINITY => "-Inf".to_owned(),
            _ => value.to_string(),
        };
        let series = all.iter().map(|series| {
            let labels = series.labels.iter();
            let labels: serde_json::Map<_, _> = labels
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect();
            let times: Vec<_> = series.samples.iter().map(|(time, _)| time).collect();
            let values: Vec<_> = series
                .samples
                .iter()
                .map(|(_, held)| value(*held))
                .collect();
            json!({"labels": labels, "t": times, "v": values})
        });
        let series: Vec<_> = series.collect();
        self.send(&json!({ "load": series }));
    }

    /// Evaluates a query.
    pub(crate) fn answer(&mut self, query: &Query, text: &str) -> Answer {
        self.send(&json!({
            "query": text,
            "start": query.start_ms,
            "end": query.end_ms,
            "step": query.step_ms,
            "lookback": query.lookback_ms,
            "delayed": query.delays,
        }));
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("the oracle answers");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let texts = |name: &str| {
            let texts = answer[name].as_array().into_iter().flatten();
            texts
                .map(|text| text.as_str().expect("a text").to_owned())
                .collect()
        };
        Answer {
            kind: answer["type"].as_str().unwrap_or_default().to_owned(),
            rows: answer["series"]
                .as_array()
                .into_iter()
                .flatten()
                .map(row)
                .collect(),
            text: answer["text"].as_str().unwrap_or_default().to_owned(),
            warnings: texts("warnings"),
            infos: texts("infos"),
            error: answer["error"].as_str().map(|error| {
                let kind = answer["errorType"].as_str().unwrap_or_default();
                (kind.to_owned(), error.to_owned())
            }),
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn row(series: &Value) -> Row {
    let labels = series["labels"].as_object().into_iter().flatten();
    let times = series["t"].as_array().into_iter().flatten();
    let values = series["v"].as_array().into_iter().flatten();
    Row {
        labels: labels
            .map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned()))
            .collect(),
        samples: times
            .zip(values)
            .map(|(time, value)| {
                let value = value.as_str().expect("a text").to_owned();
                (time.as_i64().expect("a time"), value)
            })
            .collect(),
    }
}
