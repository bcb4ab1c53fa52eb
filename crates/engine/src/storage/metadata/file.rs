//! The file `METADATA`: written as a whole under another name, and renamed.
//!
//! Format: `docs/format/metadata.md`. Tested below and by `tests/db_metadata.rs`.

use super::{BYTES_MAX, Metadata, Metrics};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::format::varint;
use crate::io::Env;
use crate::io::small::{self, Context, put_in_place};
use crc_fast::crc32_iscsi;
use std::io;
use std::path::Path;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"LWOODMET";
const VERSION: u32 = 1;
/// Magic, version and checksum.
const HEADER_BYTES: usize = 16;
/// No file of the bounds of [`super`] is longer.
pub(super) const FILE_BYTES_MAX: u64 = 2 * BYTES_MAX as u64;

/// Makes `bytes` the file of `dir`.
///
/// # Errors
/// `Io`; then the file is the one before or the new one.
pub(super) fn replace(env: &Env, dir: &Path, bytes: &[u8]) -> Result<()> {
    let written = small::write_new(&*env.disk, &dir.join(names::METADATA_NEW), bytes);
    let replace = |()| put_in_place(&*env.disk, dir, names::METADATA_NEW, names::METADATA);
    let replaced = written.and_then(replace);
    replaced.context(
        "cannot write the metadata of metrics",
        &dir.join(names::METADATA),
    )
}

/// What the file of `dir` holds; `None` if there is none.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn read(env: &Env, dir: &Path) -> Result<Option<Metrics>> {
    let path = dir.join(names::METADATA);
    let bytes = match small::read_whole(&*env.disk, &path, FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(damaged("it is too long").at(&path));
        }
        read => small::if_there(read).context("cannot read the metadata of metrics", &path)?,
    };
    let decoded = bytes.map(|bytes| decode(&bytes)).transpose();
    decoded.map_err(|why| damaged(why).at(&path))
}

fn damaged(why: &str) -> Error {
    let text = format!("the metadata of metrics is damaged: {why}");
    Error::new(ErrorKind::Corrupt, text)
}

pub(super) fn encode(metrics: &Metrics) -> Vec<u8> {
    let mut body = Vec::new();
    let number = |body: &mut Vec<u8>, value: usize| {
        let at = body.len();
        body.resize(at + varint::VARINT_BYTES_MAX, 0);
        let end = varint::put(body, at, value as u64);
        body.truncate(end);
    };
    number(&mut body, metrics.len());
    for (name, one) in metrics {
        for text in [&**name, &*one.kind, &*one.help, &*one.unit] {
            number(&mut body, text.len());
            body.extend_from_slice(text.as_bytes());
        }
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&crc32_iscsi(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> std::result::Result<Metrics, &'static str> {
    const SHORT: &str = "it ends early";
    let (header, mut rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(SHORT)?;
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    if header[..8] != MAGIC {
        return Err("it does not begin as such a file");
    }
    if (word(8), word(12)) != (VERSION, crc32_iscsi(rest)) {
        return Err("its checksum does not match");
    }
    let mut metrics = Metrics::new();
    for _ in 0..varint::take(&mut rest).ok_or(SHORT)? {
        let mut text = || -> std::result::Result<Box<str>, &'static str> {
            let len = varint::take(&mut rest).ok_or(SHORT)?;
            let len = usize::try_from(len).map_err(|_| SHORT)?;
            let (text, behind) = rest.split_at_checked(len).ok_or(SHORT)?;
            rest = behind;
            let text = std::str::from_utf8(text).map_err(|_| "a text is not UTF-8")?;
            Ok(text.into())
        };
        let (name, kind, help, unit) = (text()?, text()?, text()?, text()?);
        metrics.insert(name.into(), Arc::new(Metadata { kind, help, unit }));
    }
    if rest.is_empty() {
        Ok(metrics)
    } else {
        Err("bytes follow its end")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MetadataStore, Told};
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_told() {
        let store = MetadataStore::default();
        let told = Told {
            kind: Some("counter"),
            help: Some("whether it is up"),
            unit: None,
        };
        store.note("up", told);
        store.note("caf\u{e9}", Told::default());
        let metrics: Metrics = store.after("", usize::MAX).into_iter().collect();
        let bytes = encode(&metrics);
        assert_eq!(decode(&bytes), Ok(metrics));
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at]).is_err());
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert!(decode(&wrong).is_err(), "byte {at}");
        }
    }
}
