//! Glob patterns as Redis reads them: KEYS, SCAN MATCH, CONFIG GET.
//!
//! `*` any run of bytes, `?` one byte, `[abc]`, `[a-z]`, `[^a]` one byte of a
//! set, `\x` the byte x itself. A set without its closing bracket ends with
//! the pattern; a backslash at the end of the pattern is itself.
//!
//! Matching goes back only to the last `*`, so the time is at most the product
//! of both lengths, whatever a client sends.

/// Whether `text` matches `pattern` as a whole.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    run(pattern, text, false)
}

/// [`matches()`], ignoring ASCII case.
pub(crate) fn matches_ignoring_case(pattern: &[u8], text: &[u8]) -> bool {
    run(pattern, text, true)
}

fn run(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when the bytes after the last `*` do not match: the
    // pattern after it, and one more byte of text given to it.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            p += 1;
            retry = Some((p, t));
            continue;
        }
        if t == text.len() && p == pattern.len() {
            return true;
        }
        if t < text.len()
            && p < pattern.len()
            && let Some(width) = one(&pattern[p..], text[t], ignore_case)
        {
            p += width;
            t += 1;
            continue;
        }
        match retry {
            Some((after, from)) if from < text.len() => {
                retry = Some((after, from + 1));
                (p, t) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

/// The length of the pattern's first element if it matches `byte`.
fn one(pattern: &[u8], byte: u8, ignore_case: bool) -> Option<usize> {
    let fold = |b: u8| {
        if ignore_case {
            b.to_ascii_lowercase()
        } else {
            b
        }
    };
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => {
            let (found, width) = set(rest, fold(byte), fold);
            found.then_some(1 + width)
        }
        [b'\\', escaped, ..] => (fold(*escaped) == fold(byte)).then_some(2),
        [literal, ..] => (fold(*literal) == fold(byte)).then_some(1),
        [] => None,
    }
}

/// Whether `byte` is in the set that `rest` begins with, and the set's length
/// after its opening bracket.
fn set(rest: &[u8], byte: u8, fold: impl Fn(u8) -> u8) -> (bool, usize) {
    let negated = rest.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match &rest[at..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                found |= fold(*escaped) == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (fold(*low.min(high)), fold(*high.max(low)));
                found |= (low..=high).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= fold(*literal) == byte;
                at += 1;
            }
        }
    }
    (found != negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(matches_ignoring_case(b"MAX[A-D]*", b"maxclients"));
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = [b"a*".repeat(50), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &b"a".repeat(5000)));
    }
}
