//! Glob patterns as Redis reads them: KEYS, SCAN MATCH, CONFIG GET, ACL rules,
//! PSUBSCRIBE.
//!
//! `*` any run of bytes, `?` one byte, `[abc]`, `[a-z]`, `[^a]` one byte of a
//! set, `\x` the byte x itself. A set without its closing bracket ends with
//! the pattern; a backslash at the end of the pattern is itself.
//!
//! A pattern is compiled once into a nondeterministic automaton with one state
//! for each element, and run on all states at once as bits of words (Shift-And:
//! Baeza-Yates and Gonnet, "A new approach to text searching", 1992). Matching
//! costs one step of a few words for each byte of the text, whatever the pattern;
//! [`PATTERN_BYTES_MAX`] bounds the words.
//!
//! Tested below, also against a matcher that tries every way.

use std::collections::HashMap;

/// Maximum length of a pattern.
pub(crate) const PATTERN_BYTES_MAX: usize = 1024;

/// One bit for each element, and one for having matched them all.
const WORDS_MAX: usize = PATTERN_BYTES_MAX / 64 + 1;

/// A pattern is longer than [`PATTERN_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern must be at most {PATTERN_BYTES_MAX} bytes")]
pub(crate) struct TooLong;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    /// For each byte, which of `rows` says what takes it.
    row_of: Box<[u8; 256]>,
    /// Rows of as many words as `stars` has. Bit i: element i takes the byte.
    rows: Vec<u64>,
    /// Bit i: a `*` stands before element i.
    stars: Vec<u64>,
    /// The number of elements, `*` aside.
    elements: usize,
}

/// What matches one byte: bit b stands for the byte b.
type Taken = [u64; 4];

fn add(taken: &mut Taken, byte: u8) {
    taken[usize::from(byte / 64)] |= 1 << (byte % 64);
}

fn has(taken: &Taken, byte: u8) -> bool {
    taken[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
}

impl Glob {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(crate) fn new(pattern: &[u8]) -> Result<Self, TooLong> {
        Self::compile(pattern, |byte| byte)
    }

    /// [`Glob::new`], ignoring ASCII case.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(crate) fn ignoring_case(pattern: &[u8]) -> Result<Self, TooLong> {
        Self::compile(pattern, |byte| byte.to_ascii_lowercase())
    }

    fn compile(pattern: &[u8], fold: impl Fn(u8) -> u8) -> Result<Self, TooLong> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(TooLong);
        }
        let (mut elements, mut stars) = (Vec::new(), vec![0; pattern.len() / 64 + 1]);
        let mut rest = pattern;
        while let Some(first) = rest.first() {
            if *first == b'*' {
                stars[elements.len() / 64] |= 1 << (elements.len() % 64);
                rest = &rest[1..];
            } else {
                elements.push(element(&mut rest, &fold));
            }
        }
        let words = elements.len() / 64 + 1;
        stars.truncate(words);
        let mut glob = Self {
            row_of: Box::new([0; 256]),
            rows: Vec::new(),
            stars,
            elements: elements.len(),
        };
        let mut known: HashMap<Vec<u64>, u8> = HashMap::new();
        for byte in 0..=u8::MAX {
            let mut row = vec![0; words];
            for (at, taken) in elements.iter().enumerate() {
                row[at / 64] |= u64::from(has(taken, fold(byte))) << (at % 64);
            }
            let next = u8::try_from(known.len()).expect("no more rows than bytes");
            glob.row_of[usize::from(byte)] = *known.entry(row).or_insert_with_key(|row| {
                glob.rows.extend_from_slice(row);
                next
            });
        }
        Ok(glob)
    }

    /// Whether `text` matches the pattern as a whole.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let words = self.stars.len();
        let (last, bit) = (self.elements / 64, 1 << (self.elements % 64));
        let ends_with_star = self.stars[last] & bit != 0;
        // Bit i: the text so far matches the elements before i.
        let mut state = [0; WORDS_MAX];
        state[0] = 1_u64;
        for byte in text {
            if ends_with_star && state[last] & bit != 0 {
                return true;
            }
            let row = usize::from(self.row_of[usize::from(*byte)]) * words;
            let (mut carry, mut alive) = (0, 0);
            let rows = self.rows[row..row + words].iter().zip(&self.stars);
            for (state, (row, stars)) in state.iter_mut().zip(rows) {
                let taken = *state & row;
                *state = taken << 1 | carry | *state & stars;
                carry = taken >> 63;
                alive |= *state;
            }
            if alive == 0 {
                return false;
            }
        }
        state[last] & bit != 0
    }

    /// The memory it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        size_of::<Self>() + 256 + (self.rows.len() + self.stars.len()) * 8
    }
}

/// Takes the first element, which is no `*`, off the pattern.
fn element(rest: &mut &[u8], fold: &impl Fn(u8) -> u8) -> Taken {
    let mut taken = [0; 4];
    let width = match *rest {
        [b'?', ..] => {
            taken = [u64::MAX; 4];
            1
        }
        [b'[', set_rest @ ..] => 1 + set(set_rest, &mut taken, fold),
        [b'\\', escaped, ..] => {
            add(&mut taken, fold(*escaped));
            2
        }
        [literal, ..] => {
            add(&mut taken, fold(*literal));
            1
        }
        [] => 0,
    };
    *rest = &rest[width..];
    taken
}

/// Adds the bytes of the set that `rest` begins with; its length after the
/// opening bracket.
fn set(rest: &[u8], taken: &mut Taken, fold: &impl Fn(u8) -> u8) -> usize {
    let negated = rest.first() == Some(&b'^');
    let mut at = usize::from(negated);
    loop {
        match &rest[at..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                add(taken, fold(*escaped));
                at += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (fold(*low.min(high)), fold(*high.max(low)));
                (low..=high).for_each(|byte| add(taken, byte));
                at += 3;
            }
            [literal, ..] => {
                add(taken, fold(*literal));
                at += 1;
            }
        }
    }
    if negated {
        taken.iter_mut().for_each(|word| *word = !*word);
    }
    at
}

#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz {
    use super::Glob;

    /// Whether `text` matches, and the bytes of the compiled pattern; `None` for a pattern that
    /// is too long.
    pub fn glob(pattern: &[u8], text: &[u8], ignores_case: bool) -> Option<(bool, usize)> {
        let glob = if ignores_case {
            Glob::ignoring_case(pattern)
        } else {
            Glob::new(pattern)
        };
        let glob = glob.ok()?;
        Some((glob.matches(text), glob.len_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &[u8], text: &[u8]) -> bool {
        Glob::new(pattern).unwrap().matches(text)
    }

    #[test]
    fn patterns_match_as_in_redis() {
        let cases: &[(&str, &str, bool)] = &[
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("a**c", "ac", true),
            ("*a*b*", "xaybz", true),
            ("*a*b*", "xbya", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
            ("[\\]]", "]", true),
            ("[abc", "b", true),
            ("[abc", "d", false),
            ("a\\", "a\\", true),
            ("ts:*:[0-9]", "ts:x:5", true),
            ("ts:*:[0-9]", "ts:x:y", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                *expected,
                "{pattern} on {text}"
            );
        }
    }

    #[test]
    fn case_counts_unless_told_otherwise() {
        assert!(!matches(b"Max*", b"maxclients"));
        let glob = Glob::ignoring_case(b"MAX[A-D]*").unwrap();
        assert!(glob.matches(b"maxclients") && glob.matches(b"MAXCLIENTS"));
    }

    /// Tries every way; only for short patterns.
    fn matches_slowly(mut pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|at| matches_slowly(rest, &text[at..])),
            _ => {
                let taken = element(&mut pattern, &|byte| byte);
                let first = text.split_first();
                first
                    .is_some_and(|(byte, text)| has(&taken, *byte) && matches_slowly(pattern, text))
            }
        }
    }

    /// Every word of at most `len` bytes of `alphabet`.
    fn words(alphabet: &[u8], len: usize) -> Vec<Vec<u8>> {
        let mut words = vec![Vec::new()];
        let mut longest = words.clone();
        for _ in 0..len {
            let append =
                |word: Vec<u8>| alphabet.iter().map(move |byte| [&*word, &[*byte]].concat());
            longest = longest.into_iter().flat_map(append).collect();
            words.extend_from_slice(&longest);
        }
        words
    }

    #[test]
    fn every_short_pattern_matches_what_trying_every_way_matches() {
        let texts = words(b"ab-]", 3);
        // A beginning that puts the elements across two words.
        for beginning in [b"".to_vec(), b"a".repeat(62)] {
            for pattern in words(b"ab*?[]^-\\", 4) {
                let glob = Glob::new(&[&*beginning, &pattern].concat()).unwrap();
                for text in &texts {
                    let (found, expected) = (
                        glob.matches(&[&*beginning, text].concat()),
                        matches_slowly(&pattern, text),
                    );
                    let (pattern, text) = (pattern.escape_ascii(), text.escape_ascii());
                    assert_eq!(found, expected, "{pattern} on {text}");
                }
            }
        }
    }

    #[test]
    fn a_pattern_that_explodes_elsewhere_costs_a_step_for_each_byte() {
        let text = b"b".repeat(64 * 1024);
        for pattern in [
            [b"*[".as_slice(), &b"b".repeat(PATTERN_BYTES_MAX - 2)].concat(),
            [b"*b".repeat(PATTERN_BYTES_MAX / 2 - 1), b"c".to_vec()].concat(),
        ] {
            let glob = Glob::new(&pattern).unwrap();
            // The matcher that this replaces takes minutes for these.
            (0..100).for_each(|_| assert!(!glob.matches(&text) || pattern.ends_with(b"b")));
        }
        assert_eq!(
            Glob::new(&[b'a'; PATTERN_BYTES_MAX + 1]).unwrap_err(),
            TooLong
        );
    }
}
