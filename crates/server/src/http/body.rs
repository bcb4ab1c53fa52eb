//! Bodies: their bytes as they come, and what they hold uncompressed.

use super::answer::Answer;
use super::context::Context;
use super::permits::Permits;
use super::uploads::Upload;
use crate::acl::User;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

/// Bytes of a body as it is sent.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;
/// Bytes of a body uncompressed, where it is read in pieces.
pub(crate) const INFLATED_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a body uncompressed, where it must be read at once.
pub(crate) const UNPACKED_BYTES_MAX: usize = 64 << 20;
/// Bytes of memory that what a body holds may take once it is read. With the
/// body itself that is all there is for the requests that write.
pub(crate) const DECODED_BYTES_MAX: usize = 192 << 20;
/// Longest time a body may take to come.
pub(super) const BODY_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of the dictionary of a zstd frame, as a power of two.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

const GAVE_WAY: &str = "the body came too slowly and gave way to other requests";

/// How a stream of snappy's frames begins, which some take for a block of it:
/// <https://github.com/google/snappy/blob/main/framing_format.txt>.
const SNAPPY_FRAMES: &[u8] = b"\xff\x06\x00\x00sNaPpY";

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Not at all.
    Identity,
    Gzip,
    Zstd,
    /// One block of snappy, without a frame.
    Snappy,
}

/// The bytes of a body, with the memory and the place among the requests at
/// work that were given out for them. They go back with the bytes, so that a
/// sender who leaves does not free the place of work that still goes on.
pub(crate) struct Received {
    /// As they were sent.
    pub(crate) bytes: Vec<u8>,
    /// How they are compressed.
    pub(crate) encoding: Encoding,
    _memory: Vec<OwnedSemaphorePermit>,
    _place: OwnedSemaphorePermit,
}

impl Encoding {
    /// What the headers say.
    ///
    /// # Errors
    /// 415 for any other.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Answer> {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else {
            return Ok(Self::Identity);
        };
        match &*value.as_bytes().trim_ascii().to_ascii_lowercase() {
            b"" | b"identity" => Ok(Self::Identity),
            b"gzip" | b"x-gzip" => Ok(Self::Gzip),
            b"zstd" => Ok(Self::Zstd),
            b"snappy" => Ok(Self::Snappy),
            _ => Err(Answer::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Encoding must be gzip, zstd, snappy or identity",
            )),
        }
    }
}

/// Takes in a whole body that is written, and says who writes it: whom the
/// headers name, or else `given`, the user and password of the path.
///
/// # Errors
/// Those of [`Context::user`], [`Context::ready`] and [`receive_in`].
pub(crate) async fn receive(
    context: &Context,
    headers: &HeaderMap,
    given: (Option<&str>, Option<&str>),
    body: Body,
) -> Result<(Arc<User>, Received), Answer> {
    let admit = || {
        let user = context.user(headers, given)?;
        context.ready(true)?;
        Ok(user)
    };
    let user = admit()?;
    let received = receive_in(&context.work.writers, &user, headers, body, BODY_BYTES_MAX).await?;
    // A body may take long to come: what counts is what holds at its end.
    Ok((admit()?, received))
}

/// Takes in a whole body of at most `bytes_max` that `user` sends, of a request that has a place in
/// `permits`.
///
/// # Errors
/// 408 where it comes too slowly, 413 where it is too long, 415, 503 where
/// other requests take all places or the memory, or where it gives way to them.
pub(crate) async fn receive_in(
    permits: &Permits,
    user: &User,
    headers: &HeaderMap,
    mut body: Body,
    bytes_max: usize,
) -> Result<Received, Answer> {
    let encoding = Encoding::of(headers)?;
    let until = Instant::now() + BODY_TIME_MAX;
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > bytes_max) {
        return Err(too_long(bytes_max as u64));
    }
    let (upload, place) = Upload::begin(permits, user).await?;
    let (mut memory, mut granted, mut bytes) = (Vec::new(), 0, Vec::new());
    loop {
        let frame = tokio::select! {
            frame = timeout_at(until, body.frame()) => frame,
            () = upload.must_leave() => return Err(Answer::busy(GAVE_WAY)),
        };
        let frame = frame.map_err(|_| too_slow(BODY_TIME_MAX))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| cut_short(&error))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if bytes.len() + piece.len() > bytes_max {
            return Err(too_long(bytes_max as u64));
        }
        if bytes.len() + piece.len() > granted {
            // A vector grows by doubling, up to the length that was announced.
            let left = length.map_or(usize::MAX, |length| length.saturating_sub(granted));
            let more = granted.max(64 << 10).min(left).max(piece.len());
            memory.push(upload.memory(more).await?);
            granted += more;
            bytes.reserve_exact(granted - bytes.len());
        }
        upload.note(piece.len());
        bytes.extend_from_slice(&piece);
    }
    Ok(Received {
        bytes,
        encoding,
        _memory: memory,
        _place: place,
    })
}

impl Received {
    /// The bytes as they were sent, and what goes back once nothing is done with them any more.
    pub(super) fn into_bytes(self) -> (Vec<u8>, impl Send + use<>) {
        (self.bytes, (self._memory, self._place))
    }

    /// Brings what the body holds to `take` in pieces, each with whether it is
    /// the last. `take` answers how many bytes it has read; the others come
    /// again, with more behind them. The number of bytes uncompressed.
    ///
    /// # Errors
    /// 400 where it does not uncompress, 413 where it is too much.
    pub(crate) fn pieces(&self, take: impl FnMut(&[u8], bool) -> usize) -> Result<u64, Answer> {
        self.pieces_within(INFLATED_BYTES_MAX, take)
    }

    /// The same of at most `bytes_max`, where it is inflated.
    fn pieces_within(
        &self,
        bytes_max: u64,
        mut take: impl FnMut(&[u8], bool) -> usize,
    ) -> Result<u64, Answer> {
        let reader: Box<dyn Read + '_> = match self.encoding {
            Encoding::Identity => {
                take(&self.bytes, true);
                return Ok(self.bytes.len() as u64);
            }
            Encoding::Snappy => {
                let unpacked = self.unpacked()?;
                take(&unpacked, true);
                return Ok(unpacked.len() as u64);
            }
            Encoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(&self.bytes[..])),
            Encoding::Zstd => {
                let mut decoder = zstd::Decoder::new(&self.bytes[..]).map_err(not_inflated)?;
                let limited = decoder.window_log_max(ZSTD_WINDOW_LOG_MAX);
                limited.map_err(not_inflated)?;
                Box::new(decoder)
            }
        };
        inflate(reader, bytes_max, &mut take)
    }

    /// All that the body holds, for protocols that are not read in pieces.
    ///
    /// # Errors
    /// As [`Received::pieces`].
    pub(crate) fn unpacked(&self) -> Result<Vec<u8>, Answer> {
        self.unpacked_within(UNPACKED_BYTES_MAX)
    }

    /// The same of at most `bytes_max`.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn unpacked_within(&self, bytes_max: usize) -> Result<Vec<u8>, Answer> {
        if self.encoding == Encoding::Snappy {
            if self.bytes.starts_with(SNAPPY_FRAMES) {
                let text = "framed snappy is not supported: expected the block format";
                return Err(Answer::bad(text));
            }
            let length = snap::raw::decompress_len(&self.bytes).map_err(not_inflated)?;
            if length > bytes_max {
                return Err(too_long(bytes_max as u64));
            }
            let mut decoder = snap::raw::Decoder::new();
            return decoder.decompress_vec(&self.bytes).map_err(not_inflated);
        }
        let mut all = Vec::new();
        let mut is_too_long = false;
        self.pieces_within(bytes_max as u64, |piece, _| {
            is_too_long |= all.len() + piece.len() > bytes_max;
            if !is_too_long {
                all.extend_from_slice(piece);
            }
            piece.len()
        })?;
        if is_too_long {
            Err(too_long(bytes_max as u64))
        } else {
            Ok(all)
        }
    }
}

/// Bytes that are uncompressed at a time.
const PIECE_BYTES: usize = 256 << 10;

fn inflate(
    mut reader: impl Read,
    bytes_max: u64,
    take: &mut impl FnMut(&[u8], bool) -> usize,
) -> Result<u64, Answer> {
    let (mut buffer, mut filled, mut total) = (vec![0; PIECE_BYTES], 0, 0);
    loop {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => {
                take(&buffer[..filled], true);
                return Ok(total);
            }
            Ok(read) => {
                total += read as u64;
                if total > bytes_max {
                    return Err(too_long(bytes_max));
                }
                filled += read;
                // Small reads are gathered: a taker looks at all there is.
                if filled * 2 >= buffer.len() {
                    let taken = take(&buffer[..filled], false).min(filled);
                    buffer.copy_within(taken..filled, 0);
                    filled -= taken;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                take(&buffer[..filled], false);
                return Err(not_inflated(error));
            }
        }
    }
}

/// What lies behind the errors that only say that a body was being read.
pub(super) fn cut_short(error: &axum::Error) -> Answer {
    let mut cause: &dyn Error = error;
    while let Some(behind) = cause.source() {
        cause = behind;
    }
    Answer::bad(format!("the body is incomplete: {cause}"))
}

/// Memory for what a body holds, to be kept until it is done with.
///
/// # Errors
/// 413 where it is more than there may ever be, 503 where others take it.
pub(crate) fn decoded(context: &Context, bytes: usize) -> Result<OwnedSemaphorePermit, Answer> {
    if bytes > DECODED_BYTES_MAX {
        let text = format!(
            "the decoded body takes more than {DECODED_BYTES_MAX} bytes of memory: send smaller requests"
        );
        return Err(Answer::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    context.work.writers.memory(bytes)
}

pub(super) fn too_slow(time_max: Duration) -> Answer {
    let text = format!(
        "the body did not arrive within {} seconds",
        time_max.as_secs()
    );
    Answer::new(StatusCode::REQUEST_TIMEOUT, text)
}

pub(super) fn too_long(bytes_max: u64) -> Answer {
    let text = format!("the body is longer than {bytes_max} bytes");
    Answer::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn not_inflated(error: impl std::fmt::Display) -> Answer {
    Answer::bad(format!("cannot decompress the body: {error}"))
}
