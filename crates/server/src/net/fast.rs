//! Reads the commonest commands straight off the wire: TS.ADD without options,
//! with ON_DUPLICATE or with LABELS, and TS.MADD, in the array form.
//!
//! Nothing is copied or allocated; words stay in the read buffer. Whatever is
//! unusual (other commands, long words, missing bytes, bad numbers of words)
//! is `None`, and the general parser decides. So this is never stricter or
//! laxer than that parser: it only takes what that would take.

use latewood_model::{DuplicatePolicy, Labels};

/// Pairs of LABELS that are taken here; more are rare.
const PAIRS_MAX: usize = 16;
/// Words that the general parser takes for an option wherever they stand.
const OPTIONS: [&[u8]; 9] = [
    b"LABELS",
    b"IGNORE",
    b"ENCODING",
    b"RETENTION",
    b"CHUNK_SIZE",
    b"COMPRESSED",
    b"UNCOMPRESSED",
    b"ON_DUPLICATE",
    b"DUPLICATE_POLICY",
];

/// A command that was read, with words that stay where they are.
#[derive(Debug, PartialEq)]
pub(super) enum Fast<'a> {
    /// `TS.ADD key timestamp value [ON_DUPLICATE policy | LABELS name value...]`.
    Add {
        key: &'a [u8],
        /// The timestamp's text.
        timestamp: &'a [u8],
        /// The value's text.
        value: &'a [u8],
        /// The policy of ON_DUPLICATE.
        on_duplicate: Option<DuplicatePolicy>,
        /// The encoded words of LABELS, for [`labels`], where there are some.
        labels: Option<&'a [u8]>,
    },
    /// `TS.MADD` and the number of triples that follow.
    Madd(usize),
}

/// A reader at some place of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    /// A reader at the start of `buffer`.
    #[inline]
    pub(super) fn new(buffer: &'a [u8]) -> Self {
        Self { rest: buffer }
    }

    /// Bytes that are still to be read.
    #[inline]
    pub(super) fn len_bytes(&self) -> usize {
        self.rest.len()
    }

    /// Reads `TS.ADD` with its words, or the head of `TS.MADD`.
    #[inline]
    pub(super) fn command(&mut self) -> Option<Fast<'a>> {
        let words = self.array_header()?;
        let name = self.word()?;
        if name.len() == 6 && name.eq_ignore_ascii_case(b"TS.ADD") {
            return self.add(words);
        }
        let samples = (words - 1) / 3;
        let is_whole = words > 1 && (words - 1).is_multiple_of(3);
        (is_whole && name.eq_ignore_ascii_case(b"TS.MADD")).then_some(Fast::Madd(samples))
    }

    #[inline]
    fn add(&mut self, words: usize) -> Option<Fast<'a>> {
        if words < 4 {
            return None;
        }
        let (key, timestamp, value) = self.sample()?;
        let (mut on_duplicate, mut labels) = (None, None);
        if words > 4 {
            let option = self.word()?;
            if words == 6 && option.eq_ignore_ascii_case(b"ON_DUPLICATE") {
                on_duplicate = Some(DuplicatePolicy::of_name(self.word()?)?);
            } else if words % 2 == 1 && option.eq_ignore_ascii_case(b"LABELS") {
                labels = Some(self.pairs((words - 5) / 2)?);
            } else {
                return None;
            }
        }
        Some(Fast::Add {
            key,
            timestamp,
            value,
            on_duplicate,
            labels,
        })
    }

    /// Reads `pairs` names and values of labels; their encoded words. Those
    /// that might be refused, or taken for options, are left to the parser.
    #[inline]
    fn pairs(&mut self, pairs: usize) -> Option<&'a [u8]> {
        let start = self.rest;
        if pairs == 0 || pairs > PAIRS_MAX {
            return None;
        }
        for _ in 0..pairs {
            let (name, value) = (self.word()?, self.word()?);
            let is_plain = |word: &[u8]| !word.is_empty() && !is_option(word);
            let is_reserved = |byte: &u8| matches!(byte, b'(' | b')' | b',');
            if !is_plain(name) || !is_plain(value) || value.iter().any(is_reserved) {
                return None;
            }
        }
        Some(&start[..start.len() - self.rest.len()])
    }

    /// Reads a key, the text of a timestamp and the text of a value.
    #[inline]
    pub(super) fn sample(&mut self) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
        Some((self.word()?, self.word()?, self.word()?))
    }

    /// `*<number>\r\n`, a number of one to six digits that is not 0.
    #[inline]
    fn array_header(&mut self) -> Option<usize> {
        if let [b'*', digit @ b'1'..=b'9', b'\r', b'\n', rest @ ..] = self.rest {
            self.rest = rest;
            return Some(usize::from(digit - b'0'));
        }
        let digits = self.rest.strip_prefix(b"*")?;
        let len = digits.iter().take(7).position(|byte| *byte == b'\r')?;
        if digits.first() == Some(&b'0') || digits.get(len + 1) != Some(&b'\n') {
            return None;
        }
        let number = digits[..len].iter().try_fold(0, decimal)?;
        self.rest = &digits[len + 2..];
        (number > 0).then_some(number)
    }

    /// `$<length>\r\n<bytes>\r\n`, a length of one to three digits.
    #[inline]
    fn word(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = match self.rest {
            [b'$', a @ b'0'..=b'9', b'\r', b'\n', rest @ ..] => (usize::from(a - b'0'), rest),
            [
                b'$',
                a @ b'1'..=b'9',
                b @ b'0'..=b'9',
                b'\r',
                b'\n',
                rest @ ..,
            ] => (usize::from(a - b'0') * 10 + usize::from(b - b'0'), rest),
            [
                b'$',
                a @ b'1'..=b'9',
                b @ b'0'..=b'9',
                c @ b'0'..=b'9',
                b'\r',
                b'\n',
                rest @ ..,
            ] => ([a, b, c].into_iter().try_fold(0, decimal)?, rest),
            _ => return None,
        };
        let (word, rest) = rest.split_at_checked(len)?;
        self.rest = rest.strip_prefix(b"\r\n")?;
        Some(word)
    }
}

/// The labels of words that [`Words::command`] took.
pub(super) fn labels(encoded: &[u8]) -> Labels {
    let mut words = Words::new(encoded);
    let pairs = std::iter::from_fn(|| Some((words.word()?, words.word()?)));
    // Words that are none were not taken, and so few are within the limits.
    Labels::new(pairs).unwrap_or_default()
}

#[inline]
fn is_option(word: &[u8]) -> bool {
    OPTIONS
        .iter()
        .any(|option| option.eq_ignore_ascii_case(word))
}

#[inline]
fn decimal(number: usize, digit: &u8) -> Option<usize> {
    digit
        .is_ascii_digit()
        .then(|| number * 10 + usize::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_wire::resp::encode_command;

    fn encoded(words: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words);
        bytes
    }

    #[test]
    fn plain_commands_are_read_with_their_words_in_place() {
        let bytes = encoded(&["ts.Add", "k", "12", "1.5", "on_duplicate", "MAX"]);
        let mut words = Words::new(&bytes);
        let expected = Fast::Add {
            key: b"k",
            timestamp: b"12",
            value: b"1.5",
            on_duplicate: Some(DuplicatePolicy::Max),
            labels: None,
        };
        assert_eq!(words.command(), Some(expected));
        assert_eq!(words.len_bytes(), 0);

        let triples = ["k", "1", "2"].repeat(40);
        let madd = [vec!["TS.MADD"], triples].concat();
        let bytes = encoded(&madd);
        let mut words = Words::new(&bytes);
        assert_eq!(words.command(), Some(Fast::Madd(40)));
        assert_eq!(words.sample(), Some((&b"k"[..], &b"1"[..], &b"2"[..])));
    }

    #[test]
    fn labels_are_read_when_they_are_asked_for() {
        let bytes = encoded(&[
            "TS.ADD", "k", "1", "2", "labels", "x", "1", "y", "(", "z", "3",
        ]);
        assert_eq!(Words::new(&bytes).command(), None);
        let bytes = encoded(&[
            "TS.ADD", "k", "1", "2", "labels", "x", "1", "(", "two", "x", "3",
        ]);
        let mut words = Words::new(&bytes);
        let Some(Fast::Add {
            labels: Some(encoded),
            ..
        }) = words.command()
        else {
            panic!("not taken");
        };
        assert_eq!(words.len_bytes(), 0);
        let expected = [(&b"x"[..], &b"1"[..]), (b"(", b"two"), (b"x", b"3")];
        assert_eq!(Some(labels(encoded)), Labels::new(expected).ok());
    }

    #[test]
    fn what_is_unusual_is_left_to_the_parser() {
        for words in [
            &["TS.GET", "k"][..],
            &["TS.ADD", "k", "1"],
            &["TS.ADD", "k", "1", "2", "LABELS", "a"],
            &["TS.ADD", "k", "1", "2", "LABELS", "a", ""],
            &["TS.ADD", "k", "1", "2", "LABELS", "a", "x,y"],
            &[
                "TS.ADD",
                "k",
                "1",
                "2",
                "LABELS",
                "a",
                "b",
                "retention",
                "5",
            ],
            &["TS.ADD", "k", "1", "2", "LABELS", "On_Duplicate", "max"],
            &["TS.ADD", "k", "1", "2", "ON_DUPLICATE", "newest"],
            &["TS.MADD", "k", "1"],
            &["TS.MADD"],
            &["TS.ADD", &"k".repeat(1000), "1", "2"],
        ] {
            assert_eq!(Words::new(&encoded(words)).command(), None, "{words:?}");
        }
    }

    #[test]
    fn no_prefix_is_taken_for_a_command() {
        let bytes = encoded(&["TS.ADD", "key", "1000", "1.5"]);
        for end in 0..bytes.len() {
            assert_eq!(Words::new(&bytes[..end]).command(), None, "{end} bytes");
        }
    }
}
