//! `GET /api/v1/rules`, `/api/v1/alerts` and `/api/v1/alertmanagers`, as Prometheus 3.16 answers
//! them, and `POST /-/reload`.
//!
//! Alerts hold labels and values of series, and rules are those of the whole server: a user who may
//! not read every key (`~*`) sees none, with a warning that says so. Tested by `tests/http/rules.rs`.

use super::asked::Asked;
use super::envelope::{Told, respond, respond_in_thread};
use super::parameters::Parameters;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::rules::{LiveGroup, ShownDelays, ShownRule, Status, rfc3339_ms};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use latewood_rules::evaluate::Active;
use latewood_rules::{Kind, Rule};
use latewood_wire::selector::Matcher;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;

/// Memory of a rule and of an alert in an answer, beside their texts.
const RULE_BYTES: usize = 2048;
const ALERT_BYTES: usize = 1024;

/// `GET /api/v1/rules`.
pub(crate) async fn rules(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(
        &context,
        Endpoint::RuleGroups,
        request,
        |asked, parameters| {
            let wanted = Wanted::read(parameters)?;
            if !asked.may_read_all() {
                return Ok(hidden(asked, json!({"groups": []})));
            }
            let page = wanted.page(asked, &asked.context.rules.groups())?;
            Ok(page.into())
        },
    )
    .await
}

/// `GET /api/v1/alerts`.
pub(crate) async fn alerts(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::RuleGroups, request, |asked, _| {
        if !asked.may_read_all() {
            return Ok(hidden(asked, json!({"alerts": []})));
        }
        let mut alerts = Vec::new();
        for group in asked.context.rules.groups() {
            let rules = group.shown().rules;
            asked.hold_bytes(memory_bytes(&[], &rules))?;
            alerts.extend(rules.iter().flat_map(|rule| rule.active().map(alert)));
        }
        Ok(json!({"alerts": alerts}).into())
    })
    .await
}

/// What a user sees who may not read every key: no error, which would be shown in the place of all
/// else by whoever lists rules of several servers.
fn hidden(asked: &Asked, data: Value) -> Told {
    let user = String::from_utf8_lossy(asked.user_name());
    let warning = format!(
        "rules and alerts are hidden: user {user:?} may not read every series (needs ~* and TS.MRANGE)"
    );
    Told {
        data,
        warnings: vec![warning],
    }
}

/// `GET /api/v1/alertmanagers`.
pub(crate) async fn alertmanagers(State(context): State<Context>, request: Request) -> Response {
    respond(&context, Endpoint::Status, request, |asked, _| {
        let targets = asked.context.rules.notifier.targets();
        let active = targets.iter().map(|target| json!({"url": target.url}));
        Ok(json!({
            "activeAlertmanagers": active.collect::<Vec<_>>(),
            "droppedAlertmanagers": [],
        }))
    })
    .await
}

/// `POST /-/reload`: reads the rule files again. An answer in plain text, as Prometheus has it.
pub(crate) async fn reload(State(context): State<Context>, request: Request) -> Response {
    let worker = context.clone();
    let answer = respond_in_thread(&context, Endpoint::Reload, request, move |_, _| {
        let reloaded = worker.rules.reload();
        reloaded.map(|_| Value::Null).map_err(|why| {
            tracing::error!(why, "the rules in force before stay");
            let text = format!("failed to reload config: {why}");
            Answer::new(StatusCode::INTERNAL_SERVER_ERROR, text)
        })
    })
    .await;
    if answer.status() == StatusCode::OK {
        return StatusCode::OK.into_response();
    }
    answer
}

/// The rules that are asked for.
struct Wanted {
    names: Vec<String>,
    groups: Vec<String>,
    files: Vec<String>,
    selectors: Vec<Vec<Matcher>>,
    alerts: bool,
    records: bool,
    /// Without the alerts of alerting rules.
    is_short: bool,
    /// Groups of a page.
    most: Option<usize>,
    /// Where the page begins; empty is the beginning.
    token: String,
}

impl Wanted {
    fn read(parameters: &Parameters) -> Result<Self, Answer> {
        let all = |name| parameters.all(name).map(str::to_owned).collect();
        let kind = parameters.first("type").to_ascii_lowercase();
        if !matches!(&*kind, "" | "alert" | "record") {
            let wrong = format!("not supported value {kind:?}");
            return Err(Answer::parameter("type", wrong));
        }
        let token = parameters.first("group_next_token").to_owned();
        let most = match parameters.first("group_limit") {
            "" if !token.is_empty() => {
                let wrong = "group_limit needs to be present in order to paginate over the groups";
                return Err(Answer::parameter("group_next_token", wrong));
            }
            "" => None,
            text => Some(limit(text)?),
        };
        Ok(Self {
            names: all("rule_name[]"),
            groups: all("rule_group[]"),
            files: all("file[]"),
            selectors: parameters.selectors()?,
            alerts: kind != "record",
            records: kind != "alert",
            is_short: is_short(parameters.first("exclude_alerts"))?,
            most,
            token,
        })
    }

    /// The groups that are asked for, of all groups in their order.
    fn page(&self, asked: &Asked, groups: &[Arc<LiveGroup>]) -> Result<Value, Answer> {
        let mut begin = 0;
        if !self.token.is_empty() {
            let found = groups.iter().position(|group| token(group) == self.token);
            begin = found.ok_or_else(|| {
                let given = &self.token;
                let wrong =
                    format!("invalid group_next_token '{given}'. were rule groups changed?");
                Answer::parameter("group_next_token", wrong)
            })?;
        }
        let is_wanted = |wanted: &[String], name| wanted.is_empty() || wanted.contains(name);
        let (mut page, mut next) = (Vec::new(), None);
        for group in &groups[begin..] {
            if !is_wanted(&self.groups, &group.group.name) || !is_wanted(&self.files, &group.file) {
                continue;
            }
            let shown = group.shown();
            asked.hold_bytes(memory_bytes(&group.group.rules, &shown.rules))?;
            let rules = group.group.rules.iter().zip(&shown.rules);
            let rules = rules.zip(&group.delays);
            let rules: Vec<Value> = rules
                .enumerate()
                .filter(|(_, ((rule, _), _))| self.wants(rule))
                .map(|(at, ((rule, shown), delays))| {
                    let mut shown = self.rule(rule, shown);
                    shown["inputDelay"] = delays.shown().map_or(Value::Null, input_delay);
                    if let Kind::Record { .. } = rule.kind {
                        let status = asked.context.rules.corrections_of(group, at);
                        shown["corrections"] = corrections(&status);
                    }
                    shown
                })
                .collect();
            if rules.is_empty() {
                continue;
            }
            if self.most == Some(page.len()) {
                next = Some(token(group));
                break;
            }
            page.push(json!({
                "name": group.group.name,
                "file": group.file,
                "rules": rules,
                "interval": number(group.interval_ms() as f64 / 1000.0),
                "limit": group.group.limit,
                "evaluationTime": number(shown.took.as_secs_f64()),
                "lastEvaluation": rfc3339_ms(shown.began_ms),
            }));
        }
        let mut answer = json!({"groups": page});
        if let Some(next) = next {
            answer["groupNextToken"] = next.into();
        }
        Ok(answer)
    }

    fn wants(&self, rule: &Rule) -> bool {
        let is_of_kind = match rule.kind {
            Kind::Record { .. } => self.records,
            Kind::Alert(_) => self.alerts,
        };
        let labels = rule.labels();
        let passes = |matcher: &Matcher| {
            let mut labels = labels.iter();
            let found = labels.find(|(name, _)| *name.as_bytes() == *matcher.name);
            matcher.passes(found.map_or(b"", |(_, value)| value.as_bytes()))
        };
        let mut selectors = self.selectors.iter();
        is_of_kind
            && (self.names.is_empty() || self.names.contains(&rule.name))
            && (self.selectors.is_empty() || selectors.any(|matchers| matchers.iter().all(passes)))
    }

    fn rule(&self, rule: &Rule, shown: &ShownRule) -> Value {
        let labels = rule.labels().into_iter();
        // An empty one is none.
        let labels = labels.filter(|(_, value)| !value.is_empty());
        let labels: Map<String, Value> = labels
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        let mut all = json!({
            "name": rule.name,
            "query": rule.query.expr().to_string(),
            "labels": labels,
            "health": shown.health.name(),
            "evaluationTime": number(shown.took.as_secs_f64()),
            "lastEvaluation": rfc3339_ms(shown.began_ms),
            "type": "recording",
        });
        if !shown.error.is_empty() {
            all["lastError"] = shown.error.as_str().into();
        }
        if let Kind::Alert(alerting) = &rule.kind {
            let annotations = alerting.annotations.iter();
            let annotations = annotations.map(|(name, text)| (name.clone(), text.text().into()));
            all["type"] = "alerting".into();
            all["state"] = shown.state().into();
            all["duration"] = number(alerting.for_ms as f64 / 1000.0);
            all["keepFiringFor"] = number(alerting.keep_firing_for_ms as f64 / 1000.0);
            all["annotations"] = Value::Object(annotations.collect());
            all["alerts"] = if self.is_short {
                Value::Null
            } else {
                shown.active().map(alert).collect()
            };
        }
        all
    }
}

/// About what rules and their alerts take in an answer.
fn memory_bytes(rules: &[Rule], shown: &[ShownRule]) -> usize {
    let rules = rules.iter().map(|rule| RULE_BYTES + 2 * rule.text.len());
    let alerts = shown.iter().flat_map(ShownRule::active);
    let alerts = alerts.map(|alert| {
        let annotations = alert.annotations.iter();
        let annotations: usize = annotations
            .map(|(name, text)| name.len() + text.len())
            .sum();
        ALERT_BYTES + 2 * (alert.labels.len_bytes() + annotations)
    });
    rules.chain(alerts).sum()
}

/// How the rows of a recording rule are kept right.
fn corrections(status: &Status) -> Value {
    let time = |at_ms: Option<i64>| at_ms.map(rfc3339_ms);
    let last_s = status.last_run.map(|(_, took)| took.as_secs_f64());
    json!({
        "corrected": status.is_corrected(),
        "reason": status.reason,
        "since": time(status.since_ms),
        "final": time(status.final_ms),
        "isPending": status.is_pending,
        "pendingSteps": status.pending_steps,
        "pendingFrom": time(status.pending.map(|ends| ends.0)),
        "pendingTo": time(status.pending.map(|ends| ends.1)),
        "lastRun": rfc3339_ms(status.last_run.map_or(0, |(began_ms, _)| began_ms)),
        "lastRunSeconds": number(last_s.unwrap_or(0.0)),
        "rowsWritten": status.rows_written,
        "rowsDeleted": status.rows_deleted,
        "failure": status.failure,
    })
}

/// How late the samples of a rule come, seconds.
fn input_delay(delays: ShownDelays) -> Value {
    json!({
        "p50": number(delays.p50_s),
        "p99": number(delays.p99_s),
        "p999": number(delays.p999_s),
        "samples": delays.samples,
        "queryOffset": delays.query_offset_s,
    })
}

fn alert(alert: &Active) -> Value {
    let text = |value: &str| Value::from(value);
    let labels = alert.labels.iter();
    let labels: Map<_, _> = labels
        .map(|(name, value)| (name.to_owned(), text(value)))
        .collect();
    let annotations = alert.annotations.iter();
    let annotations: Map<_, _> = annotations
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    let mut all = json!({
        "labels": labels,
        "annotations": annotations,
        "state": alert.state.name(),
        "activeAt": rfc3339_ms(alert.active_at_ms),
        "value": exponent(alert.value),
    });
    if let Some(since_ms) = alert.keep_firing_since_ms {
        all["keepFiringSince"] = rfc3339_ms(since_ms).into();
    }
    all
}

/// A value with an exponent of two digits, as Go prints it.
fn exponent(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A number that is written without a fraction where it has none.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        (value as i64).into()
    } else {
        value.into()
    }
}

/// What a page begins with.
fn token(group: &LiveGroup) -> String {
    let digest = Sha256::digest(group.key());
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn limit(text: &str) -> Result<usize, Answer> {
    let wrong = |wrong: String| Answer::parameter("group_limit", wrong);
    match text.parse::<i32>() {
        Ok(limit) if limit > 0 => Ok(limit.unsigned_abs() as usize),
        Ok(_) => Err(wrong("group_limit needs to be greater than 0".to_owned())),
        Err(_) => Err(wrong(format!(
            "group_limit needs to be a valid number: strconv.ParseInt: parsing {text:?}: invalid \
             syntax"
        ))),
    }
}

/// What `exclude_alerts` says, in the words that Go takes.
fn is_short(text: &str) -> Result<bool, Answer> {
    match &*text.to_ascii_lowercase() {
        "" | "0" | "f" | "false" => Ok(false),
        "1" | "t" | "true" => Ok(true),
        other => {
            let wrong = format!(
                "error converting exclude_alerts: strconv.ParseBool: parsing {other:?}: invalid \
                 syntax"
            );
            Err(Answer::parameter("exclude_alerts", wrong))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_go_does() {
        for (value, text) in [
            (0.0, "0e+00"),
            (1.0, "1e+00"),
            (-12.5, "-1.25e+01"),
            (1e-7, "1e-07"),
            (1e100, "1e+100"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(exponent(value), text);
        }
    }
}
