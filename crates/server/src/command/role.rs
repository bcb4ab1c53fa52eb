//! `ROLE`: what the server is to the others, as Redis says it: the owner is a master with its
//! replicas, a follower a slave of the owner. A plain server is a master without replicas.
//!
//! Tested by `net/tests/roles.rs`.

use super::call::{Call, Outcome};
use super::spec::Spec;
use crate::state::host_and_port;
use latewood_cluster::node::{Member, Role};
use latewood_wire::resp::Reply;

pub(crate) const SPECS: &[Spec] =
    &[
        Spec::of_group("server", &["noscript", "loading", "stale", "fast"])
            .named("role", apply)
            .about("Returns the role of the server, and its replicas or its owner."),
    ];

fn apply(call: &mut Call<'_>) -> Outcome {
    let position = call.shared.db.shown().position().0;
    let node = call.shared.node.get();
    let Some(standing) = node.map(|node| node.standing()) else {
        let mut reply = call.reply();
        begin_master(&mut reply, position, 0);
        return Ok(());
    };
    let is_fresh = call.shared.takes_reads(true).is_ok();
    let mut reply = call.reply();
    if standing.role == Role::Owner {
        let replicas = &standing.members[1..];
        begin_master(&mut reply, position, replicas.len());
        for replica in replicas {
            let (host, port) = place(replica);
            reply.array(3);
            reply.bulk(host);
            reply.bulk(port.to_string());
            reply.bulk(replica.applied.to_string());
        }
        return Ok(());
    }
    let (host, port) = standing.owner().map_or(("", 0), place);
    let state = match (standing.role, standing.owner()) {
        (Role::Loading, _) => "sync",
        (_, Some(_)) if is_fresh => "connected",
        (_, Some(_)) => "connecting",
        (_, None) => "connect",
    };
    reply.array(5);
    reply.bulk("slave");
    reply.bulk(host);
    reply.integer(i64::from(port));
    reply.bulk(state);
    reply.count(standing.members.first().map_or(0, |me| me.applied));
    Ok(())
}

fn begin_master(reply: &mut Reply<'_>, position: u64, replicas: usize) {
    reply.array(3);
    reply.bulk("master");
    reply.count(position);
    reply.array(replicas);
}

fn place(member: &Member) -> (&str, u16) {
    host_and_port(&member.addresses.redis).unwrap_or_default()
}
