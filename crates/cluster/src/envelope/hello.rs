//! What a node says of itself in the log it follows or owns.
//!
//! ```text
//! header    epoch: the one it owns | n: 0 | sequence: the newest group that it applied
//! payload   nonce, id, digests, whether caught up or leaving | addresses, version: length and text each
//! ```
//! Invariant: as all envelopes, it has one encoding. Tested with them.

use super::NAME_BYTES_MAX;
use crate::kafka::Offset;
use crate::node::{Addresses, Member, NodeId};

/// A HELLO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hello {
    /// No other HELLO of the node has it. It begins as those of its claims do.
    pub nonce: [u8; 16],
    /// Who says it; its texts have at most [`NAME_BYTES_MAX`] bytes each. Of when it is heard it
    /// says 0.
    pub by: Member,
    /// The epoch in which it owns the log, if it does.
    pub owns: Option<Offset>,
    /// It is the last one: the node was stopped, and is a member no more. It is not caught up then.
    pub leaves: bool,
}

/// Values of the byte that says what the node is up to.
const BEHIND: u8 = 0;
const CAUGHT_UP: u8 = 1;
const LEAVES: u8 = 2;

impl Hello {
    /// The payload, or `None` if a text is too long.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let by = &self.by;
        let mut bytes = [&self.nonce[..], &by.id.0].concat();
        for digest in by.digests {
            bytes.extend_from_slice(&digest.to_le_bytes());
        }
        bytes.push(match (self.leaves, by.is_caught_up) {
            (true, _) => LEAVES,
            (false, true) => CAUGHT_UP,
            (false, false) => BEHIND,
        });
        let Addresses { redis, reads, http } = &by.addresses;
        for text in [redis, reads, http, &by.version] {
            let len = u16::try_from(text.len()).ok()?;
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        Some(bytes)
    }

    pub(super) fn decode(owns: Option<Offset>, applied: u64, payload: &[u8]) -> Option<Self> {
        let (nonce, rest) = payload.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (users, rest) = rest.split_first_chunk()?;
        let (settings, rest) = rest.split_first_chunk()?;
        let (&[says @ BEHIND..=LEAVES], rest) = rest.split_first_chunk()? else {
            return None;
        };
        let (redis, rest) = take_text(rest)?;
        let (reads, rest) = take_text(rest)?;
        let (http, rest) = take_text(rest)?;
        let (version, rest) = take_text(rest)?;
        let by = Member {
            addresses: Addresses { redis, reads, http },
            version,
            applied,
            is_caught_up: says == CAUGHT_UP,
            digests: [users, settings].map(|digest| u64::from_le_bytes(*digest)),
            ..Member::new(NodeId(*id))
        };
        let hello = Self {
            nonce: *nonce,
            by,
            owns,
            leaves: says == LEAVES,
        };
        rest.is_empty().then_some(hello)
    }
}

fn take_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = usize::from(u16::from_le_bytes(*len));
    let (text, rest) = rest.split_at_checked(len)?;
    let text = std::str::from_utf8(text).ok()?;
    (len <= NAME_BYTES_MAX).then(|| (text.to_owned(), rest))
}
