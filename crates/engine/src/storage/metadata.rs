//! Metadata of metrics: type, help and unit, as senders tell them.
//!
//! Held in memory and kept in one small file, `METADATA`, which is written anew under another name
//! and renamed when something has changed: by a background thread within about a second, and at the
//! end. What a sender repeats costs a lookup. It is bounded: a text that is too long and a metric
//! too many are left out and counted. It is not samples: a damaged file moves to the quarantine,
//! and the database opens without it.
//!
//! Format: `docs/format/metadata.md`. Tested below and by `tests/db_metadata.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::names;
use crate::format::varint;
use crate::io::{Env, File};
use crate::storage::files::directory::remove_if_there;
use crc_fast::crc32_iscsi;
use latewood_model::Told;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"LWOODMET";
const VERSION: u32 = 1;
/// Magic, version and checksum.
const HEADER_BYTES: usize = 16;
/// Metrics.
const METRICS_MAX: usize = 65_536;
/// Bytes of a name or a text.
const TEXT_BYTES_MAX: usize = 4096;
/// Bytes of all names and texts.
const BYTES_MAX: usize = 16 << 20;
/// No file of the bounds above is longer.
const FILE_BYTES_MAX: u64 = 2 * BYTES_MAX as u64;

/// What a metric is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `counter`, `gauge`, `histogram`, ...
    pub kind: Box<str>,
    /// What it counts or measures.
    pub help: Box<str>,
    /// Its unit.
    pub unit: Box<str>,
}

/// The metadata of all metrics.
#[derive(Default)]
pub(crate) struct MetadataStore {
    held: Mutex<Held>,
    /// Held while the file is written.
    saving: Mutex<()>,
}

#[derive(Default)]
struct Held {
    metrics: BTreeMap<Box<str>, Metadata>,
    /// Of names and texts.
    bytes: usize,
    /// Metrics and texts that were left out.
    left_out: u64,
    is_changed: bool,
}

impl Metadata {
    fn bytes(&self) -> usize {
        self.kind.len() + self.help.len() + self.unit.len()
    }

    /// Takes over what differs; whether something does.
    fn take(&mut self, told: Told<'_>) -> bool {
        let mut is_changed = false;
        let parts = [
            (&mut self.kind, told.kind),
            (&mut self.help, told.help),
            (&mut self.unit, told.unit),
        ];
        for (held, told) in parts {
            if let Some(told) = told.filter(|told| **held != **told) {
                *held = told.into();
                is_changed = true;
            }
        }
        is_changed
    }
}

impl MetadataStore {
    /// Notes what a sender says of `metric`. Logarithmic.
    pub(crate) fn note(&self, metric: &str, told: Told<'_>) {
        let texts = [Some(metric), told.kind, told.help, told.unit];
        let mut held = self.held.lock();
        let held = &mut *held;
        if texts
            .iter()
            .flatten()
            .any(|text| text.len() > TEXT_BYTES_MAX)
            || metric.is_empty()
        {
            held.left_out += 1;
            return;
        }
        match held.metrics.get_mut(metric) {
            Some(known) => {
                let mut changed = known.clone();
                if !changed.take(told) {
                    return;
                }
                let bytes = held.bytes + changed.bytes() - known.bytes();
                if bytes > BYTES_MAX {
                    held.left_out += 1;
                    return;
                }
                *known = changed;
                held.bytes = bytes;
                held.is_changed = true;
            }
            None => {
                let mut new = Metadata::default();
                new.take(told);
                let bytes = metric.len() + new.bytes();
                if held.metrics.len() >= METRICS_MAX || held.bytes + bytes > BYTES_MAX {
                    held.left_out += 1;
                    return;
                }
                held.metrics.insert(metric.into(), new);
                held.bytes += bytes;
                held.is_changed = true;
            }
        }
    }

    /// All of it, by the names of metrics; of one metric where it is named.
    pub(crate) fn list(&self, metric: Option<&str>) -> Vec<(Box<str>, Metadata)> {
        let held = self.held.lock();
        match metric {
            Some(metric) => {
                let found = held.metrics.get_key_value(metric).into_iter();
                found
                    .map(|(name, one)| (name.clone(), one.clone()))
                    .collect()
            }
            None => {
                let all = held.metrics.iter();
                all.map(|(name, one)| (name.clone(), one.clone())).collect()
            }
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let mut held = self.held.lock();
        held.is_changed |= !held.metrics.is_empty();
        held.metrics.clear();
        held.bytes = 0;
    }

    /// Bytes of memory, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        let held = self.held.lock();
        held.bytes + held.metrics.len() * 2 * size_of::<(Box<str>, Metadata)>()
    }

    /// Reads the file of `dir`, if there is one.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged, `Io`.
    pub(crate) fn load(&self, env: &Env, dir: &Path) -> Result<()> {
        let Some(metrics) = read(env, dir)? else {
            return Ok(());
        };
        let mut held = self.held.lock();
        held.bytes = metrics
            .iter()
            .map(|(name, one)| name.len() + one.bytes())
            .sum();
        held.metrics = metrics;
        Ok(())
    }

    /// Writes the file if something has changed.
    ///
    /// # Errors
    /// `Io`; then it is tried again at the next call.
    pub(crate) fn save(&self, env: &Env, dir: &Path) -> Result<()> {
        let _saving = self.saving.lock();
        let bytes = {
            let mut held = self.held.lock();
            if !std::mem::take(&mut held.is_changed) {
                return Ok(());
            }
            encode(&held.metrics)
        };
        let path = dir.join(names::METADATA);
        let removed = remove_if_there(env, &dir.join(names::METADATA_NEW));
        let failed = |error| Error::io("cannot write the metadata of metrics", &path, error);
        let written = removed.and_then(|()| write(env, dir, &bytes).map_err(failed));
        written.inspect_err(|_| self.held.lock().is_changed = true)
    }
}

fn write(env: &Env, dir: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = dir.join(names::METADATA_NEW);
    let file: Arc<dyn File> = env.disk.create(&new, 0)?;
    file.write_at(bytes, 0)?;
    // Before the rename: a durable name must not outlive its bytes.
    file.sync()?;
    env.disk.rename(&new, &dir.join(names::METADATA))?;
    env.disk.sync_dir(dir)
}

/// What the file of `dir` holds; `None` if there is none.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn read(env: &Env, dir: &Path) -> Result<Option<BTreeMap<Box<str>, Metadata>>> {
    let path = dir.join(names::METADATA);
    let failed = |error| Error::io("cannot read the metadata of metrics", &path, error);
    let file = match env.disk.open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let len_bytes = file.len_bytes().map_err(failed)?;
    if len_bytes > FILE_BYTES_MAX {
        return Err(damaged("it is too long").at(&path));
    }
    let mut bytes = vec![0; len_bytes as usize];
    file.read_at(&mut bytes, 0).map_err(failed)?;
    decode(&bytes)
        .map(Some)
        .map_err(|why| damaged(why).at(&path))
}

fn damaged(why: &str) -> Error {
    let text = format!("the metadata of metrics is damaged: {why}");
    Error::new(ErrorKind::Corrupt, text)
}

fn encode(metrics: &BTreeMap<Box<str>, Metadata>) -> Vec<u8> {
    let mut body = Vec::new();
    let number = |body: &mut Vec<u8>, value: usize| {
        let at = body.len();
        body.resize(at + varint::VARINT_BYTES_MAX, 0);
        let end = varint::put(body, at, value as u64);
        body.truncate(end);
    };
    number(&mut body, metrics.len());
    for (name, one) in metrics {
        for text in [name, &one.kind, &one.help, &one.unit] {
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

fn decode(bytes: &[u8]) -> std::result::Result<BTreeMap<Box<str>, Metadata>, &'static str> {
    const SHORT: &str = "it ends early";
    let (header, mut rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(SHORT)?;
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    if header[..8] != MAGIC {
        return Err("it does not begin as such a file");
    }
    if (word(8), word(12)) != (VERSION, crc32_iscsi(rest)) {
        return Err("its checksum does not match");
    }
    let mut metrics = BTreeMap::new();
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
        metrics.insert(name, Metadata { kind, help, unit });
    }
    match rest.is_empty() {
        true => Ok(metrics),
        false => Err("bytes follow its end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(help: &str) -> Told<'_> {
        Told {
            kind: Some("counter"),
            help: Some(help),
            unit: None,
        }
    }

    #[test]
    fn what_is_written_is_read_and_damage_is_told() {
        let store = MetadataStore::default();
        store.note("up", counter("whether it is up"));
        store.note("caf\u{e9}", Told::default());
        let metrics = store.held.lock().metrics.clone();
        let bytes = encode(&metrics);
        assert_eq!(decode(&bytes), Ok(metrics));
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at]).is_err());
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert!(decode(&wrong).is_err(), "byte {at}");
        }
    }

    #[test]
    fn the_last_word_counts_and_what_is_not_said_stays() {
        let store = MetadataStore::default();
        store.note("m", counter("a"));
        let unit = Some("seconds");
        store.note(
            "m",
            Told {
                unit,
                ..Told::default()
            },
        );
        store.note(
            "m",
            Told {
                kind: Some("gauge"),
                ..Told::default()
            },
        );
        let (_, found) = store.list(Some("m")).remove(0);
        assert_eq!(
            (&*found.kind, &*found.help, &*found.unit),
            ("gauge", "a", "seconds")
        );
        assert_eq!(store.list(Some("other")), []);
    }

    #[test]
    fn what_is_too_much_is_left_out() {
        let store = MetadataStore::default();
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        store.note("m", counter(&long));
        store.note(&long, counter("a"));
        assert_eq!(store.list(None), []);
        let long = &long[1..];
        for at in 0..METRICS_MAX {
            store.note(&format!("m{at}"), counter(long));
        }
        // Longer texts of metrics that are there count as well.
        let store = MetadataStore::default();
        for at in 0..METRICS_MAX {
            store.note(
                &format!("m{at}"),
                Told {
                    kind: Some("gauge"),
                    ..Told::default()
                },
            );
        }
        for at in 0..METRICS_MAX {
            store.note(&format!("m{at}"), counter(long));
        }
        let held = store.held.lock();
        assert!(held.bytes <= BYTES_MAX && held.left_out > 2);
        assert!((encode(&held.metrics).len() as u64) < FILE_BYTES_MAX);
    }
}
