//! What comes, goes and is refused.

use crate::acl::log::Refusals;
use crate::http::context::Context;
use crate::http::metrics::senders::{READ_ROWS, ROWS, Row};
use crate::http::permits::Permits;
use crate::observe::Limit;
use crate::observe::{Endpoint, Protocol};
use crate::state::{ListenerFigures, Shared};
use latewood_engine::{Stats, Tallied};
use latewood_wire::intake::Reason;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn connections(shared: &Shared) -> Value {
    let show = |of: ListenerFigures| {
        json!({
            "listener": of.name,
            "open": of.open,
            "accepted": of.accepted,
            "rejected": of.rejected.count,
        })
    };
    json!({
        "listeners": shared.connections_by_listener().into_iter().map(show).collect::<Value>(),
        "maximum": shared.runtime.connections_max.load(Ordering::Relaxed),
        "blocked": shared.clients.blocked.load(Ordering::Relaxed),
    })
}

/// Commands of the Redis protocol.
pub(super) fn commands(shared: &Shared) -> Value {
    let counters = &shared.counters;
    json!({
        "commands": count(&counters.commands),
        "bytes_in": count(&counters.bytes_in),
        "bytes_out": count(&counters.bytes_out),
        "timeouts": count(&counters.timeouts),
    })
}

pub(super) fn samples(shared: &Shared, stats: &Stats) -> Value {
    json!({
        "series": stats.series,
        "series_parked": stats.series_parked,
        "series_created": stats.series_created,
        "series_expired": stats.series_expired,
        "series_ended": stats.series_ended,
        "label_pairs": stats.label_pairs,
        "in_order": stats.samples_in_order,
        "late": stats.samples_late,
        "duplicate": stats.samples_duplicate,
        "ignored": stats.samples_ignored,
        "refused": stats.samples_refused,
        "refused_total": stats.samples_refused
            + shared.observe.refused.get(Limit::Time).count
            + shared.protocols.intake.refused_before_engine(),
        "late_pending": stats.late_samples_pending,
        "settles": stats.settles,
        "settles_failed": stats.settles_failed,
        "rules_failed": stats.rules_failed,
        "sent_by_redis": shared.observe.ages.read().0.sum::<u64>(),
    })
}

/// The other protocols.
pub(super) fn intake(shared: &Shared) -> Value {
    let show = |protocol: Protocol| {
        let counters = shared.protocols.intake.of(protocol);
        let mut shown = object("protocol", protocol.name(), ROWS, counters);
        let refused = Reason::ALL.iter().zip(&counters.refused);
        let refused =
            refused.map(|(reason, times)| (reason.name().to_owned(), count(times).into()));
        shown.insert("refused".to_owned(), Value::Object(refused.collect()));
        let last_ms = Some(counters.last_refused_ms.load(Ordering::Relaxed));
        let last_ms = last_ms.filter(|last_ms| *last_ms > 0);
        shown.insert("refused_last_ms".to_owned(), last_ms.into());
        Value::Object(shown)
    };
    Protocol::ALL.into_iter().map(show).collect()
}

pub(super) fn reads(shared: &Shared) -> Value {
    let show = |endpoint: Endpoint| {
        let counters = shared.protocols.reads.of(endpoint);
        Value::Object(object("endpoint", endpoint.name(), READ_ROWS, counters))
    };
    Endpoint::ALL.into_iter().map(show).collect()
}

pub(super) fn errors(shared: &Shared) -> Value {
    let errors = &shared.observe.errors;
    let by_code = errors.by_code().into_iter();
    let by_code = by_code.map(|(code, times)| (String::from(code), times.into()));
    let denied = |which| shared.runtime.users.log.count(which);
    json!({
        "replies": errors.total(),
        "by_code": Value::Object(by_code.collect()),
        "denied_logins": denied(Refusals::Auth),
        "denied_commands": denied(Refusals::Command),
        "denied_keys": denied(Refusals::Key),
        "denied_channels": denied(Refusals::Channel),
    })
}

/// What each limit refused.
pub(super) fn limits(context: &Context, stats: &Stats) -> Value {
    let shared = &context.shared;
    let budgets = [
        ("memory", stats.budget.refused),
        ("disk", shared.db.shown().disk_budget_stats().refused),
    ];
    let connections = shared.connections_by_listener().into_iter();
    let connections = connections.map(|of| ("connections", Some(of.name), of.rejected));
    let requests = sides(context).into_iter();
    let requests = requests.map(|(side, of)| ("requests", Some(side), of.refused.get()));
    let all = shared.refused_by_limit().into_iter().chain(budgets);
    let all = all.map(|(limit, refused)| (limit, None, refused));
    let show = |(limit, of, refused): (&str, Option<&str>, Tallied)| {
        json!({
            "limit": limit,
            "of": of,
            "refused": refused.count,
            "last_ms": refused.last_ms,
        })
    };
    all.chain(connections).chain(requests).map(show).collect()
}

/// Places and memory of HTTP requests.
pub(super) fn requests(context: &Context) -> Value {
    let show = |(side, of): (&str, &Permits)| {
        json!({
            "side": side,
            "places": of.places_max(),
            "places_used": of.places_used(),
            "memory_max_bytes": Permits::memory_bytes_max(),
            "memory_used_bytes": of.memory_bytes(),
        })
    };
    sides(context).into_iter().map(show).collect()
}

fn sides(context: &Context) -> [(&'static str, &Permits); 4] {
    let work = &context.work;
    [
        ("write", &work.writers),
        ("read", &work.readers),
        ("query", &work.queries),
        ("control", &work.control),
    ]
}

/// The counters of `rows` without what their names have for `/metrics`.
fn object<C>(kind: &str, name: &str, rows: &[Row<C>], counters: &C) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert(kind.to_owned(), name.into());
    for (name, _, counter) in rows {
        let name = name.trim_end_matches("_total");
        let name = name.split_once('_').map_or(name, |(_, name)| name);
        shown.insert(name.to_owned(), count(counter(counters)).into());
    }
    shown
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
