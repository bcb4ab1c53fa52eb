//! The sections of INFO about the other nodes.

use super::source::{Source, field};
use crate::state::{differing, host_and_port};
use latewood_cluster::node::{Member, Node, Role, Standing};
use std::collections::BTreeSet;

/// The place of a member as Redis has it.
fn place(member: &Member) -> (&str, u16) {
    host_and_port(&member.addresses.redis).unwrap_or_default()
}

/// Positions are groups of the log, as those of followers are that they tell.
pub(super) fn replication(text: &mut String, source: &Source<'_>) {
    let mut position = source.shared.db.shown().position().0;
    match source.shared.node.get() {
        Some(node) => {
            let standing = node.standing();
            let applied = standing.members.first().map_or(0, |me| me.applied);
            if standing.role != Role::Owner {
                position = applied;
            }
            of_node(text, node, &standing, position);
        }
        None => {
            field(text, "role", "master");
            field(text, "connected_slaves", 0);
        }
    }
    field(text, "master_failover_state", "no-failover");
    field(text, "master_replid", &source.shared.observe.run_id);
    field(text, "master_repl_offset", position);
    field(text, "repl_backlog_active", 0);
}

fn of_node(text: &mut String, node: &Node, standing: &Standing, position: u64) {
    if standing.role == Role::Owner {
        field(text, "role", "master");
        replicas(text, node, standing);
        return;
    }
    field(text, "role", "slave");
    let (host, port) = standing.owner().map_or(("", 0), place);
    let is_up = standing.owner().is_some() && node.takes_reads().is_ok();
    field(text, "master_host", host);
    field(text, "master_port", port);
    field(
        text,
        "master_link_status",
        ["down", "up"][usize::from(is_up)],
    );
    let heard = standing
        .owner()
        .map(|owner| node.heard_ago(owner).as_secs());
    field(text, "master_last_io_seconds_ago", or_none(heard));
    let is_loading = standing.role == Role::Loading;
    field(text, "master_sync_in_progress", u8::from(is_loading));
    field(
        text,
        "slave_read_repl_offset",
        standing.newest.max(position),
    );
    field(text, "slave_repl_offset", position);
    field(text, "slave_read_only", 1);
    field(text, "connected_slaves", 0);
}

fn replicas(text: &mut String, node: &Node, standing: &Standing) {
    let replicas = standing.members.get(1..).unwrap_or_default();
    field(text, "connected_slaves", replicas.len());
    for (number, replica) in replicas.iter().enumerate() {
        let (host, port) = place(replica);
        let state = ["wait_bgsave", "online"][usize::from(replica.is_caught_up)];
        let (offset, lag) = (replica.applied, node.heard_ago(replica).as_secs());
        let line = format!("ip={host},port={port},state={state},offset={offset},lag={lag}");
        field(text, &format!("slave{number}"), line);
    }
}

/// A number, or -1 for none.
fn or_none(number: Option<u64>) -> String {
    number.map_or_else(|| "-1".to_owned(), |number| number.to_string())
}

/// The parts of the settings in which others differ from this node.
fn differing_parts(standing: &Standing) -> String {
    let Some((me, others)) = standing.members.split_first() else {
        return String::new();
    };
    let parts = others
        .iter()
        .flat_map(|other| differing(me.digests[1], other.digests[1]));
    let parts: BTreeSet<_> = parts.collect();
    parts.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn cluster(text: &mut String, source: &Source<'_>) {
    let Some(node) = source.shared.node.get() else {
        return field(text, "cluster_enabled", 0);
    };
    let standing = node.standing();
    let owner = standing.owner();
    let address = owner.map_or("", |owner| &owner.addresses.redis);
    let differing_nodes = standing.differing();
    field(text, "cluster_enabled", 1);
    field(text, "cluster_role", standing.role.name());
    field(text, "cluster_role_since_ms", standing.since_ms);
    field(text, "cluster_epoch", or_none(standing.epoch));
    field(text, "cluster_owner_known", u8::from(owner.is_some()));
    field(text, "cluster_owner_address", address);
    field(text, "cluster_members", standing.members.len());
    let seen = node.see(&standing);
    let behind = seen.first().and_then(|me| me.behind);
    let behind_ms = behind.map(|behind| behind.as_millis() as u64);
    field(text, "cluster_behind_ms", or_none(behind_ms));
    field(text, "cluster_newest_group", standing.newest);
    field(text, "cluster_unapplied_groups", standing.unapplied());
    let staleness_ms = node.staleness_max().as_millis();
    field(text, "cluster_max_staleness_ms", staleness_ms);
    field(
        text,
        "cluster_takes_reads",
        u8::from(node.takes_reads().is_ok()),
    );
    field(text, "cluster_users_differ", differing_nodes[0]);
    field(text, "cluster_settings_differ", differing_nodes[1]);
    field(
        text,
        "cluster_settings_differing",
        differing_parts(&standing),
    );
    let twin = standing.twin.map(|twin| twin.id.to_string());
    field(
        text,
        "cluster_address_shared_with",
        twin.unwrap_or_default(),
    );
    for (number, member) in standing.members.iter().enumerate() {
        let Member {
            id,
            addresses,
            version,
            applied,
            ..
        } = member;
        let line = format!(
            "id={id},redis={},reads={},http={},version={version},applied={applied},caught_up={},\
             heard_ms={}",
            addresses.redis,
            addresses.reads,
            addresses.http,
            u8::from(member.is_caught_up),
            node.heard_ago(member).as_millis(),
        );
        field(text, &format!("cluster_member{number}"), line);
    }
}
