//! A short piece of a reply, built on the stack.
//!
//! Rows of samples are many and short. Appending each word to a buffer that may
//! have to grow costs more than the words; here a row is built and appended once.
//! Copies have lengths known at compile time, since a call to copy a dozen bytes
//! costs more than copying them.

/// Capacity of a line.
const ROOM_BYTES: usize = 96;

/// A few dozen bytes.
pub(super) struct Line {
    bytes: [u8; ROOM_BYTES],
    len: usize,
}

impl Line {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; ROOM_BYTES],
            len: 0,
        }
    }

    /// Appends a short text; the caller ensures that it fits.
    #[inline]
    pub(super) fn put(&mut self, text: &[u8]) {
        let len = text.len();
        let room = &mut self.bytes[self.len..self.len + len];
        // The two halves may overlap.
        match len {
            4..=7 => halves::<4>(room, text),
            8..=16 => halves::<8>(room, text),
            17..=32 => halves::<16>(room, text),
            _ => room.copy_from_slice(text),
        }
        self.len += len;
    }

    /// Appends bytes whose number is known at compile time.
    #[inline]
    pub(super) fn put_all<const N: usize>(&mut self, text: [u8; N]) {
        self.bytes[self.len..self.len + N].copy_from_slice(&text);
        self.len += N;
    }

    /// Appends the first `len` of some bytes; the caller ensures that all of them fit.
    #[inline]
    pub(super) fn put_some<const N: usize>(&mut self, text: [u8; N], len: usize) {
        self.bytes[self.len..self.len + N].copy_from_slice(&text);
        self.len += len;
    }

    /// Appends it to `out` and empties it.
    #[inline]
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let end = out.len() + self.len;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
        self.len = 0;
    }
}

/// Copies `N` to `2 * N` bytes.
#[inline]
fn halves<const N: usize>(out: &mut [u8], text: &[u8]) {
    if let (Some(out), Some(first)) = (out.first_chunk_mut::<N>(), text.first_chunk()) {
        *out = *first;
    }
    if let (Some(out), Some(last)) = (out.last_chunk_mut::<N>(), text.last_chunk()) {
        *out = *last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_stand_behind_each_other() {
        let text: Vec<u8> = (0..40).collect();
        for len in 0..=40 {
            let (mut line, mut out) = (Line::new(), b"x".to_vec());
            line.put(b"ab");
            line.put(&text[..len]);
            line.put_some(*b"cde", 2);
            line.put_all(*b"\r\n");
            line.flush(&mut out);
            assert_eq!(out, [b"xab", &text[..len], b"cd\r\n"].concat());
        }
    }
}
