//! A publication: a message of a channel, encoded once for all subscribers.

use super::kind::Kind;
use latewood_wire::resp::{Protocol, Reply};
use std::sync::Arc;

/// A message of a channel on its way to subscribers.
#[derive(Debug)]
pub(crate) struct Publication {
    /// What its receivers subscribed to.
    pub(crate) kind: Kind,
    /// The name they subscribed to.
    pub(crate) name: Arc<[u8]>,
    /// In RESP2; RESP3 differs in the first byte only.
    bytes: Box<[u8]>,
}

impl Publication {
    pub(crate) fn of_channel(name: &Arc<[u8]>, payload: &[u8]) -> Self {
        Self::encode(Kind::Channel, name, &[b"message", name, payload])
    }

    pub(crate) fn of_pattern(pattern: &Arc<[u8]>, channel: &[u8], payload: &[u8]) -> Self {
        let words = [b"pmessage", &**pattern, channel, payload];
        Self::encode(Kind::Pattern, pattern, &words)
    }

    pub(crate) fn of_shard(name: &Arc<[u8]>, payload: &[u8]) -> Self {
        Self::encode(Kind::Shard, name, &[b"smessage", name, payload])
    }

    pub(crate) fn of_monitor(line: &str) -> Self {
        let mut bytes = Vec::new();
        Reply::new(&mut bytes, Protocol::Resp2).simple(line);
        Self {
            kind: Kind::Monitor,
            name: Arc::default(),
            bytes: bytes.into(),
        }
    }

    fn encode(kind: Kind, name: &Arc<[u8]>, words: &[&[u8]]) -> Self {
        let mut bytes = Vec::new();
        let mut reply = Reply::new(&mut bytes, Protocol::Resp2);
        reply.push(words.len());
        for word in words {
            reply.bulk(word);
        }
        Self {
            kind,
            name: Arc::clone(name),
            bytes: bytes.into(),
        }
    }

    /// What it takes on the wire.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends it as a subscriber of this protocol reads it.
    pub(crate) fn write(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        if protocol == Protocol::Resp3 && self.kind != Kind::Monitor {
            out[start] = b'>';
        }
    }
}
