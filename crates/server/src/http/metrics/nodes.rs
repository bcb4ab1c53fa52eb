//! What the server is to the other nodes of its log. A plain server is an owner without others.

use super::text::{Text, figures};
use crate::state::Shared;
use latewood_cluster::node::Role;

/// The figures of a node.
struct Figures {
    is_enabled: bool,
    is_owner: bool,
    since_s: f64,
    is_owner_known: bool,
    members: usize,
    epoch: u64,
    behind_s: f64,
    staleness_max_s: f64,
    unapplied: u64,
    takes_reads: bool,
    differing: [usize; 2],
}

impl Figures {
    fn of(shared: &Shared) -> Self {
        let Some(node) = shared.node.get() else {
            return Self {
                is_enabled: false,
                is_owner: true,
                since_s: 0.0,
                is_owner_known: true,
                members: 1,
                epoch: 0,
                behind_s: 0.0,
                staleness_max_s: 0.0,
                unapplied: 0,
                takes_reads: true,
                differing: [0; 2],
            };
        };
        let standing = node.standing();
        let seen = node.see(&standing);
        let behind = seen.first().and_then(|me| me.behind);
        Self {
            is_enabled: true,
            is_owner: standing.role == Role::Owner,
            since_s: standing.since_ms as f64 / 1e3,
            is_owner_known: standing.owner().is_some(),
            members: standing.members.len(),
            epoch: standing.epoch.unwrap_or(0),
            behind_s: behind.map_or(f64::NAN, |behind| behind.as_secs_f64()),
            staleness_max_s: node.staleness_max().as_secs_f64(),
            unapplied: standing.unapplied(),
            takes_reads: node.takes_reads().is_ok(),
            differing: standing.differing(),
        }
    }
}

pub(super) fn report(text: &mut Text, shared: &Shared) {
    let of = Figures::of(shared);
    figures! { text;
        gauge "cluster_enabled" "1 where other nodes may follow or own the log."
            = u8::from(of.is_enabled);
        gauge "cluster_owner" "1 while this node owns the log." = u8::from(of.is_owner);
        gauge "cluster_role_timestamp_seconds"
            "Since when this node has its role, in seconds since 1970; 0 without other nodes."
            = of.since_s;
        gauge "cluster_owner_known" "1 while a node is known that owns the log."
            = u8::from(of.is_owner_known);
        gauge "cluster_members" "Nodes that were heard lately, this one included." = of.members;
        gauge "cluster_epoch" "The epoch of the log." = of.epoch;
        gauge "cluster_behind_seconds"
            "How long ago this node had all of the log; NaN where it never had." = of.behind_s;
        gauge "cluster_max_staleness_seconds"
            "How old an answer of a follower may be; 0 without other nodes." = of.staleness_max_s;
        gauge "cluster_unapplied_groups"
            "Groups of the log that this node knows of and has not applied." = of.unapplied;
        gauge "cluster_takes_reads" "1 while reads are answered." = u8::from(of.takes_reads);
        gauge "cluster_users_differ" "Nodes with other users than this one." = of.differing[0];
        gauge "cluster_settings_differ" "Nodes with other settings than this one."
            = of.differing[1];
    }
}
