//! `GET /api/v1/status/series`: one series, named by `key` or by a `match[]` of it alone.
//!
//! What TS.INFO tells of it, how much of it is in memory and in blocks, and its rules with their
//! state. As TS.INFO it counts the samples, which reads those that late ones are pending for.
//!
//! Tested by `tests/http/status.rs`.

use super::rules::{definition, hold, shown as shown_rule};
use crate::acl::Denied;
use crate::acl::log::HTTP;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::asked::{Asked, Unreadable};
use crate::http::read::envelope::respond_in_thread;
use crate::http::read::parameters::Parameters;
use crate::labelled::{shown, text};
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use latewood_engine::{SeriesInfo, SeriesRef};
use serde_json::{Value, json};

pub(crate) async fn series(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(
        &context,
        Endpoint::SeriesStatus,
        request,
        |asked, parameters| {
            parameters.only(&["key", "match[]"])?;
            let key = named(asked, parameters)?.key;
            report(asked, &key)
        },
    )
    .await
}

fn report(asked: &Asked, key: &[u8]) -> Result<Value, Answer> {
    let db = &asked.shared().db;
    let failed = |error| Answer::of_series(&error, key);
    // Before the samples are counted, which brings a destination up to date.
    let rules = db.rule_states(key).map_err(failed)?;
    rules.iter().try_for_each(|rule| hold(asked, rule))?;
    let info = db.info_until(key, Some(asked.unwanted())).map_err(failed)?;
    asked.check_wanted()?;
    add(&asked.counters().items, 1);
    let (from, to): (Vec<_>, Vec<_>) = rules.iter().partition(|rule| *rule.source == *key);
    let source = to.first().map(|rule| {
        if asked.may_read(&rule.source) {
            shown_rule(rule)
        } else {
            // As TS.INFO: the state would tell of its samples.
            definition(rule)
        }
    });
    let chunks_bytes: u64 = info.chunks.iter().map(|chunk| chunk.size_bytes).sum();
    let mut data = options(key, &info);
    data["samples"] = json!(info.total_samples);
    data["late_pending"] = json!(info.late_pending);
    data["late_samples"] = json!(info.late_samples);
    data["late_arrived_ms"] = json!(info.late_arrived_ms);
    data["first_ms"] = json!(info.first_timestamp);
    data["last_ms"] = json!(info.last_timestamp);
    data["memory_chunks"] = json!(info.chunks.len());
    data["memory_chunks_bytes"] = json!(chunks_bytes);
    data["block_chunks"] = json!(info.stored_chunks);
    data["block_chunks_bytes"] = json!(info.stored_bytes);
    data["memory_bytes"] = json!(info.memory.total_bytes());
    data["source"] = json!(source);
    data["rules"] = from.into_iter().map(shown_rule).collect();
    Ok(data)
}

fn options(key: &[u8], info: &SeriesInfo) -> Value {
    let options = &info.options;
    let label = |(name, value): (&[u8], &[u8])| json!({"name": text(name), "value": text(value)});
    let metric = shown(&options.labels, key);
    let metric = metric
        .iter()
        .map(|(name, value)| (name.to_owned(), value.into()));
    json!({
        "key": text(key),
        "labels": options.labels.iter().map(label).collect::<Value>(),
        "metric": Value::Object(metric.collect()),
        "chunk_size_bytes": options.chunk_size_bytes,
        "encoding": options.encoding.name(),
        "duplicate_policy": options.duplicate_policy.map(|policy| policy.name()),
        "ignore_max_time_diff_ms": options.ignore.max_time_diff_ms,
        "ignore_max_value_diff": options.ignore.max_value_diff,
        "retention_ms": options.retention_ms,
    })
}

/// The series that `key` or `match[]` names. A key stands for itself as it is shown, too.
///
/// # Errors
/// 400 where neither or both are there, or `match[]` matches several; 403 where the user may not
/// read it; 404 where there is none.
pub(super) fn named(asked: &Asked, parameters: &Parameters) -> Result<SeriesRef, Answer> {
    let selectors = parameters.selectors()?;
    let mut found = match (parameters.one("key")?, &selectors[..]) {
        (Some(key), []) => return by_key(asked, key),
        (None, [_]) => asked.find(&selectors, None, Unreadable::Refuse)?,
        _ => return Err(Answer::bad("one key or one match[] is needed")),
    };
    match found.len() {
        0 => Err(Answer::new(StatusCode::NOT_FOUND, "no series matches")),
        1 => Ok(found.remove(0).series),
        several => Err(Answer::bad(format!(
            "match[] must match one series, it matches {several}"
        ))),
    }
}

fn by_key(asked: &Asked, shown: &str) -> Result<SeriesRef, Answer> {
    let keys = keys_of(shown);
    if let Some(refused) = keys.iter().find(|key| !asked.may_read(key)) {
        let log = &asked.shared().runtime.users.log;
        log.note_sender(HTTP, Some(Denied::Key), refused, asked.user_name());
        let text = "no permission to read the key";
        return Err(Answer::new(StatusCode::FORBIDDEN, text));
    }
    let db = &asked.shared().db;
    let found = keys.iter().find_map(|key| db.resolve(key).ok());
    found.ok_or_else(|| Answer::new(StatusCode::NOT_FOUND, "the key does not exist"))
}

/// The keys that may be shown as `shown`: it itself, and the one that has bytes in place of all
/// escapes.
fn keys_of(shown: &str) -> Vec<Vec<u8>> {
    let mut bytes = Vec::with_capacity(shown.len());
    let mut parts = shown.split("\\x");
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let digits = part.get(..2).map(|digits| u8::from_str_radix(digits, 16));
        match digits {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            _ => {
                bytes.extend_from_slice(b"\\x");
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    let is_other = bytes != shown.as_bytes() && text(&bytes) == shown;
    let other = is_other.then_some(bytes);
    std::iter::once(shown.into()).chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::keys_of;

    #[test]
    fn a_key_that_is_no_text_is_found_by_what_is_shown() {
        for (shown, other) in [
            ("plain", None),
            ("a\\xff", Some(&b"a\xff"[..])),
            ("\\xfe\\xfe\u{e9}", Some(b"\xfe\xfe\xc3\xa9")),
            // These would not be shown so.
            ("\\x41", None),
            ("\\xFF", None),
            ("\\xzz\\x", None),
            ("\\x+f", None),
        ] {
            let keys = keys_of(shown);
            assert_eq!(keys[0], shown.as_bytes());
            assert_eq!(keys.get(1).map(Vec::as_slice), other, "{shown}");
        }
    }
}
