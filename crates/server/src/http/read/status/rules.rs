//! `GET /api/v1/status/rules`: compaction rules and their state, a page at a time.
//!
//! In no order, those of a source together. A rule is shown to who may read its source: TS.INFO
//! tells as much. Nothing is recomputed for it.
//!
//! Tested by `tests/http/status.rs`.

use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::asked::Asked;
use crate::http::read::envelope::respond_in_thread;
use crate::labelled::text;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_engine::RuleState;
use serde_json::{Value, json};

/// Rules of a page, unless `limit` says otherwise, and at most.
const RULES: usize = 100;
const RULES_MAX: usize = 1_000;
/// Bytes of keys at which a page ends.
const BYTES_MAX: usize = 1 << 20;
/// Spans of failed buckets that are shown of a rule.
const FAILED_MAX: usize = 100;
/// Memory of a rule: its keys as texts and twice in the answer, and the rest; of a span of it.
const COPIES: usize = 3;
const RULE_BYTES: usize = 2048;
const SPAN_BYTES: usize = 512;

pub(crate) async fn rules(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Rules, request, |asked, parameters| {
        parameters.only(&["limit", "cursor"])?;
        let limit = parameters.limit_within(RULES, RULES_MAX)?;
        page(asked, parameters.cursor()?, limit)
    })
    .await
}

fn page(asked: &Asked, mut cursor: u64, limit: usize) -> Result<Value, Answer> {
    let (mut rules, mut bytes) = (Vec::new(), 0);
    loop {
        let mut held = Ok(());
        // One source at a time: how many rules it has is not known before.
        let scanned = asked.shared().db.scan_rules(cursor, 1, &mut |rule| {
            bytes += rule.source.len() + rule.destination.len();
            if held.is_ok() && asked.may_read(&rule.source) {
                held = hold(asked, &rule);
                rules.push(shown(&rule));
            }
        });
        cursor = scanned.map_err(|error| Answer::engine(&error))?;
        held?;
        asked.check_wanted()?;
        if cursor == 0 || rules.len() >= limit || bytes >= BYTES_MAX {
            break;
        }
    }
    add(&asked.counters().items, rules.len());
    let cursor = (cursor != 0).then(|| cursor.to_string());
    Ok(json!({"rules": rules, "cursor": cursor}))
}

/// Takes the memory of a rule in an answer.
///
/// # Errors
/// 503 where there is none.
pub(super) fn hold(asked: &Asked, rule: &RuleState) -> Result<(), Answer> {
    let keys = rule.source.len() + rule.destination.len();
    let spans = rule.failed.len().min(FAILED_MAX);
    asked.hold_bytes(keys * COPIES + RULE_BYTES + spans * SPAN_BYTES)
}

/// A rule without its state, as JSON.
pub(super) fn definition(rule: &RuleState) -> Value {
    json!({
        "source": text(&rule.source),
        "destination": text(&rule.destination),
        "aggregator": rule.spec.aggregator.name().to_uppercase(),
        "bucket_ms": rule.spec.bucket_ms,
        "align_ms": rule.spec.align,
    })
}

pub(super) fn shown(rule: &RuleState) -> Value {
    let bucket_ms = rule.spec.bucket_ms.unsigned_abs().max(1);
    let buckets = |&(first, last): &(i64, i64)| last.abs_diff(first) / bucket_ms + 1;
    let failed_buckets = rule.failed.iter().map(buckets);
    let failed_buckets = failed_buckets.fold(0, u64::saturating_add);
    let span = |&(first, last): &(i64, i64)| json!({"first_ms": first, "last_ms": last});
    let mut all = definition(rule);
    all["dirty_buckets"] = json!(rule.dirty_buckets);
    all["failed_buckets"] = json!(failed_buckets);
    all["failed"] = rule.failed.iter().take(FAILED_MAX).map(span).collect();
    all["backfill_buckets"] = json!(rule.backfill_buckets);
    let ends = rule.backfill.first().zip(rule.backfill.last());
    let left = ends.map(|(first, last)| (first.0, last.1));
    all["backfill"] = json!(left.as_ref().map(span));
    all["open"] = json!(rule.open.as_ref().map(span));
    all["recomputed_ms"] = json!(rule.recomputed_ms);
    all
}
