//! Values of modules: a type with its version, and fields that say what they are.
//!
//! ```text
//! type id, 64 bits as a length: 9 characters of 6 bits, 10 bits of version
//! (1|2 number) | (3 float) | (4 double) | (5 string) ... 0
//! ```

use crate::bytes::Bytes;
use crate::error::Result;
use std::io::Read;

const END: u64 = 0;
const SIGNED: u64 = 1;
const UNSIGNED: u64 = 2;
const FLOAT: u64 = 3;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// The characters of a type's name.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The name of the type of RedisTimeSeries.
pub(crate) const SERIES: &str = "TSDB-TYPE";

/// A module's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) version: u64,
}

impl Type {
    pub(crate) fn of_id(id: u64) -> Self {
        let character = |place: u64| {
            let index = id >> (10 + 6 * (8 - place)) & 63;
            char::from(CHARACTERS[index as usize])
        };
        Self {
            name: (0..9).map(character).collect(),
            version: id & 1023,
        }
    }

    pub(crate) fn id(&self) -> u64 {
        let characters = self.name.bytes().fold(0, |id, byte| {
            let index = CHARACTERS.iter().position(|c| *c == byte).unwrap_or(0);
            id << 6 | index as u64
        });
        characters << 10 | self.version
    }
}

/// The fields of a value, one after the other.
impl<R: Read> Bytes<R> {
    pub(crate) fn module_type(&mut self) -> Result<Type> {
        Ok(Type::of_id(self.number()?))
    }

    fn field(&mut self, kind: u64, what: &str) -> Result<()> {
        match self.number()? {
            found if found == kind => Ok(()),
            found => self.damaged(format!("a field of kind {found} is where {what} has to be")),
        }
    }

    pub(crate) fn unsigned(&mut self) -> Result<u64> {
        self.field(UNSIGNED, "a number")?;
        self.number()
    }

    pub(crate) fn double(&mut self) -> Result<f64> {
        self.field(DOUBLE, "a double")?;
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A string of at most `bytes_max` bytes.
    pub(crate) fn text(&mut self, bytes_max: usize) -> Result<Vec<u8>> {
        self.field(STRING, "a string")?;
        self.string(bytes_max)
    }

    pub(crate) fn end_of_fields(&mut self) -> Result<()> {
        self.field(END, "the end of a value")
    }

    /// Passes over the fields that are left, and their end.
    pub(crate) fn skip_fields(&mut self) -> Result<()> {
        loop {
            match self.number()? {
                END => return Ok(()),
                SIGNED | UNSIGNED => drop(self.number()?),
                FLOAT => self.skip(4)?,
                DOUBLE => self.skip(8)?,
                STRING => self.skip_string()?,
                other => return self.damaged(format!("a module has a field of kind {other}")),
            }
        }
    }
}

/// Writes fields in the same form.
#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<u8>);

impl Fields {
    pub(crate) fn length(&mut self, number: u64) {
        match number {
            0..64 => self.0.push(number as u8),
            64..16_384 => self
                .0
                .extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
            _ => match u32::try_from(number) {
                Ok(number) => {
                    self.0.push(0x80);
                    self.0.extend_from_slice(&number.to_be_bytes());
                }
                Err(_) => {
                    self.0.push(0x81);
                    self.0.extend_from_slice(&number.to_be_bytes());
                }
            },
        }
    }

    pub(crate) fn unsigned(&mut self, number: u64) {
        self.length(UNSIGNED);
        self.length(number);
    }

    pub(crate) fn double(&mut self, number: f64) {
        self.length(DOUBLE);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.length(STRING);
        self.length(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn end(&mut self) {
        self.length(END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_its_number_and_back() {
        let series = Type {
            name: SERIES.to_owned(),
            version: 8,
        };
        assert_eq!(Type::of_id(series.id()), series);
    }

    #[test]
    fn numbers_of_every_length_come_back() {
        for number in [
            0,
            63,
            64,
            16_383,
            16_384,
            u64::from(u32::MAX),
            1 << 32,
            u64::MAX,
        ] {
            let mut fields = Fields::default();
            fields.unsigned(number);
            assert_eq!(Bytes::new(&fields.0[..]).unsigned().unwrap(), number);
        }
    }
}
