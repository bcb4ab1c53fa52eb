//! Writes replies in the protocol version of the connection.
//!
//! Types that RESP2 lacks are written in RESP2 as RedisTimeSeries does, so that
//! commands need no case for each version. Writing only appends to a `Vec<u8>` and
//! cannot fail.

#[cfg(test)]
mod tests;

use super::digits::{EIGHT_DIGITS, as_text, eight_digits};
use super::line::Line;
use super::{Protocol, double};
use memchr::memchr2_iter;

/// Writes timestamps, of which neighbours have the same first digits.
struct Stamp {
    /// All digits but the last eight, and their text.
    upper: u64,
    text: [u8; 16],
    len: usize,
}

impl Stamp {
    #[inline]
    fn new() -> Self {
        Self {
            upper: 0,
            text: [0; 16],
            len: 0,
        }
    }

    #[inline]
    fn put(&mut self, timestamp: i64, line: &mut Line<'_>) {
        let upper = timestamp.cast_unsigned() / EIGHT_DIGITS;
        if timestamp < EIGHT_DIGITS as i64 {
            line.put(itoa::Buffer::new().format(timestamp).as_bytes());
            return;
        }
        if upper != self.upper {
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(upper).as_bytes();
            self.text[..digits.len()].copy_from_slice(digits);
            (self.upper, self.len) = (upper, digits.len());
        }
        *line.room() = self.text;
        line.add(self.len);
        let rest = timestamp.cast_unsigned() % EIGHT_DIGITS;
        line.put_all(as_text(eight_digits(rest)).to_le_bytes());
    }
}

/// Appends replies to a buffer.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    /// Replies go to the end of `out`, in `protocol`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// The protocol version replies are written in.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Bytes written so far to the buffer, by this and earlier writers.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.out.len()
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A simple string. Line breaks in it become blanks.
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'+', text.as_ref());
    }

    /// An error; `text` begins with its code (`ERR ...`). Line breaks in it become blanks.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'-', text.as_ref());
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// How many of something there are.
    pub fn count(&mut self, number: impl TryInto<i64>) {
        self.integer(number.try_into().unwrap_or(i64::MAX));
    }

    /// The key of a map; its value must follow.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.bulk(name);
        self
    }

    /// An array of bulk strings.
    pub fn bulks<T: AsRef<[u8]>>(&mut self, texts: impl ExactSizeIterator<Item = T>) {
        self.array(texts.len());
        texts.for_each(|text| self.bulk(text));
    }

    /// A bulk string: any bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.header(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Null: the null bulk string in RESP2.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// A null array, the reply of EXEC after a broken WATCH: the null array in RESP2.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The header of an array; `len` replies must follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// The header of a map; `pairs` times a key and a value must follow. RESP2: a flat array.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', pairs.saturating_mul(2)),
            Protocol::Resp3 => self.header(b'%', pairs),
        }
    }

    /// The header of a set; `len` replies must follow. RESP2: an array.
    pub fn set(&mut self, len: usize) {
        self.typed_array(b'~', len);
    }

    /// The header of an out-of-band message; `len` replies must follow. RESP2: an array.
    pub fn push(&mut self, len: usize) {
        self.typed_array(b'>', len);
    }

    /// A sample value. RESP2: a simple string, see [`double::append_resp2`].
    #[inline]
    pub fn double(&mut self, value: f64) {
        match self.protocol {
            Protocol::Resp2 => {
                self.out.push(b'+');
                double::append_resp2(self.out, value);
            }
            Protocol::Resp3 => {
                self.out.push(b',');
                double::append_resp3(self.out, value);
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// A sample: an array of its timestamp and value.
    #[inline]
    pub fn sample(&mut self, timestamp: i64, value: f64) {
        self.samples(&[timestamp], &[value]);
    }

    /// Samples, as arrays one after another.
    pub fn samples(&mut self, timestamps: &[i64], values: &[f64]) {
        let (mut stamp, mut digits) = (Stamp::new(), double::Digits::new());
        for (&timestamp, &value) in timestamps.iter().zip(values) {
            if self.protocol == Protocol::Resp2 {
                // At most 5, 24, 3, 24 and 2 bytes, and those that were in the room for them.
                let start = self.out.len();
                let mut line = Line::new(self.out);
                line.put_all(*b"*2\r\n:");
                stamp.put(timestamp, &mut line);
                line.put_all(*b"\r\n+");
                if let Some(len) = double::few_resp2(value, line.room()) {
                    line.add(len);
                } else if let Some(text) = double::plain_resp2(value, &mut digits) {
                    line.put(text);
                } else {
                    line.end();
                    self.out.truncate(start);
                    self.pair(timestamp, value);
                    continue;
                }
                line.put_all(*b"\r\n");
                line.end();
            } else {
                self.pair(timestamp, value);
            }
        }
    }

    fn pair(&mut self, timestamp: i64, value: f64) {
        self.array(2);
        self.integer(timestamp);
        self.double(value);
    }

    /// True or false. RESP2: 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// A text for humans, as in INFO. `format` is `txt` or `mkd`. RESP2: a bulk string.
    pub fn verbatim(&mut self, format: [u8; 3], text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text);
        }
        self.header(b'=', text.len().saturating_add(4));
        self.out.extend_from_slice(&format);
        self.out.push(b':');
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Appends replies already encoded in the same protocol version.
    pub fn encoded(&mut self, replies: &[u8]) {
        self.out.extend_from_slice(replies);
    }

    fn typed_array(&mut self, resp3_type: u8, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', len),
            Protocol::Resp3 => self.header(resp3_type, len),
        }
    }

    #[inline]
    fn header(&mut self, kind: u8, len: usize) {
        if len < 10 {
            let line = [kind, b'0' + len as u8, b'\r', b'\n'];
            self.out.extend_from_slice(&line);
        } else {
            self.number(kind, len as i64);
        }
    }

    #[inline]
    fn number(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        self.out
            .extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        let start = self.out.len();
        self.out.extend_from_slice(text);
        for at in memchr2_iter(b'\r', b'\n', text) {
            self.out[start + at] = b' ';
        }
        self.out.extend_from_slice(b"\r\n");
    }
}
