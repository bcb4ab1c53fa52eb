//! `CLUSTER INFO|MYID|MYSHARDID|NODES|SHARDS|SLOTS|REPLICAS id|SLAVES id|COUNT-FAILURE-REPORTS id|
//! KEYSLOT key|HELP`, `READONLY`, `READWRITE`, `ASKING`.
//!
//! A cluster client sees one shard that has every slot: the owner of the log is its master, the
//! followers are its replicas, under the addresses that they tell. Without an owner the last one that
//! was known is shown in its place, so that clients keep the followers, and `cluster_state` is `fail`:
//! clients ask again. Before the first one is known no node has a slot.
//!
//! A plain server answers as one node that owns every slot, so that the cluster clients of
//! redis-py and go-redis, which ask before anything else, work as they are.
//! A Redis outside of a cluster refuses them all instead. `cluster_enabled` stays 0 there: no key is
//! ever elsewhere.
//!
//! Tested by `net/tests/roles.rs` and `tests/resp/admin.rs`.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use crate::acl::password;
use crate::base::slot::{SLOTS, slot_of};
use crate::state::{Shared, host_and_port};
use latewood_cluster::node::{Member, Role, Standing};
use latewood_wire::resp::Reply;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const SUB: Spec = Spec::of_group("cluster", &["loading", "stale"]).arity(2);

const READONLY: Spec = Spec::of_group("cluster", &["loading", "stale", "fast"])
    .named("readonly", |call| accept_followers(call, true))
    .about("Accepts answers of followers on this connection.");

pub(crate) const SPECS: &[Spec] = &[
    Spec::of_group("cluster", &[]).container(
        "cluster",
        "Describes the nodes as a cluster of one shard.",
        &[
            SUB.named("count-failure-reports", count_failure_reports)
                .words(3, "node-id")
                .about("Returns 0: nodes do not report each other."),
            SUB.named("info", info)
                .about("Returns the state of the cluster."),
            SUB.named("keyslot", key_slot)
                .words(3, "key")
                .about("Returns the slot of a key."),
            SUB.named("myid", my_id)
                .about("Returns the name of the node."),
            SUB.named("myshardid", my_shard_id)
                .about("Returns the name of the shard."),
            SUB.named("nodes", nodes)
                .about("Returns one line about each node."),
            REPLICAS,
            SUB.named("shards", shards)
                .about("Returns the only shard and its nodes."),
            REPLICAS.called("slaves"),
            SUB.named("slots", slots)
                .about("Returns the node that owns all slots, and its replicas."),
            SUB.help(),
        ],
    ),
    READONLY,
    READONLY
        .named("readwrite", |call| accept_followers(call, false))
        .about("Accepts answers of the owner only, as connections begin."),
    READONLY
        .named("asking", |call| call.ok())
        .about("Accepted without effect: slots do not move."),
];

const REPLICAS: Spec = SUB
    .named("replicas", replicas)
    .words(3, "node-id")
    .about("Returns one line about each replica of the owner.");

/// The name of a plain server: 40 hexadecimal digits, others after each start.
static NODE: LazyLock<String> = LazyLock::new(|| {
    // Without random numbers any name serves: there is one node.
    password::generate(160).unwrap_or_else(|_| "0".repeat(40))
});

/// A node as cluster clients see it.
struct Shown {
    id: String,
    host: String,
    port: u16,
    is_owner: bool,
    /// It was the owner, and nobody is known to be that now.
    is_gone: bool,
    is_me: bool,
    /// It answers.
    is_online: bool,
    offset: u64,
}

/// The nodes of the only shard, the owner first.
struct Shard {
    nodes: Vec<Shown>,
    epoch: u64,
}

impl Shown {
    fn of(member: &Member, standing: &Standing, is_me: bool) -> Self {
        let (host, port) = host_and_port(&member.addresses.redis).unwrap_or_default();
        let is_loading = is_me && standing.role == Role::Loading;
        let last = gone_owner(standing);
        let is_gone = last.is_some_and(|last| stands_for(member, last));
        Self {
            id: member.id.to_string(),
            host: host.to_owned(),
            port,
            is_owner: is_gone || standing.owner == Some(member.id),
            is_gone,
            is_me,
            is_online: !is_loading && (member.is_caught_up || standing.owner == Some(member.id)),
            offset: member.applied,
        }
    }

    /// Where this connection reached the server that has no others.
    fn alone(call: &Call<'_>) -> Self {
        let (host, port) = host_and_port(&call.session.info.local).unwrap_or_default();
        Self {
            id: NODE.clone(),
            host: host.to_owned(),
            port,
            is_owner: true,
            is_gone: false,
            is_me: true,
            is_online: true,
            offset: 0,
        }
    }

    /// Host, port and name, as CLUSTER SLOTS has them.
    fn put_place(&self, reply: &mut Reply<'_>) {
        reply.array(4);
        reply.bulk(&self.host);
        reply.integer(i64::from(self.port));
        reply.bulk(&self.id);
        reply.array(0);
    }

    fn put_details(&self, reply: &mut Reply<'_>) {
        reply.map(7);
        reply.key("id").bulk(&self.id);
        reply.key("port").integer(i64::from(self.port));
        for name in ["ip", "endpoint"] {
            reply.bulk(name);
            reply.bulk(&self.host);
        }
        let role = ["replica", "master"][usize::from(self.is_owner)];
        let health = match (self.is_gone, self.is_online) {
            (true, _) => "fail",
            (false, true) => "online",
            (false, false) => "loading",
        };
        reply.key("role").bulk(role);
        reply.key("health").bulk(health);
        let offset = reply.key("replication-offset");
        offset.integer(i64::try_from(self.offset).unwrap_or(i64::MAX));
    }
}

impl Shard {
    fn of(call: &Call<'_>) -> Self {
        let Some(node) = call.shared.node.get() else {
            return Self {
                nodes: vec![Shown::alone(call)],
                epoch: 0,
            };
        };
        let standing = node.standing();
        let members = standing.members.iter().enumerate();
        let shown = members.map(|(at, member)| Shown::of(member, &standing, at == 0));
        let mut nodes: Vec<_> = shown.collect();
        if let Some(last) = gone_owner(&standing)
            && !standing
                .members
                .iter()
                .any(|member| stands_for(member, last))
        {
            nodes.push(Shown::of(last, &standing, false));
        }
        nodes.sort_by_key(|node| !node.is_owner);
        Self {
            nodes,
            epoch: standing.epoch.unwrap_or(0),
        }
    }

    fn owner(&self) -> Option<&Shown> {
        self.nodes.first().filter(|node| node.is_owner)
    }

    /// Whether there is an owner now.
    fn is_owned(&self) -> bool {
        self.owner().is_some_and(|owner| !owner.is_gone)
    }

    /// The line of CLUSTER NODES about one.
    fn line(&self, node: &Shown) -> String {
        let Shown { id, host, port, .. } = node;
        let (epoch, me) = (self.epoch, if node.is_me { "myself," } else { "" });
        if node.is_owner {
            let last = SLOTS - 1;
            let (fail, link) = if node.is_gone {
                (",fail", "disconnected")
            } else {
                ("", "connected")
            };
            return format!("{id} {host}:{port}@0 {me}master{fail} - 0 0 {epoch} {link} 0-{last}");
        }
        let owner = self.owner().map_or("-", |owner| &owner.id);
        format!("{id} {host}:{port}@0 {me}slave {owner} 0 0 {epoch} connected")
    }

    fn require(&self, id: &[u8]) -> Result<&Shown, Fault> {
        let found = self.nodes.iter().find(|node| node.id.as_bytes() == id);
        let shown = String::from_utf8_lossy(&id[..id.len().min(40)]).into_owned();
        found.ok_or_else(|| Fault::Line(format!("ERR Unknown node {shown}").into()))
    }
}

/// The last owner, if nobody is known to own the log.
fn gone_owner(standing: &Standing) -> Option<&Member> {
    let last = standing.last_owner.as_ref();
    last.filter(|_| standing.owner().is_none())
}

/// Whether a member is where the last owner was: clients know nodes by their addresses.
fn stands_for(member: &Member, last: &Member) -> bool {
    member.id == last.id || member.addresses.redis == last.addresses.redis
}

/// The name of this node.
fn own_id(shared: &Shared) -> String {
    let node = shared.node.get().map(|node| node.standing());
    let me = node.and_then(|standing| Some(standing.members.first()?.id.to_string()));
    me.unwrap_or_else(|| NODE.clone())
}

fn accept_followers(call: &mut Call<'_>, does_accept: bool) -> Outcome {
    call.session.accept_followers(does_accept);
    call.ok()
}

fn info(call: &mut Call<'_>) -> Outcome {
    let shard = Shard::of(call);
    let (known, epoch) = (shard.nodes.len(), shard.epoch);
    let enabled = u8::from(call.shared.node.get().is_some());
    let state = if shard.is_owned() { "ok" } else { "fail" };
    let assigned = shard.owner().map_or(0, |_| SLOTS);
    let ok = if shard.is_owned() { SLOTS } else { 0 };
    let failed = assigned - ok;
    let text = format!(
        "cluster_enabled:{enabled}\r\ncluster_state:{state}\r\ncluster_slots_assigned:{assigned}\r\n\
         cluster_slots_ok:{ok}\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:{failed}\r\n\
         cluster_known_nodes:{known}\r\ncluster_size:1\r\ncluster_current_epoch:{epoch}\r\n\
         cluster_my_epoch:{epoch}\r\n"
    );
    // A field that Redis has not, where something is wrong.
    let node = call.shared.node.get();
    let twin = node.and_then(|node| node.standing().twin);
    let twin = twin.map(|twin| format!("cluster_address_shared_with:{}\r\n", twin.id));
    let text = text + &twin.unwrap_or_default();
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

fn my_id(call: &mut Call<'_>) -> Outcome {
    let id = own_id(call.shared);
    call.reply().bulk(id);
    Ok(())
}

/// The same at all nodes of a log.
fn my_shard_id(call: &mut Call<'_>) -> Outcome {
    let log = call.shared.settings.cluster.log.as_ref();
    let id = match log.filter(|_| call.shared.node.get().is_some()) {
        Some(log) => {
            // Brokers may be named differently, the log is the last part.
            let name = log.rsplit('/').next().unwrap_or_default();
            let hash = Sha256::digest(name.as_bytes());
            hash[..20]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        }
        None => own_id(call.shared),
    };
    call.reply().bulk(id);
    Ok(())
}

fn nodes(call: &mut Call<'_>) -> Outcome {
    let shard = Shard::of(call);
    let lines = shard.nodes.iter().map(|node| shard.line(node) + "\n");
    let text: String = lines.collect();
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

fn replicas(call: &mut Call<'_>) -> Outcome {
    let shard = Shard::of(call);
    if !shard.require(call.args.word(2))?.is_owner {
        return Fault::refuse("ERR The specified node is not a master");
    }
    let others: Vec<_> = shard.nodes.iter().filter(|node| !node.is_owner).collect();
    let mut reply = call.reply();
    reply.array(others.len());
    for node in others {
        reply.bulk(shard.line(node));
    }
    Ok(())
}

fn count_failure_reports(call: &mut Call<'_>) -> Outcome {
    Shard::of(call).require(call.args.word(2))?;
    call.integer(0)
}

fn slots(call: &mut Call<'_>) -> Outcome {
    let shard = Shard::of(call);
    let mut reply = call.reply();
    if shard.owner().is_none() {
        reply.array(0);
        return Ok(());
    }
    // The owner is the first of them.
    let online = (shard.nodes.iter()).filter(|node| node.is_online || node.is_owner);
    let online: Vec<_> = online.collect();
    reply.array(1);
    reply.array(2 + online.len());
    reply.integer(0);
    reply.integer(i64::from(SLOTS) - 1);
    online.iter().for_each(|node| node.put_place(&mut reply));
    Ok(())
}

fn shards(call: &mut Call<'_>) -> Outcome {
    let shard = Shard::of(call);
    let mut reply = call.reply();
    reply.array(1);
    reply.map(2);
    if shard.owner().is_some() {
        reply.key("slots").array(2);
        reply.integer(0);
        reply.integer(i64::from(SLOTS) - 1);
    } else {
        reply.key("slots").array(0);
    }
    reply.key("nodes").array(shard.nodes.len());
    let nodes = shard.nodes.iter();
    nodes.for_each(|node| node.put_details(&mut reply));
    Ok(())
}

fn key_slot(call: &mut Call<'_>) -> Outcome {
    let slot = slot_of(call.args.word(2));
    call.integer(i64::from(slot))
}
