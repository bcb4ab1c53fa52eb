//! A short piece of a reply, written where it ends up.
//!
//! Rows of samples are many and short. Appending each word to a buffer that may have to grow costs more
//! than the words; here room for the longest row is made once, and what is left of it is cut. Copies have
//! lengths known at compile time, since a call to copy a dozen bytes costs more than copying them, and
//! nothing is read that was just written: the processor would wait for it.

/// Room for a line.
const ROOM_BYTES: usize = 64;

/// A few dozen bytes at the end of a buffer.
pub(super) struct Line<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    len: usize,
}

impl<'a> Line<'a> {
    #[inline]
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.resize(start + ROOM_BYTES, 0);
        Self { out, start, len: 0 }
    }

    /// Room for the next bytes; [`Line::add`] says how many of them are meant.
    #[inline]
    pub(super) fn room<const N: usize>(&mut self) -> &mut [u8; N] {
        let room = self.out[self.start + self.len..].first_chunk_mut();
        room.expect("the caller ensures that it fits")
    }

    #[inline]
    pub(super) fn add(&mut self, len: usize) {
        self.len += len;
    }

    /// Appends a short text; the caller ensures that it fits.
    #[inline]
    pub(super) fn put(&mut self, text: &[u8]) {
        let (begin, len) = (self.start + self.len, text.len());
        let room = &mut self.out[begin..begin + len];
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
        *self.room() = text;
        self.len += N;
    }

    /// Cuts what is left of the room.
    #[inline]
    pub(super) fn end(self) {
        self.out.truncate(self.start + self.len);
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
            let mut out = b"x".to_vec();
            let mut line = Line::new(&mut out);
            line.put(b"ab");
            line.put(&text[..len]);
            *line.room() = *b"cde";
            line.add(2);
            line.put_all(*b"\r\n");
            line.end();
            assert_eq!(out, [b"xab", &text[..len], b"cd\r\n"].concat());
        }
    }
}
