//! `dump.rdb`: its keys one after the other, series among them.
//!
//! ```text
//! "REDIS" version, 4 digits   (opcode ... | [expiry] type key value)...   255 checksum, u64
//! ```
//! Whatever the version: what one added has an opcode or a type of its own, and an unknown one is an
//! error.

use crate::bytes::{Bytes, KEY_BYTES_MAX};
use crate::error::{Error, Result};
use crate::module::SERIES;
use crate::series::{Series, SeriesReader};
use std::io::Read;

const MAGIC: &[u8; 5] = b"REDIS";
/// The version since which a checksum is at the end.
const SUM_VERSION: u32 = 5;

/// Opcodes beside the types of values.
mod opcode {
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const FUNCTION: u8 = 245;
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const AUX: u8 = 250;
    pub(super) const RESIZE: u8 = 251;
    pub(super) const EXPIRES_MS: u8 = 252;
    pub(super) const EXPIRES_S: u8 = 253;
    pub(super) const SELECT: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// The type of a module's value, as versions since 5.0 write it.
pub(crate) const MODULE: u8 = 7;

/// A key of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A series, which [`File::series`] reads.
    Series {
        /// Its key.
        key: Vec<u8>,
        /// The database it is in.
        db: u64,
        /// When it expires, milliseconds since 1970.
        expires_at_ms: Option<i64>,
    },
    /// A value of another type, passed over.
    Other {
        /// Its key.
        key: Vec<u8>,
        /// The database it is in.
        db: u64,
        /// What it is: string, list, or the name of a module's type.
        kind: String,
    },
}

/// A file that is read.
pub struct File<R> {
    bytes: Bytes<R>,
    version: u32,
    db: u64,
    /// The version of the series' format that is next.
    pending: Option<u64>,
    has_ended: bool,
}

impl<R: Read> File<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When it is not such a file.
    pub fn open(reader: R) -> Result<Self> {
        let mut bytes = Bytes::new(reader);
        let head = bytes.array::<9>()?;
        let version = head.strip_prefix(MAGIC);
        let version = version.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let Some(version) = version else {
            return bytes
                .damaged("not a file of Redis: it does not begin with REDIS and a version");
        };
        Ok(Self {
            bytes,
            version,
            db: 0,
            pending: None,
            has_ended: false,
        })
    }

    /// What it reads from, at the first byte that it has not read.
    pub fn into_inner(self) -> R {
        self.bytes.into_inner()
    }

    /// How many bytes were read.
    pub fn at(&self) -> u64 {
        self.bytes.at()
    }

    /// The next key; `None` at the end, whose checksum is checked. Passes over a series that was
    /// not asked for.
    ///
    /// # Errors
    /// Damage, and those of the reader.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        if self.pending.take().is_some() {
            self.bytes.skip_fields()?;
        }
        let mut expires_at_ms = None;
        while !self.has_ended {
            let bytes = &mut self.bytes;
            match bytes.byte()? {
                opcode::END => self.end()?,
                opcode::SELECT => self.db = bytes.number()?,
                opcode::EXPIRES_S => {
                    let seconds = i32::from_le_bytes(bytes.array()?);
                    expires_at_ms = Some(i64::from(seconds) * 1000);
                }
                opcode::EXPIRES_MS => expires_at_ms = Some(i64::from_le_bytes(bytes.array()?)),
                opcode::RESIZE => {
                    bytes.number()?;
                    bytes.number()?;
                }
                opcode::AUX => {
                    bytes.skip_string()?;
                    bytes.skip_string()?;
                }
                opcode::FREQUENCY => bytes.skip(1)?,
                opcode::IDLE => drop(bytes.number()?),
                opcode::MODULE_AUX => {
                    bytes.number()?;
                    bytes.skip_fields()?;
                }
                opcode::FUNCTION => bytes.skip_string()?,
                opcode::SLOT_INFO => {
                    for _ in 0..3 {
                        bytes.number()?;
                    }
                }
                kind => return self.value(kind, expires_at_ms).map(Some),
            }
        }
        Ok(None)
    }

    /// The series that [`File::next_entry`] found: what it is, and a reader of its samples, which must
    /// read them all or [skip](SeriesReader::skip) the rest.
    ///
    /// # Errors
    /// Damage, and those of the reader.
    pub fn series(&mut self) -> Result<(Series, SeriesReader<'_, R>)> {
        let Some(version) = self.pending else {
            return self.bytes.damaged("no series is next");
        };
        // Passed over by the next call, if this one finds it too long.
        let begun = SeriesReader::begin(&mut self.bytes, version)?;
        self.pending = None;
        Ok(begun)
    }

    fn value(&mut self, kind: u8, expires_at_ms: Option<i64>) -> Result<Entry> {
        let (bytes, db) = (&mut self.bytes, self.db);
        let key = bytes.string(KEY_BYTES_MAX)?;
        if kind != MODULE {
            let kind = skip_value(bytes, kind)?.to_owned();
            return Ok(Entry::Other { key, db, kind });
        }
        let module = bytes.module_type()?;
        if module.name != SERIES {
            bytes.skip_fields()?;
            let kind = module.name;
            return Ok(Entry::Other { key, db, kind });
        }
        self.pending = Some(module.version);
        Ok(Entry::Series {
            key,
            db,
            expires_at_ms,
        })
    }

    fn end(&mut self) -> Result<()> {
        self.has_ended = true;
        if self.version < SUM_VERSION {
            return Ok(());
        }
        let sum = self.bytes.sum();
        let written = u64::from_le_bytes(self.bytes.array()?);
        // 0 is of a server that sums nothing.
        if written == 0 || written == sum {
            Ok(())
        } else {
            Err(Error::Checksum)
        }
    }
}

/// What values of a type are called.
pub(crate) fn name_of(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "string",
        1 | 10 | 14 | 18 => "list",
        2 | 11 | 20 => "set",
        3 | 5 | 12 | 17 => "zset",
        4 | 9 | 13 | 16 | 24 | 25 => "hash",
        15 | 19 | 21 => "stream",
        _ => return None,
    })
}

/// Passes over a value; returns what it is called.
fn skip_value<R: Read>(bytes: &mut Bytes<R>, kind: u8) -> Result<&'static str> {
    let Some(name) = name_of(kind) else {
        return bytes.damaged(format!("values of type {kind} are not known"));
    };
    match kind {
        0 | 9..=13 | 16 | 17 | 20 => bytes.skip_string()?,
        1 | 2 | 14 => each(bytes, Bytes::skip_string)?,
        3 => each(bytes, |bytes| {
            bytes.skip_string()?;
            // The last three lengths are numbers without digits.
            match bytes.byte()? {
                253.. => Ok(()),
                digits => bytes.skip(u64::from(digits)),
            }
        })?,
        4 => each(bytes, |bytes| {
            bytes.skip_string()?;
            bytes.skip_string()
        })?,
        5 => each(bytes, |bytes| {
            bytes.skip_string()?;
            bytes.skip(8)
        })?,
        18 => each(bytes, |bytes| {
            bytes.number()?;
            bytes.skip_string()
        })?,
        24 => {
            bytes.skip(8)?;
            each(bytes, |bytes| {
                bytes.number()?;
                bytes.skip_string()?;
                bytes.skip_string()
            })?;
        }
        25 => {
            bytes.skip(8)?;
            bytes.skip_string()?;
        }
        _ => skip_stream(bytes, kind)?,
    }
    Ok(name)
}

/// Passes over as many elements as the number before them says.
fn each<R: Read>(
    bytes: &mut Bytes<R>,
    mut skip: impl FnMut(&mut Bytes<R>) -> Result<()>,
) -> Result<()> {
    let count = bytes.number()?;
    (0..count).try_for_each(|_| skip(bytes))
}

fn skip_stream<R: Read>(bytes: &mut Bytes<R>, kind: u8) -> Result<()> {
    let (is_second, is_third) = (kind >= 19, kind >= 21);
    each(bytes, |bytes| {
        bytes.skip_string()?;
        bytes.skip_string()
    })?;
    // Length and last id; since the second form the first id, the last deleted one, and additions.
    for _ in 0..if is_second { 8 } else { 3 } {
        bytes.number()?;
    }
    each(bytes, |bytes| {
        bytes.skip_string()?;
        for _ in 0..if is_second { 3 } else { 2 } {
            bytes.number()?;
        }
        each(bytes, |bytes| {
            bytes.skip(16 + 8)?;
            bytes.number().map(drop)
        })?;
        each(bytes, |bytes| {
            bytes.skip_string()?;
            bytes.skip(if is_third { 16 } else { 8 })?;
            each(bytes, |bytes| bytes.skip(16))
        })
    })
}
