//! Slots of a Redis cluster. One shard has all of them here; clients still name and expect them.

/// How many there are.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of a key: the CRC-16 (XMODEM) of it, or of what stands between its first `{` and the
/// next `}` unless that is nothing.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    let crc = tag.unwrap_or(key).iter().fold(0_u16, |crc, byte| {
        (crc << 8) ^ CRCS[usize::from((crc >> 8) as u8 ^ byte)]
    });
    crc % SLOTS
}

/// The CRC of each byte.
static CRCS: [u16; 256] = crcs();

const fn crcs() -> [u16; 256] {
    let mut crcs = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            bit += 1;
        }
        crcs[byte] = crc;
        byte += 1;
    }
    crcs
}

#[cfg(test)]
mod tests {
    use super::slot_of;

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(slot_of(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"a{foo}b"), 12182);
        assert_ne!(slot_of(b"{}foo"), 12182);
    }
}
