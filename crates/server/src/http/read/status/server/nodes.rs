//! The nodes of a cluster, as this one sees them.

use crate::state::{Shared, differing};
use latewood_cluster::node::{Member, Seen};
use serde_json::{Value, json};
use std::time::Duration;

/// `null` without other nodes.
pub(super) fn cluster(shared: &Shared) -> Value {
    let Some(node) = shared.node.get() else {
        return Value::Null;
    };
    let standing = node.standing();
    let me = standing.members.first();
    let seen = node.see(&standing);
    let [users_differ, settings_differ] = standing.differing();
    let members: Vec<Value> = seen.iter().map(|seen| member(seen, me)).collect();
    json!({
        "role": standing.role.name(),
        "since_ms": standing.since_ms,
        "epoch": standing.epoch,
        "owner": standing.owner().map(|owner| &owner.addresses.redis),
        "behind_ms": seen.first().and_then(|me| milliseconds(me.behind)),
        "newest_group": standing.newest,
        "unapplied_groups": standing.unapplied(),
        "max_staleness_ms": milliseconds(Some(node.staleness_max())),
        "takes_reads": node.takes_reads().is_ok(),
        "takes_writes": node.takes_writes().is_ok(),
        "users_differ": users_differ,
        "settings_differ": settings_differ,
        "address_shared_with": standing.twin.map(|twin| twin.id.to_string()),
        "members": members,
    })
}

/// A member beside this node.
fn member(seen: &Seen<'_>, me: Option<&Member>) -> Value {
    let member = seen.member;
    let differs = |at: usize| me.is_some_and(|me| me.digests[at] != member.digests[at]);
    json!({
        "id": member.id.to_string(),
        "is_this": me.is_some_and(|me| me.id == member.id),
        "address": member.addresses.redis,
        "read_address": member.addresses.reads,
        "http_address": member.addresses.http,
        "version": member.version,
        "role": seen.role.name(),
        "since_ms": seen.since_ms,
        "behind_ms": milliseconds(seen.behind),
        "caught_up": member.is_caught_up,
        "applied_group": member.applied,
        "heard_ms": milliseconds(Some(seen.heard)),
        "users_differ": differs(0),
        "settings_differ": differs(1),
        "settings_differing": me.map(|me| differing(me.digests[1], member.digests[1])),
    })
}

fn milliseconds(time: Option<Duration>) -> Option<u64> {
    let ms = time?.as_millis();
    Some(u64::try_from(ms).unwrap_or(u64::MAX))
}
