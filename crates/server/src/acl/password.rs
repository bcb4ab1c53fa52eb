//! Passwords, kept as SHA-256 and compared in constant time.

use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};
use std::io;

/// The SHA-256 of a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; 32]);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash(..)")
    }
}

impl Hash {
    pub(crate) fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub(crate) fn parse(hex: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        if hex.len() != 2 * hash.len() {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(hash))
    }

    /// The 64 digits that [`parse`](Self::parse) reads.
    pub(crate) fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Whether the two are equal, in a time that does not depend on where
    /// they differ.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }
}

/// A password of `bits` random bits, as hexadecimal digits.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn generate(bits: usize) -> io::Result<String> {
    let digits = bits.div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    let mut text = hex(&bytes);
    text.truncate(digits);
    Ok(text)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    let pairs = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]);
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_standard_and_reads_back() {
        let hash = Hash::of(b"abc");
        assert_eq!(
            hash.hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Hash::parse(hash.hex().as_bytes()), Some(hash));
        assert!(hash.matches(&hash) && !hash.matches(&Hash::of(b"abd")));
        for wrong in ["", "ab", &hash.hex().to_uppercase(), &"g".repeat(64)] {
            assert_eq!(Hash::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_generated_password_has_the_digits_asked_for() {
        for (bits, digits) in [(1, 1), (5, 2), (256, 64), (4096, 1024)] {
            assert_eq!(generate(bits).unwrap().len(), digits, "{bits} bits");
        }
        assert_ne!(generate(256).unwrap(), generate(256).unwrap());
    }
}
