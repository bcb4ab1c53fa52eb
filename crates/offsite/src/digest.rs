//! Length and SHA-256, as `wc -c` and `sha256sum` print them.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// What bytes a file or an object has to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

impl Content {
    /// The content of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut digest = Digest::default();
        digest.add(bytes);
        digest.content()
    }
}

/// The digest of bytes added in pieces.
#[derive(Default)]
pub(crate) struct Digest {
    sha256: Sha256,
    bytes: u64,
}

impl Digest {
    /// Adds the next piece.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(crate) fn content(self) -> Content {
        let mut sha256 = String::with_capacity(64);
        for byte in self.sha256.finalize() {
            let _ = write!(sha256, "{byte:02x}");
        }
        Content {
            bytes: self.bytes,
            sha256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        let mut digest = Digest::default();
        digest.add(b"a");
        digest.add(b"bc");
        let content = digest.content();
        assert_eq!(
            content.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(content.bytes, 3);
        assert_eq!(content, Content::of(b"abc"));
    }
}
