//! Glob patterns: the compiled matcher agrees with one that fills a table, and its memory is
//! bounded by the length of the pattern.
#![cfg_attr(fuzzing, no_main)]

use latewood_server::fuzz::glob;
use libfuzzer_sys::fuzz_target;

enum Element {
    Star,
    Byte(u8),
    Any,
    Set {
        negated: bool,
        ranges: Vec<(u8, u8)>,
    },
}

/// The elements of a pattern, read as Redis' `stringmatchlen` reads them.
fn elements(pattern: &[u8]) -> Vec<Element> {
    let (mut elements, mut at) = (Vec::new(), 0);
    while at < pattern.len() {
        let rest = &pattern[at..];
        at += 1;
        elements.push(match rest {
            [b'*', ..] => Element::Star,
            [b'?', ..] => Element::Any,
            [b'\\', escaped, ..] => {
                at += 1;
                Element::Byte(*escaped)
            }
            [b'[', ..] => {
                let negated = rest.get(1) == Some(&b'^');
                at += usize::from(negated);
                let mut ranges = Vec::new();
                while at < pattern.len() {
                    if pattern[at] == b'\\' && at + 1 < pattern.len() {
                        ranges.push((pattern[at + 1], pattern[at + 1]));
                        at += 2;
                    } else if pattern[at] == b']' {
                        at += 1;
                        break;
                    } else if at + 2 < pattern.len() && pattern[at + 1] == b'-' {
                        let (one, other) = (pattern[at], pattern[at + 2]);
                        ranges.push((one.min(other), one.max(other)));
                        at += 3;
                    } else {
                        ranges.push((pattern[at], pattern[at]));
                        at += 1;
                    }
                }
                Element::Set { negated, ranges }
            }
            _ => Element::Byte(rest[0]),
        });
    }
    elements
}

impl Element {
    fn takes(&self, byte: u8, fold: fn(u8) -> u8) -> bool {
        let byte = fold(byte);
        match self {
            Self::Star => false,
            Self::Byte(own) => fold(*own) == byte,
            Self::Any => true,
            Self::Set { negated, ranges } => {
                let is_in = |(low, high): &(u8, u8)| (fold(*low)..=fold(*high)).contains(&byte);
                ranges.iter().any(is_in) != *negated
            }
        }
    }
}

/// Whether `text` matches: one row of the table for each byte.
fn matches(elements: &[Element], text: &[u8], fold: fn(u8) -> u8) -> bool {
    // Whether the text so far matches so many elements.
    let mut row = vec![false; elements.len() + 1];
    row[0] = true;
    let pass_stars = |row: &mut [bool]| {
        for (at, element) in elements.iter().enumerate() {
            row[at + 1] |= row[at] && matches!(element, Element::Star);
        }
    };
    pass_stars(&mut row);
    for byte in text {
        let mut next = vec![false; row.len()];
        for (at, element) in elements.iter().enumerate() {
            match element {
                Element::Star => next[at + 1] |= row[at + 1],
                element => next[at + 1] |= row[at] && element.takes(*byte, fold),
            }
        }
        pass_stars(&mut next);
        row = next;
    }
    row[elements.len()]
}

fuzz_target!(|bytes: &[u8]| {
    let [flags, rest @ ..] = bytes else {
        return;
    };
    let (ignores_case, times) = (flags & 1 == 1, usize::from(flags >> 1 & 15));
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let (pattern, text) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let text = text.repeat(times);
    let Some((found, len_bytes)) = glob(pattern, &text, ignores_case) else {
        assert!(pattern.len() > 1024);
        return;
    };
    assert!(
        len_bytes <= 512 + 257 * (pattern.len() / 64 + 1) * 8,
        "{len_bytes}"
    );
    let fold: fn(u8) -> u8 = if ignores_case {
|byte| byte.to_ascii_lowercase()
} else {
|byte| byte
};
    assert_eq!(found, matches(&elements(pattern), &text, fold));
});
