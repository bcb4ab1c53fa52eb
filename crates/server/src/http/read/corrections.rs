//! `POST /api/v1/rules/verify`: the rows of recording rules that differ from what their expressions
//! give; and `POST /api/v1/rules/backfill`: has rows computed again.
//!
//! Both answer lines of JSON, the last of which counts. Values are texts as in queries, `"stale"` is
//! a stale mark, `null` no row. Whoever asks may run CONFIG SET, as for a reload; to verify, also
//! TS.MRANGE on all keys, since values are told. Tested by `tests/http/corrections.rs`.

use super::asked::Asked;
use super::envelope::answered;
use super::parameters::Parameters;
use super::series::put_labels;
use super::stream::{self, PIECE_BYTES, PIECE_TIME, Pieces};
use crate::base::clock::now_ms;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::rules::{Planned, Verifying, rfc3339_ms};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use latewood_promql::labels::Labels;
use latewood_promql::number::push_plain;
use latewood_promql::source::is_stale;
use latewood_rules::correct::compare::Difference;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// Lines of JSON.
const LINES: &str = "application/x-ndjson";
const PARAMETERS: [&str; 5] = ["from", "to", "rule_group[]", "rule_name[]", "file[]"];
/// The commands that a user needs.
const CHANGE_COMMAND: &str = "config|set";

/// Which rules, and which of their rows.
struct Wanted {
    from_ms: i64,
    to_ms: i64,
    names: Vec<String>,
    groups: Vec<String>,
    files: Vec<String>,
}

/// `POST /api/v1/rules/verify`.
pub(crate) async fn verify(State(context): State<Context>, request: Request) -> Response {
    let answer = async {
        let read = Asked::with_parameters(&context, Endpoint::VerifyRules, request).await;
        let (asked, parameters) = read?;
        asked.demand(CHANGE_COMMAND)?;
        if !asked.may_read_all() {
            let text = "permission to read all keys (~*) is required: values of rows are told";
            return Err(Answer::new(StatusCode::FORBIDDEN, text));
        }
        let wanted = Wanted::read(&parameters)?;
        let manager = Arc::clone(&asked.context.rules);
        let shared = Arc::clone(asked.shared());
        let span = (wanted.from_ms, wanted.to_ms);
        let verifying = Verifying::new(manager, shared, span, |planned| wanted.wants(planned));
        let answering = Answering {
            verifying,
            differences: 0,
        };
        stream::respond(asked, LINES, answering, ()).await
    };
    answered(&context, Endpoint::VerifyRules, answer.await)
}

/// `POST /api/v1/rules/backfill`.
pub(crate) async fn backfill(State(context): State<Context>, request: Request) -> Response {
    let answer = async {
        let read = Asked::with_parameters(&context, Endpoint::Backfill, request).await;
        let (asked, parameters) = read?;
        let wanted = Wanted::read(&parameters)?;
        let permits = &context.work.control;
        let work = move || {
            let span = (wanted.from_ms, wanted.to_ms);
            let manager = Arc::clone(&asked.context.rules);
            let begun = manager.backfill(asked.shared(), span, |planned| wanted.wants(planned));
            let begun = begun.map_err(Answer::busy)?;
            let mut text = String::new();
            let (mut steps, mut skipped) = (0, 0);
            for one in &begun {
                let mut line = json!({"group": one.group, "rule": one.rule, "file": one.file});
                match &one.outcome {
                    Ok((from_ms, to_ms, count)) => {
                        steps += count;
                        line["from"] = rfc3339_ms(*from_ms).into();
                        line["to"] = rfc3339_ms(*to_ms).into();
                        line["steps"] = (*count).into();
                    }
                    Err(why) => {
                        skipped += 1;
                        line["skipped"] = why.as_str().into();
                    }
                }
                text.push_str(&format!("{line}\n"));
            }
            let rules = begun.len() - skipped;
            let last = json!({"rules": rules, "skipped": skipped, "steps": steps, "differences": 0});
            text.push_str(&format!("{last}\n"));
            Ok::<_, Answer>((asked, text))
        };
        let (asked, text) = context.block_in(permits, work).await??;
        stream::respond(asked, LINES, super::envelope::Text::from(text), ()).await
    };
    answered(&context, Endpoint::Backfill, answer.await)
}

impl Wanted {
    fn read(parameters: &Parameters) -> Result<Self, Answer> {
        parameters.only(&PARAMETERS)?;
        let all = |name| parameters.all(name).map(str::to_owned).collect();
        let from_ms = parameters.time("from")?;
        let from_ms = from_ms.ok_or_else(|| Answer::parameter("from", "a time is needed"))?;
        let to_ms = parameters.time("to")?.unwrap_or_else(now_ms);
        if to_ms < from_ms {
            return Err(Answer::parameter("to", "it is before from"));
        }
        Ok(Self {
            from_ms,
            to_ms,
            names: all("rule_name[]"),
            groups: all("rule_group[]"),
            files: all("file[]"),
        })
    }

    fn wants(&self, planned: &Planned) -> bool {
        let is_wanted = |wanted: &[String], name| wanted.is_empty() || wanted.contains(name);
        is_wanted(&self.names, &planned.rule().name)
            && is_wanted(&self.groups, &planned.group.group.name)
            && is_wanted(&self.files, &planned.group.file)
    }
}

struct Answering {
    verifying: Verifying,
    differences: u64,
}

impl Pieces for Answering {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let begun = Instant::now();
        while out.len() < PIECE_BYTES && begun.elapsed() < PIECE_TIME {
            asked.check_wanted()?;
            let differences = &mut self.differences;
            let more = self.verifying.more(&mut |planned, labels, found| {
                *differences += found.len() as u64;
                found.iter().for_each(|one| put(planned, labels, one, out));
            });
            let last = match more {
                Ok(true) => continue,
                Ok(false) => self.verifying.summary(self.differences),
                Err(why) => json!({"error": why, "differences": self.differences}),
            };
            put_line(&last, out);
            return Ok(false);
        }
        Ok(true)
    }
}

fn put_line(line: &Value, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = writeln!(out, "{line}");
}

/// A row that differs.
fn put(planned: &Planned, labels: &Labels, one: &Difference, out: &mut Vec<u8>) {
    let value = |value: Option<f64>| match value {
        None => Value::Null,
        Some(value) if is_stale(value) => "stale".into(),
        Some(value) => {
            let mut text = Vec::new();
            push_plain(&mut text, value);
            String::from_utf8_lossy(&text).into()
        }
    };
    let head = json!({
        "group": planned.group.group.name,
        "rule": planned.rule().name,
        "time": rfc3339_ms(one.at_ms),
        "stored": value(one.stored),
        "computed": value(one.wanted),
    });
    // Its labels stand behind it.
    let head = head.to_string();
    out.extend_from_slice(head.trim_end_matches('}').as_bytes());
    out.extend_from_slice(b",\"series\":");
    put_labels(labels, out);
    out.extend_from_slice(b"}\n");
}
