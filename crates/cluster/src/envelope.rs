//! The value of a record in a tablet's log. `docs/format/envelope.md`.
//!
//! ```text
//! magic, version, kind | epoch, n, first sequence, groups | payload | crc32c of all before
//! ```
//! What an owner appends carries the state of the scan that it belongs to ([`State`]); it counts
//! where that is the state ([`crate::scan`]). EPOCH carries the epoch that it deposes, and the n
//! that its claimant saw; HELLO carries no state.
//!
//! Invariants: an envelope has one encoding in each version, and only these are decoded: what
//! [`Envelope::encode`] answers is decoded to the same, and of the newest version the other way
//! round. Decoding allocates no more than the
//! names in the value. Numbers are at most 2^63 - 1, so that they can be added to.
//!
//! Tested by `tests/envelope.rs` and the fuzz target `envelope`.

mod hello;

use crate::kafka::Offset;
use crc_fast::crc32_iscsi;
pub use hello::Hello;

/// Bytes of the longest value: a record of it with what Kafka adds is at most 1 MiB, the
/// default of `max.message.bytes`.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024 - 1024;
/// Bytes of the longest payload.
pub const PAYLOAD_BYTES_MAX: usize = VALUE_BYTES_MAX - HEADER_BYTES - CHECKSUM_BYTES;
/// Bytes of the longest address of a node and of the longest name of an object.
pub const NAME_BYTES_MAX: usize = 1024;

const MAGIC: &[u8; 4] = b"LWEN";
/// The format that is written. Version 2, whose claims have no n and which has no HELLO, is read;
/// so is version 1, whose groups are narrow and which has no kinds from [`KIND_SKIPPED`] on.
const VERSION: u8 = 3;
/// Kinds from here on say nothing that a reader needs to know: those that are unknown count, and
/// are passed over.
pub const KIND_SKIPPED: u8 = 128;
const HEADER_BYTES: usize = 36;
const CHECKSUM_BYTES: usize = 4;
/// In the place of an epoch, or of the n of a claim: none.
const NONE: u64 = u64::MAX;
const NUMBER_MAX: u64 = u64::MAX >> 1;

mod kind {
    pub(super) const DATA: u8 = 1;
    pub(super) const EPOCH: u8 = 2;
    pub(super) const CHECKPOINT: u8 = 3;
    pub(super) const TICK: u8 = 4;
    pub(super) const FAREWELL: u8 = 5;
    pub(super) const HELLO: u8 = 6;
}

/// The state of the scan of a log, between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The offset of the newest EPOCH that counts; `None` before the first.
    pub epoch: Option<Offset>,
    /// The number of the next envelope, counted over all epochs.
    pub n: u64,
    /// The sequence of the next group, counted over all epochs.
    pub sequence: u64,
}

impl State {
    /// The state before the first record of a log: groups count from 1.
    pub const START: Self = Self {
        epoch: None,
        n: 0,
        sequence: 1,
    };
}

/// Who claims a tablet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claimant {
    /// Random; the same in all copies of one claim, in no other claim.
    pub nonce: [u8; 16],
    /// The number of its node.
    pub node: u32,
    /// Where clients reach the node, at most [`NAME_BYTES_MAX`].
    pub address: String,
}

/// A manifest in the object store, and where the log behind it begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// The object, 1 to [`NAME_BYTES_MAX`] bytes.
    pub manifest: String,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its length.
    pub bytes: u64,
    /// The first record that is needed beside the manifest.
    pub begin: Offset,
    /// The state before that record.
    pub state: State,
}

/// What an envelope says that an owner appends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body<'a> {
    /// Groups of the log, with consecutive sequences from that of the state.
    Data {
        /// How many, at least one.
        groups: u32,
        /// The groups as they stand in a segment, 1 to [`PAYLOAD_BYTES_MAX`] bytes.
        payload: &'a [u8],
    },
    /// A manifest is complete.
    Checkpoint(Checkpoint),
    /// The owner is alive.
    Tick,
    /// The owner gives the tablet up and appends nothing more.
    Farewell,
    /// Of a kind that this version does not know and that may be passed over.
    Skipped {
        /// [`KIND_SKIPPED`] or above.
        kind: u8,
        /// Its meaning is unknown.
        payload: &'a [u8],
    },
}

/// The value of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Envelope<'a> {
    /// A claim: its offset becomes the epoch if `after` is the epoch before it, and `n`, where it
    /// has one, that of the state.
    Epoch {
        /// The epoch that is deposed, `None` in a log without one.
        after: Option<Offset>,
        /// The number of the next envelope, as its claimant saw it: the claim is void if another
        /// record counts before it. `None`: it counts whatever the owner appended since.
        n: Option<u64>,
        /// Who claims.
        claimant: Claimant,
    },
    /// What a node says of itself, owner or not: it has no state and changes none.
    Hello(Hello),
    /// All else that an owner appends.
    Record {
        /// The state before the record. Its epoch is that of the owner.
        at: State,
        /// What it says.
        body: Body<'a>,
    },
}

/// Why a value is no envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not what [`Envelope::encode`] writes.
    #[error("malformed")]
    Malformed,
    /// Intact and of a later version.
    #[error("version {0} is not supported, the newest supported is {VERSION}")]
    Newer(u8),
}

impl<'a> Envelope<'a> {
    /// The value as stored, or `None` if a name, the payload or a number exceeds its bounds.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let (kind, numbers, groups, payload) = match self {
            Self::Epoch { after, n, claimant } => {
                let numbers = [after.unwrap_or(NONE), n.unwrap_or(NONE), 0];
                (kind::EPOCH, numbers, 0, claimant.encode())
            }
            Self::Hello(hello) => {
                let numbers = [hello.owns.unwrap_or(NONE), 0, hello.by.applied];
                (kind::HELLO, numbers, 0, hello.encode()?)
            }
            Self::Record { at, body } => {
                let (kind, groups, payload) = body.encode();
                (kind, numbers(*at), groups, payload)
            }
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[VERSION, kind, 0, 0]);
        put_numbers(&mut bytes, numbers);
        bytes.extend_from_slice(&groups.to_le_bytes());
        bytes.extend_from_slice(&payload);
        let checksum = crc32_iscsi(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        let same = Envelope::decode(&bytes).is_ok_and(|read| read == *self);
        same.then_some(bytes)
    }

    /// The envelope in `bytes`.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Fault> {
        let (head, payload) = intact(bytes).ok_or(Fault::Malformed)?;
        if head[4] > VERSION {
            return Err(Fault::Newer(head[4]));
        }
        fields(head, payload).ok_or(Fault::Malformed)
    }
}

/// Whether the value, if it is an envelope that can be read, is one of DATA.
pub(crate) fn may_be_data(value: &[u8]) -> bool {
    matches!(value, [_, _, _, _, ..=VERSION, kind::DATA, ..])
}

/// Header and payload, if all bytes are as they were written. The same in all versions.
fn intact(bytes: &[u8]) -> Option<(&[u8; HEADER_BYTES], &[u8])> {
    let (checked, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    let whole = bytes.len() <= VALUE_BYTES_MAX
        && checked.starts_with(MAGIC)
        && crc32_iscsi(checked).to_le_bytes() == *checksum;
    checked.split_first_chunk().filter(|_| whole)
}

fn fields<'a>(head: &[u8; HEADER_BYTES], payload: &'a [u8]) -> Option<Envelope<'a>> {
    let (fixed, rest) = head.split_first_chunk::<8>()?;
    let (raw, rest) = rest.split_first_chunk::<24>()?;
    let groups = u32::from_le_bytes(*rest.first_chunk()?);
    let &[_, _, _, _, version @ 1..=VERSION, kind, 0, 0] = fixed else {
        return None;
    };
    match kind {
        kind::EPOCH if groups == 0 => return claim(version, raw, payload),
        kind::HELLO if version > 2 && groups == 0 => return said(raw, payload),
        _ => {}
    }
    let (at, _) = take_state(raw)?;
    at.epoch?;
    let body = match kind {
        kind::DATA => {
            let whole = groups > 0 && !payload.is_empty();
            whole.then_some(Body::Data { groups, payload })?
        }
        _ if groups > 0 => return None,
        KIND_SKIPPED.. if version > 1 => Body::Skipped { kind, payload },
        kind::CHECKPOINT => Body::Checkpoint(Checkpoint::decode(payload)?),
        _ if !payload.is_empty() => return None,
        kind::TICK => Body::Tick,
        kind::FAREWELL => Body::Farewell,
        _ => return None,
    };
    Some(Envelope::Record { at, body })
}

fn claim(version: u8, raw: &[u8], payload: &[u8]) -> Option<Envelope<'static>> {
    let (after, rest) = take_option(raw)?;
    let (n, rest) = take_option(rest)?;
    let (sequence, _) = take_number(rest)?;
    let n = match n {
        Some(0) if version < 3 => None,
        _ if version < 3 => return None,
        n => n,
    };
    let claimant = Claimant::decode(payload)?;
    (sequence == 0).then_some(Envelope::Epoch { after, n, claimant })
}

fn said(raw: &[u8], payload: &[u8]) -> Option<Envelope<'static>> {
    let (owns, rest) = take_option(raw)?;
    let (n, rest) = take_number(rest)?;
    let (applied, _) = take_number(rest)?;
    let hello = Hello::decode(owns, applied, payload)?;
    (n == 0).then_some(Envelope::Hello(hello))
}

impl Body<'_> {
    /// Kind, number of groups and payload.
    fn encode(&self) -> (u8, u32, Vec<u8>) {
        match self {
            Self::Data { groups, payload } => (kind::DATA, *groups, payload.to_vec()),
            Self::Checkpoint(named) => (kind::CHECKPOINT, 0, named.encode()),
            Self::Tick => (kind::TICK, 0, Vec::new()),
            Self::Farewell => (kind::FAREWELL, 0, Vec::new()),
            Self::Skipped { kind, payload } => (*kind, 0, payload.to_vec()),
        }
    }
}

impl Claimant {
    fn encode(&self) -> Vec<u8> {
        let node = self.node.to_le_bytes();
        [&self.nonce[..], &node, self.address.as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (nonce, rest) = bytes.split_first_chunk()?;
        let (node, address) = rest.split_first_chunk()?;
        Some(Self {
            nonce: *nonce,
            node: u32::from_le_bytes(*node),
            address: name(address)?,
        })
    }
}

impl Checkpoint {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.begin.to_le_bytes().to_vec();
        put_numbers(&mut bytes, numbers(self.state));
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes.extend_from_slice(&self.sha256);
        bytes.extend_from_slice(self.manifest.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (begin, rest) = take_number(bytes)?;
        let (state, rest) = take_state(rest)?;
        let (bytes, rest) = take_number(rest)?;
        let (sha256, manifest) = rest.split_first_chunk()?;
        let named = Self {
            manifest: name(manifest)?,
            sha256: *sha256,
            bytes,
            begin,
            state,
        };
        (!manifest.is_empty()).then_some(named)
    }
}

fn numbers(state: State) -> [u64; 3] {
    [state.epoch.unwrap_or(NONE), state.n, state.sequence]
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: [u64; 3]) {
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

fn take_state(bytes: &[u8]) -> Option<(State, &[u8])> {
    let (epoch, rest) = take_option(bytes)?;
    let (n, rest) = take_number(rest)?;
    let (sequence, rest) = take_number(rest)?;
    Some((State { epoch, n, sequence }, rest))
}

fn take_option(bytes: &[u8]) -> Option<(Option<u64>, &[u8])> {
    match bytes.split_first_chunk()? {
        (number, rest) if u64::from_le_bytes(*number) == NONE => Some((None, rest)),
        _ => take_number(bytes).map(|(number, rest)| (Some(number), rest)),
    }
}

fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    let number = u64::from_le_bytes(*number);
    (number <= NUMBER_MAX).then_some((number, rest))
}

fn name(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    (bytes.len() <= NAME_BYTES_MAX).then(|| text.to_owned())
}
