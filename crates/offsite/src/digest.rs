//! SHA-256 as `sha256sum` prints it.

use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The digest of bytes added in pieces.
#[derive(Default)]
pub(crate) struct Digest(Sha256);

impl Digest {
    /// Adds the next piece.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// 64 lower-case hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        text
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
        assert_eq!(
            digest.hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
