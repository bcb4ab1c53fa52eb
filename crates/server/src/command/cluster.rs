//! `CLUSTER INFO|MYID|NODES|SHARDS|SLOTS|KEYSLOT key|HELP`
//! of a single server.
//!
//! It answers as one node that owns every slot, so that the cluster clients of
//! redis-py and go-redis, which ask before anything else, work as they are.
//! A Redis outside of a cluster refuses them all instead. `cluster_enabled` in
//! INFO stays 0: no key is ever elsewhere.

use super::call::{Call, Outcome};
use super::spec::Spec;
use crate::acl::password;
use std::sync::LazyLock;

const SUB: Spec = Spec::of_group("cluster", &["loading", "stale"]).arity(2);

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("cluster", &[]).container(
    "cluster",
    "Describes the server as a cluster of one node.",
    &[
        SUB.named("info", info)
            .about("Reports that the cluster of one node is up."),
        SUB.named("keyslot", key_slot)
            .words(3, "key")
            .about("Returns the slot of a key."),
        SUB.named("myid", my_id)
            .about("Returns the name of the node."),
        SUB.named("nodes", nodes)
            .about("Returns one line about the node."),
        SUB.named("shards", shards)
            .about("Returns the node as the only shard."),
        SUB.named("slots", slots)
            .about("Reports that the node owns all slots."),
        SUB.help(),
    ],
)];

const SLOTS: u16 = 16_384;

/// The name of the node: 40 hexadecimal digits, others after each start.
static NODE: LazyLock<String> = LazyLock::new(|| {
    // Without random numbers any name serves: there is one node.
    password::generate(160).unwrap_or_else(|_| "0".repeat(40))
});

/// Where this connection reached the server.
fn place(call: &Call<'_>) -> (String, i64) {
    let (host, port) = call.session.info.local.rsplit_once(':').unwrap_or_default();
    let port = port.parse().ok();
    match port {
        Some(port) => (host.trim_matches(['[', ']']).to_owned(), port),
        None => (String::new(), 0),
    }
}

fn info(call: &mut Call<'_>) -> Outcome {
    let text = format!(
        "cluster_enabled:0\r\ncluster_state:ok\r\ncluster_slots_assigned:{SLOTS}\r\n\
         cluster_slots_ok:{SLOTS}\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\n\
         cluster_known_nodes:1\r\ncluster_size:1\r\ncluster_current_epoch:0\r\n\
         cluster_my_epoch:0\r\n"
    );
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

fn my_id(call: &mut Call<'_>) -> Outcome {
    call.reply().bulk(NODE.as_str());
    Ok(())
}

fn nodes(call: &mut Call<'_>) -> Outcome {
    let (host, port) = place(call);
    let (node, last) = (NODE.as_str(), SLOTS - 1);
    let text = format!("{node} {host}:{port}@0 myself,master - 0 0 0 connected 0-{last}\n");
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

fn slots(call: &mut Call<'_>) -> Outcome {
    let (host, port) = place(call);
    let mut reply = call.reply();
    reply.array(1);
    reply.array(3);
    reply.integer(0);
    reply.integer(i64::from(SLOTS) - 1);
    reply.array(4);
    reply.bulk(host);
    reply.integer(port);
    reply.bulk(NODE.as_str());
    reply.array(0);
    Ok(())
}

fn shards(call: &mut Call<'_>) -> Outcome {
    let (host, port) = place(call);
    let mut reply = call.reply();
    reply.array(1);
    reply.map(2);
    reply.key("slots").array(2);
    reply.integer(0);
    reply.integer(i64::from(SLOTS) - 1);
    reply.key("nodes").array(1);
    reply.map(7);
    reply.key("id").bulk(NODE.as_str());
    reply.key("port").integer(port);
    for name in ["ip", "endpoint"] {
        reply.bulk(name);
        reply.bulk(&host);
    }
    for (name, value) in [("role", "master"), ("health", "online")] {
        reply.bulk(name);
        reply.bulk(value);
    }
    reply.key("replication-offset").integer(0);
    Ok(())
}

fn key_slot(call: &mut Call<'_>) -> Outcome {
    let slot = slot_of(call.args.word(2));
    call.integer(i64::from(slot))
}

/// CRC-16 (XMODEM) of the key, or of what stands between its first `{` and the
/// next `}` if that is not empty. <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>
fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    let crc = tag.unwrap_or(key).iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::slot_of;

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(slot_of(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"a{foo}b"), 12182);
        assert_ne!(slot_of(b"{}foo"), 12182);
    }
}
