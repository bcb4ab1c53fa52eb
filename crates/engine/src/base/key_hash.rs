//! The hash of a key that files keep: the same on all machines and in all versions.
//!
//! Who chooses keys does not know the seed, which a database draws once (`Manifest::key_seed`), and
//! so cannot prepare keys that collide: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast
//! short-input PRF", 2012, with fewer rounds).

use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// The hash of `key`. Linear in its length.
pub(crate) fn key_hash(seed: u64, key: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0);
    hasher.write(key);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_depend_on_these_values() {
        assert_eq!(key_hash(0, b""), 0xd1fb_a762_150c_532c);
        assert_ne!(key_hash(1, b"a"), key_hash(2, b"a"));
    }
}
