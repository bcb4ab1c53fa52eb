//! Decompression of LZF, which Redis uses for long strings.
//!
//! A control byte below 32 is followed by as many literal bytes and one more; any other begins a
//! copy of earlier output: its upper 3 bits are the length less 2 (7: one more byte is added), its
//! lower 5 and the next byte are the distance less 1. Source: liblzf, `lzf_d.c`.

/// The `len` bytes that `packed` stands for; `None` if it stands for others. Linear in both.
pub(crate) fn unpack(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = packed.iter().copied();
    while let Some(control) = rest.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                out.push(rest.next()?);
            }
        } else {
            let mut copied = control >> 5;
            if copied == 7 {
                copied += usize::from(rest.next()?);
            }
            let distance = ((control & 31) << 8 | usize::from(rest.next()?)) + 1;
            let start = out.len().checked_sub(distance)?;
            // The copy may reach into itself.
            for at in start..start + copied + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn literals_and_copies_become_the_bytes_they_stand_for() {
        assert_eq!(unpack(&[2, b'a', b'b', b'c'], 3).unwrap(), b"abc");
        // Two literals, then nine bytes from two back.
        let packed = [1, b'a', b'b', 7 << 5, 0, 1];
        assert_eq!(unpack(&packed, 11).unwrap(), b"abababababa");
    }

    #[test]
    fn what_is_cut_or_points_before_the_start_is_nothing() {
        for packed in [
            &[2, b'a'][..],
            &[1 << 5, 0],
            &[7 << 5],
            &[0, b'a', 1 << 5, 1],
        ] {
            assert_eq!(unpack(packed, 3), None, "{packed:?}");
        }
        assert_eq!(unpack(&[0, b'a'], 2), None);
        assert_eq!(unpack(&[1, b'a', b'b'], 1), None);
    }
}
