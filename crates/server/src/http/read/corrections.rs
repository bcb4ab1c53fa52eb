//! `POST /api/v1/rules/verify`: the rows of recording rules that differ from what their expressions
//! give; and `POST /api/v1/rules/backfill`: has rows computed again, or with `cancel=true` drops what
//! is left of that.
//!
//! Both answer lines of JSON, the last of which counts. Values are texts as in queries, `"stale"` is
//! a stale mark, `null` no row. Whoever asks may run CONFIG SET, as for a reload, and to verify also
//! TS.MRANGE on all keys, since values are told. Tested by `tests/http/corrections.rs`.

use super::asked::Asked;
use super::envelope::{Text, answered};
use super::parameters::Parameters;
use super::series::put_labels;
use super::stream::{self, PIECE_BYTES, PIECE_TIME, Pieces};
use crate::base::clock::now_ms;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::rules::{Chosen, Found, Verifying, rfc3339_ms};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use latewood_promql::labels::Labels;
use latewood_promql::number::push_plain;
use latewood_promql::source::is_stale;
use latewood_rules::correct::compare::Difference;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The type of lines of JSON.
const LINES: &str = "application/x-ndjson";
const PARAMETERS: [&str; 6] = [
    "from",
    "to",
    "rule_group[]",
    "rule_name[]",
    "file[]",
    "cancel",
];
/// The command that a user needs.
const CHANGE_COMMAND: &str = "config|set";
/// Rules that are left out which are told; of more their number.
const SKIPPED_MAX: usize = 100;

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
        parameters.only(&PARAMETERS[..5])?;
        let answering = Answering {
            span: span(&parameters)?,
            chosen: chosen(&parameters, &asked)?,
            verifying: None,
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
        parameters.only(&PARAMETERS)?;
        let span = if cancels(&parameters)? {
            None
        } else {
            Some(span(&parameters)?)
        };
        let chosen = chosen(&parameters, &asked)?;
        let work = move || {
            let (rules, shared) = (&asked.context.rules, asked.shared());
            let done = match span {
                Some(span) => rules.backfill(shared, &chosen, span),
                None => rules.cancel(shared, &chosen),
            };
            let done = done.map_err(Answer::busy)?;
            let (steps, rules) = (done.steps, done.rules);
            match span {
                Some((from_ms, to_ms)) => {
                    tracing::info!(steps, rules, from_ms, to_ms, "a backfill of rules");
                }
                None => tracing::info!(steps, rules, "a backfill of rules was cancelled"),
            }
            let line = json!({
                "rules": rules,
                "steps": steps,
                "skipped": told(&done.skipped),
                "notCorrected": done.skipped.len(),
            });
            Ok::<_, Answer>((asked, format!("{line}\n")))
        };
        let (asked, text) = context.block_in(&context.work.control, work).await??;
        stream::respond(asked, LINES, Text::from(text), ()).await
    };
    answered(&context, Endpoint::Backfill, answer.await)
}

/// Which rows are meant, milliseconds.
fn span(parameters: &Parameters) -> Result<(i64, i64), Answer> {
    let now_ms = now_ms();
    let from_ms = parameters.time("from")?;
    let from_ms = from_ms.ok_or_else(|| Answer::parameter("from", "a time is needed"))?;
    let to_ms = parameters.time("to")?.unwrap_or(now_ms);
    if from_ms > now_ms {
        return Err(Answer::parameter("from", "it is in the future"));
    }
    if to_ms < from_ms {
        return Err(Answer::parameter("to", "it is before from"));
    }
    Ok((from_ms, to_ms))
}

/// Whether a backfill is to end.
fn cancels(parameters: &Parameters) -> Result<bool, Answer> {
    let wrong = |text| Err(Answer::parameter("cancel", text));
    match parameters.first("cancel") {
        "" | "0" | "false" => Ok(false),
        "1" | "true"
            if !parameters.first("from").is_empty() || !parameters.first("to").is_empty() =>
        {
            wrong("it drops all that waits: give neither from nor to".to_owned())
        }
        "1" | "true" => Ok(true),
        other => wrong(format!("expected true or false, got {other:?}")),
    }
}

/// Which rules are meant.
fn chosen(parameters: &Parameters, asked: &Asked) -> Result<Chosen, Answer> {
    let all = |name| parameters.all(name).map(str::to_owned).collect();
    if !asked.shared().is_owner() {
        let text = "this node does not own the log: the owner corrects the rows of rules, ask it";
        return Err(Answer::busy(text));
    }
    if !asked.context.rules.is_on() {
        return Err(Answer::bad("the server has no rule files (--rules)"));
    }
    let chosen = Chosen {
        groups: all("rule_group[]"),
        rules: all("rule_name[]"),
        files: all("file[]"),
    };
    if !asked.context.rules.has_chosen(&chosen) {
        return Err(Answer::bad("there is no such recording rule"));
    }
    Ok(chosen)
}

/// The first rules that are left out, with the reasons.
fn told(skipped: &[(String, String)]) -> Vec<Value> {
    let skipped = skipped.iter().take(SKIPPED_MAX);
    skipped
        .map(|(rule, why)| json!({"rule": rule, "reason": why}))
        .collect()
}

struct Answering {
    span: (i64, i64),
    chosen: Chosen,
    verifying: Option<Verifying>,
    differences: u64,
}

impl Answering {
    /// Compares some steps. Returns the last line, once all are compared.
    fn go_on(&mut self, asked: &Asked, out: &mut Vec<u8>) -> Result<Option<Value>, String> {
        let (rules, shared) = (&asked.context.rules, asked.shared());
        let mut verifying = match self.verifying.take() {
            Some(verifying) => verifying,
            None => rules.begin_verify(shared, &self.chosen, self.span)?,
        };
        let longest = Duration::from_millis(shared.settings.promql.timeout_ms);
        let differences = &mut self.differences;
        let mut sink = |found: Found<'_>| {
            *differences += 1;
            let rule = (&*found.rule.group.group.name, &*found.rule.rule().name);
            put(rule, found.labels, &found.difference, out);
        };
        let deadline = Instant::now() + longest;
        if rules.verify_more(shared, &mut verifying, deadline, &mut sink)? {
            self.verifying = Some(verifying);
            return Ok(None);
        }
        Ok(Some(json!({
            "rules": verifying.rules,
            "steps": verifying.steps,
            "differences": self.differences,
            "notCorrected": verifying.skipped.len(),
            "skipped": told(&verifying.skipped),
        })))
    }
}

impl Pieces for Answering {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let begun = Instant::now();
        while out.len() < PIECE_BYTES && begun.elapsed() < PIECE_TIME {
            asked.check_wanted()?;
            let last = match self.go_on(asked, out) {
                Ok(None) => continue,
                Ok(Some(last)) => last,
                Err(why) => json!({"error": why, "differences": self.differences}),
            };
            out.extend_from_slice(format!("{last}\n").as_bytes());
            return Ok(false);
        }
        Ok(true)
    }
}

/// A row that differs, of a group and a rule.
fn put((group, rule): (&str, &str), labels: &Labels, one: &Difference, out: &mut Vec<u8>) {
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
        "group": group,
        "rule": rule,
        "time": rfc3339_ms(one.at_ms),
        "stored": value(one.stored),
        "computed": value(one.wanted),
    });
    // Its labels stand behind it.
    let head = head.to_string();
    out.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
    out.extend_from_slice(b",\"series\":");
    put_labels(labels, out);
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_promql::source::STALE_BITS;

    #[test]
    fn a_row_that_differs_is_a_line() {
        let mut out = Vec::new();
        let labels = Labels::from_pairs([("__name__", "r"), ("job", "a}")]);
        let one = Difference {
            at_ms: 1_500,
            stored: Some(f64::from_bits(STALE_BITS)),
            wanted: Some(0.5),
        };
        put(("g", "r}"), &labels, &one, &mut out);
        let line: Value = serde_json::from_slice(&out).unwrap_or_default();
        let expected = json!({
            "group": "g",
            "rule": "r}",
            "series": {"__name__": "r", "job": "a}"},
            "time": "1970-01-01T00:00:01.5Z",
            "stored": "stale",
            "computed": "0.5",
        });
        assert_eq!(line, expected);
        assert_eq!(out.last(), Some(&b'\n'));
    }
}
