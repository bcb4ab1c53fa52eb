//! A connection to a broker, for one request at a time.
//!
//! Frames are those of the protocol: a length of 4 bytes, a header, and a message that
//! `kafka-protocol` generates from Kafka's schemas.
//!
//! Invariants: after an error a connection is not used again. An answer belongs to the request
//! before it, or is an error. Memory for an answer grows with the bytes that arrived, never with
//! a length that a peer claims.
//!
//! Tested below, with a broker that sends what it should not.

use super::failure::{no_answer, not_sent};
use super::stream::Stream;
use crate::kafka::{KafkaError, Result};
use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::buf::ByteBuf;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes, VersionRange};
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How this client names itself to brokers.
const NAME: StrBytes = StrBytes::from_static_str("latewood");
/// Brokers close what was idle for ten minutes; a request must not meet that.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Longest answer without records, in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Longest answer with records, in bytes. A read asks for less.
const RECORDS_BYTES_MAX: usize = 128 << 20;
/// Most elements of an array, and most bytes of a string.
const LENGTH_MAX: usize = 1 << 16;

/// A request, and which versions of it are spoken.
pub(super) trait Ask: Encodable + HeaderVersion {
    /// What answers it.
    type Answer: Decodable + HeaderVersion;
    /// Its number and name.
    const KEY: ApiKey;
    /// Flexible ones (KIP-482), see [`Unread`], except those of `SaslHandshake`, which has none.
    const VERSIONS: VersionRange;
}

macro_rules! asks {
    ($($request:ident => $answer:ident, $key:ident $min:literal..=$max:literal;)*) => {$(
        impl Ask for $request {
            type Answer = $answer;
            const KEY: ApiKey = ApiKey::$key;
            const VERSIONS: VersionRange = VersionRange { min: $min, max: $max };
        }
    )*};
}

// Kafka 2.8 and later know them: `Metadata` 10 is the first with the ids of topics. `Fetch` and
// `Produce` name topics by their ids in later versions.
asks! {
    ApiVersionsRequest => ApiVersionsResponse, ApiVersions 3..=3;
    SaslHandshakeRequest => SaslHandshakeResponse, SaslHandshake 1..=1;
    SaslAuthenticateRequest => SaslAuthenticateResponse, SaslAuthenticate 2..=2;
    MetadataRequest => MetadataResponse, Metadata 10..=13;
    CreateTopicsRequest => CreateTopicsResponse, CreateTopics 5..=7;
    DescribeConfigsRequest => DescribeConfigsResponse, DescribeConfigs 4..=4;
    ListOffsetsRequest => ListOffsetsResponse, ListOffsets 6..=9;
    ProduceRequest => ProduceResponse, Produce 9..=12;
    FetchRequest => FetchResponse, Fetch 12..=12;
    DeleteRecordsRequest => DeleteRecordsResponse, DeleteRecords 2..=2;
}

/// What is looked at while an answer is waited for.
pub(super) struct Watch<'a> {
    /// How often.
    pub(super) every: Duration,
    /// Why it will not come, if that is known.
    pub(super) why_never: &'a mut dyn FnMut() -> Option<String>,
}

pub(super) struct Connection {
    stream: Box<dyn Stream>,
    broker: String,
    versions: Vec<ApiVersion>,
    correlation_id: i32,
    /// When it was answered last.
    pub(super) used: Instant,
    /// When the broker wants the password again.
    pub(super) expires: Option<Instant>,
}

impl Connection {
    /// Asks which versions the broker speaks.
    ///
    /// # Errors
    /// As [`Connection::prepare`].
    pub(super) fn new(broker: &str, stream: Box<dyn Stream>, deadline: Instant) -> Result<Self> {
        let mut connection = Self {
            stream,
            broker: broker.to_owned(),
            versions: vec![
                ApiVersion::default()
                    .with_api_key(ApiKey::ApiVersions as i16)
                    .with_max_version(ApiVersionsRequest::VERSIONS.max),
            ],
            correlation_id: 0,
            used: Instant::now(),
            expires: None,
        };
        let request = ApiVersionsRequest::default()
            .with_client_software_name(NAME)
            .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
        let answer = connection.prepare(&request, deadline)?;
        if let Some(code) = ResponseError::try_from_code(answer.error_code) {
            let text = format!("{broker}: {code:?} to {:?}", ApiKey::ApiVersions);
            return Err(KafkaError::Refused(text));
        }
        connection.versions = answer.api_keys;
        Ok(connection)
    }

    pub(super) fn broker(&self) -> &str {
        &self.broker
    }

    /// Whether the broker keeps it at `now`: it was used lately, and its login still holds.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        let is_old = now.duration_since(self.used) >= IDLE_MAX;
        !is_old && self.expires.is_none_or(|expires| now < expires)
    }

    /// Whether another request may be sent: the broker did not end it, nor sends what was not
    /// asked for.
    pub(super) fn is_quiet(&self) -> bool {
        self.stream.is_quiet()
    }

    /// A request before those that the connection is for, which changes nothing.
    ///
    /// # Errors
    /// `Refused` if the broker does not know the request or ends the encryption, else
    /// `Unavailable`.
    pub(super) fn prepare<R: Ask>(&mut self, request: &R, deadline: Instant) -> Result<R::Answer> {
        let (frame, version) = self.frame(request)?;
        let answer = self.exchange::<R>(&frame, version, deadline, None);
        answer.map_err(|error| not_sent(&self.broker, "opening the connection", &error))
    }

    /// Sends one request, once, and waits for its answer.
    ///
    /// # Errors
    /// `Refused` if the broker does not know the request; `Unknown` without an answer.
    pub(super) fn ask<R: Ask>(
        &mut self,
        request: &R,
        deadline: Instant,
        watch: Option<Watch<'_>>,
    ) -> Result<R::Answer> {
        let (frame, version) = self.frame(request)?;
        let answer = self.exchange::<R>(&frame, version, deadline, watch);
        self.used = Instant::now();
        answer.map_err(|error| no_answer(&self.broker, &error))
    }

    /// The newest version of a request that both sides speak.
    fn version<R: Ask>(&self) -> Result<i16> {
        let key = R::KEY as i16;
        let known = self.versions.iter().find(|known| known.api_key == key);
        let both = known.map(|known| {
            R::VERSIONS.intersect(&VersionRange {
                min: known.min_version,
                max: known.max_version,
            })
        });
        if let Some(both) = both.filter(|both| !both.is_empty()) {
            return Ok(both.max);
        }
        let (broker, key, versions) = (&self.broker, R::KEY, R::VERSIONS);
        let text = format!("{broker} does not support versions {versions} of {key:?}");
        Err(KafkaError::Refused(text))
    }

    /// A request as it is sent, and its version.
    fn frame<R: Ask>(&mut self, request: &R) -> Result<(BytesMut, i16)> {
        let version = self.version::<R>()?;
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY as i16)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation_id)
            .with_client_id(Some(NAME));
        let mut frame = BytesMut::zeroed(4);
        let header_version = R::header_version(version);
        let encoded = header.encode(&mut frame, header_version);
        let encoded = encoded.and_then(|()| request.encode(&mut frame, version));
        let length = i32::try_from(frame.len() - 4);
        let refused = |error: &dyn std::fmt::Display| {
            KafkaError::Refused(format!("cannot encode {:?}: {error}", R::KEY))
        };
        encoded.map_err(|error| refused(&error))?;
        (&mut frame[..4]).put_i32(length.map_err(|error| refused(&error))?);
        Ok((frame, version))
    }

    fn exchange<R: Ask>(
        &mut self,
        frame: &[u8],
        version: i16,
        deadline: Instant,
        watch: Option<Watch<'_>>,
    ) -> io::Result<R::Answer> {
        self.stream.set_deadline(deadline);
        let sent = self.stream.write_all(frame);
        let sent = sent.and_then(|()| self.stream.flush());
        sent.map_err(|error| during("sending", R::KEY, &error))?;
        let has_records = R::KEY == ApiKey::Fetch;
        let limit = if has_records {
            RECORDS_BYTES_MAX
        } else {
            ANSWER_BYTES_MAX
        };
        let comes = watch.map_or(Ok(()), |watch| self.await_answer(deadline, watch));
        let answer = comes.and_then(|()| read_frame(&mut *self.stream, limit));
        let answer = answer.and_then(|answer| self.decode::<R>(answer, version));
        answer.map_err(|error| during("the answer to", R::KEY, &error))
    }

    /// Returns when an answer begins, or at the deadline.
    fn await_answer(&mut self, deadline: Instant, watch: Watch<'_>) -> io::Result<()> {
        loop {
            let until = deadline.min(Instant::now() + watch.every);
            if self.stream.wait(until)? || Instant::now() >= deadline {
                return Ok(());
            }
            if let Some(why) = (watch.why_never)() {
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
        }
    }

    fn decode<R: Ask>(&self, frame: Bytes, version: i16) -> io::Result<R::Answer> {
        let (sent, mut head) = (self.correlation_id, &frame[..]);
        let found = head.try_get_i32()?;
        if found != sent {
            let text = format!("it belongs to request {found}, not to {sent}");
            return Err(io::Error::other(text));
        }
        let mut unread = Unread::new(frame, R::KEY);
        let header = ResponseHeader::decode(&mut unread, R::Answer::header_version(version));
        let answer = header.and_then(|_| R::Answer::decode(&mut unread, version));
        answer.map_err(io::Error::other)
    }
}

/// An error of the same kind that says what failed.
fn during(what: &str, key: ApiKey, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {key:?}: {error}"))
}

/// The bytes of a frame behind its length.
fn read_frame(stream: &mut dyn Stream, limit: usize) -> io::Result<Bytes> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let claimed = i32::from_be_bytes(length);
    let length = usize::try_from(claimed)
        .ok()
        .filter(|length| *length <= limit);
    let Some(length) = length else {
        let text = format!(
            "its length is {claimed} bytes, the limit is {limit}: a port of TLS, or of another \
             protocol?"
        );
        return Err(io::Error::other(text));
    };
    let mut bytes = Vec::new();
    let read = stream.take(length as u64).read_to_end(&mut bytes)?;
    if read < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.into())
}

/// An answer while it is decoded.
///
/// The generated code allocates as many elements as an array claims to have. So lengths are
/// checked before it sees them: in flexible versions each is a varint, and varints alone are read
/// by single bytes, except flags, which are no more than 1.
struct Unread {
    left: Bytes,
    key: ApiKey,
    /// How many lengths were read.
    lengths: usize,
    length: u64,
    shift: u32,
}

impl Unread {
    fn new(left: Bytes, key: ApiKey) -> Self {
        Self {
            left,
            key,
            lengths: 0,
            length: 0,
            shift: 0,
        }
    }

    /// The lengths of the header's fields, topics, a name, partitions and aborted transactions
    /// precede that of records.
    fn is_of_records(&self) -> bool {
        self.key == ApiKey::Fetch && self.lengths == 6
    }

    fn check(&self, length: usize) -> std::result::Result<(), TryGetError> {
        // Lengths of what may be missing are one more.
        let (requested, available) = (length.saturating_sub(1), self.left.len());
        if requested > available || requested > LENGTH_MAX && !self.is_of_records() {
            return Err(TryGetError {
                requested,
                available,
            });
        }
        Ok(())
    }
}

impl Buf for Unread {
    fn remaining(&self) -> usize {
        self.left.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.left.chunk()
    }

    fn advance(&mut self, bytes: usize) {
        self.left.advance(bytes);
    }

    fn try_get_u8(&mut self) -> std::result::Result<u8, TryGetError> {
        let byte = self.left.try_get_u8()?;
        self.length |= u64::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        if byte < 0x80 || self.shift == 35 {
            self.shift = 0;
            self.lengths += 1;
            let length = mem::take(&mut self.length);
            self.check(usize::try_from(length).unwrap_or(usize::MAX))?;
        }
        Ok(byte)
    }

    fn try_get_i32(&mut self) -> std::result::Result<i32, TryGetError> {
        let number = self.left.try_get_i32()?;
        // The number of mechanisms; the header's, checked before, is 2.
        if self.key == ApiKey::SaslHandshake {
            self.check(usize::try_from(number).unwrap_or(usize::MAX))?;
        }
        Ok(number)
    }
}

impl ByteBuf for Unread {
    fn peek_bytes(&mut self, range: Range<usize>) -> Bytes {
        self.left.slice(range)
    }

    fn get_bytes(&mut self, bytes: usize) -> Bytes {
        self.left.split_to(bytes)
    }
}

#[cfg(test)]
mod tests;
