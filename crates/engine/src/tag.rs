//! Half a hash, kept in the entry of a table.
//!
//! With it a table grows without reading the keys of its entries, which lie
//! all over the memory, and nearly every comparison with another key is saved.

/// The half of `hash` to keep.
pub(crate) fn of(hash: u64) -> u32 {
    hash as u32
}

/// The hash for the table itself, which uses its lowest and topmost bits.
pub(crate) fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
