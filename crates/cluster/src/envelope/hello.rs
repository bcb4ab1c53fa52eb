//! What a node says of itself in the log it follows or owns.
//!
//! ```text
//! header    epoch: the one it owns | n: 0 | sequence: the newest group that it applied
//! payload   nonce, id, digests, whether caught up | addresses, version: length and text each
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
}

impl Hello {
    /// The payload, or `None` if a text is too long.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let by = &self.by;
        let mut bytes = [&self.nonce[..], &by.id.0].concat();
        for digest in by.digests {
            bytes.extend_from_slice(&digest.to_le_bytes());
        }
        bytes.push(by.is_caught_up.into());
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
        let (&[is_caught_up @ 0..=1], rest) = rest.split_first_chunk()? else {
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
            is_caught_up: is_caught_up == 1,
            digests: [users, settings].map(|digest| u64::from_le_bytes(*digest)),
            ..Member::new(NodeId(*id))
        };
        let nonce = *nonce;
        rest.is_empty().then_some(Self { nonce, by, owns })
    }
}

fn take_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = usize::from(u16::from_le_bytes(*len));
    let (text, rest) = rest.split_at_checked(len)?;
    let text = std::str::from_utf8(text).ok()?;
    (len <= NAME_BYTES_MAX).then(|| (text.to_owned(), rest))
}
