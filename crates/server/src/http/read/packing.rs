//! Compression of answers, piece by piece, as the reader accepts it.
//!
//! Each piece is flushed, so that a reader gets it before the next one is made. Short answers are
//! sent as they are. Tested by `tests/http/promql_answers.rs`.

use crate::http::encodings::Encodings;
use axum::http::{HeaderMap, HeaderValue};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use zstd::stream::write::Encoder as ZstdEncoder;

/// Shorter answers are not worth it.
const LEAST_BYTES: usize = 1024;
/// Fast: answers are texts of numbers, of which better levels make little more.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;

/// What a reader accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Accepts {
    #[default]
    Plain,
    Gzip,
    Zstd,
}

/// Packs the pieces of one answer.
pub(super) struct Packing(Option<Packer>);

enum Packer {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

impl Accepts {
    /// What `Accept-Encoding` names: gzip, or else zstd.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let encodings = Encodings::of(headers);
        match (encodings.has("gzip"), encodings.has("zstd")) {
            (true, _) => Self::Gzip,
            (_, true) => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

impl Packing {
    /// Nothing yet. The first piece of the answer has `first` bytes.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub(super) fn begin(accepts: Accepts, first: usize, is_last: bool) -> io::Result<Self> {
        if is_last && first < LEAST_BYTES {
            return Ok(Self(None));
        }
        Ok(Self(match accepts {
            Accepts::Plain => None,
            Accepts::Gzip => Some(Packer::Gzip(GzEncoder::new(
                Vec::new(),
                Compression::new(GZIP_LEVEL),
            ))),
            Accepts::Zstd => Some(Packer::Zstd(ZstdEncoder::new(Vec::new(), ZSTD_LEVEL)?)),
        }))
    }

    /// The value of `Content-Encoding`, if there is one.
    pub(super) fn name(&self) -> Option<HeaderValue> {
        Some(HeaderValue::from_static(match &self.0 {
            None => return None,
            Some(Packer::Gzip(_)) => "gzip",
            Some(Packer::Zstd(_)) => "zstd",
        }))
    }

    /// The piece as it is sent.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub(super) fn pack(&mut self, piece: Vec<u8>, is_last: bool) -> io::Result<Vec<u8>> {
        match &mut self.0 {
            None => Ok(piece),
            Some(Packer::Gzip(packer)) => {
                packer.write_all(&piece)?;
                if is_last {
                    packer.try_finish()?
                } else {
                    packer.flush()?
                }
                Ok(std::mem::take(packer.get_mut()))
            }
            Some(Packer::Zstd(packer)) => {
                packer.write_all(&piece)?;
                if is_last {
                    packer.do_finish()?
                } else {
                    packer.flush()?
                }
                Ok(std::mem::take(packer.get_mut()))
            }
        }
    }
}
