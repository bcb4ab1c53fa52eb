//! Compression of answers, piece by piece, as the reader accepts it.
//!
//! Each piece is flushed, so that a reader gets it before the next one is made. Short answers are
//! sent as they are. Tested by `tests/http/promql_answers.rs`.

use axum::http::{HeaderMap, HeaderValue, header};
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
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
        let words = lines.filter_map(|line| line.to_str().ok());
        let words = words.flat_map(|line| line.split(','));
        let names = words.filter_map(|word| {
            let (name, weight) = word.split_once(';').unwrap_or((word, ""));
            (!is_zero(weight)).then(|| name.trim())
        });
        let names: Vec<&str> = names.collect();
        let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
        match (has("gzip"), has("zstd")) {
            (true, _) => Self::Gzip,
            (_, true) => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// Whether a weight such as `q=0.000` says that a coding is not acceptable.
fn is_zero(weight: &str) -> bool {
    let value = weight.trim().strip_prefix(['q', 'Q']);
    let value = value.and_then(|value| value.trim_start().strip_prefix('='));
    value.is_some_and(|value| value.trim().parse() == Ok(0.0))
}

impl Packing {
    /// Nothing yet, for an answer whose first piece has so many bytes.
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
                match is_last {
                    true => packer.try_finish()?,
                    false => packer.flush()?,
                }
                Ok(std::mem::take(packer.get_mut()))
            }
            Some(Packer::Zstd(packer)) => {
                packer.write_all(&piece)?;
                match is_last {
                    true => packer.do_finish()?,
                    false => packer.flush()?,
                }
                Ok(std::mem::take(packer.get_mut()))
            }
        }
    }
}
