//! Texts in quotes, as Go's `strconv.Quote` writes them and as the language reads them.

use regex::Regex;
use std::fmt::Write;
use std::sync::LazyLock;

/// What Go prints as it is: letters, marks, numbers, punctuation, symbols and the space.
static PRINTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$").expect("the pattern is constant and valid")
});
static LETTER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\p{L}$").expect("the pattern is constant and valid"));

fn is_one_of(pattern: &Regex, letter: char) -> bool {
    pattern.is_match(letter.encode_utf8(&mut [0; 4]))
}

fn is_printed(letter: char) -> bool {
    if letter.is_ascii() {
        (' '..='~').contains(&letter)
    } else {
        is_one_of(&PRINTED, letter)
    }
}

/// Whether Unicode calls it a letter.
pub(crate) fn is_letter(letter: char) -> bool {
    if letter.is_ascii() {
        letter.is_ascii_alphabetic()
    } else {
        is_one_of(&LETTER, letter)
    }
}

/// In double quotes, as Go writes texts.
pub fn quoted(text: impl AsRef<[u8]>) -> String {
    let mut out = String::from('"');
    for chunk in text.as_ref().utf8_chunks() {
        for letter in chunk.valid().chars() {
            push(&mut out, letter, '"');
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

/// A character in single quotes; `None` is the end of the text.
pub(crate) fn quoted_char(letter: Option<char>) -> String {
    let mut out = String::from('\'');
    push(&mut out, letter.unwrap_or('\u{fffd}'), '\'');
    out.push('\'');
    out
}

/// A character with its number: `U+0041 'A'`.
pub(crate) fn numbered_char(letter: char) -> String {
    let number = format!("U+{:04X}", u32::from(letter));
    if is_printed(letter) {
        format!("{number} '{letter}'")
    } else {
        number
    }
}

fn push(out: &mut String, letter: char, quote: char) {
    match letter {
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        '\\' => out.push_str("\\\\"),
        letter if letter == quote => {
            out.push('\\');
            out.push(letter);
        }
        letter if is_printed(letter) => out.push(letter),
        letter => {
            let number = u32::from(letter);
            let written = match number {
                0..=0x7f => write!(out, "\\x{number:02x}"),
                0x80..=0xffff => write!(out, "\\u{number:04x}"),
                _ => write!(out, "\\U{number:08x}"),
            };
            written.expect("writing into a string does not fail");
        }
    }
}

/// The text of a string that the lexer accepted, quotes included.
pub(crate) fn unquoted(text: &str) -> Vec<u8> {
    let inner = &text.as_bytes()[1..text.len() - 1];
    if text.starts_with('`') {
        return inner.to_vec();
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = behind;
            continue;
        }
        let length = escape(behind, &mut out);
        rest = &behind[length..];
    }
    out
}

/// Appends what the escape behind a backslash means; returns its length.
fn escape(text: &[u8], out: &mut Vec<u8>) -> usize {
    let number = |from: usize, digits: usize, radix: u32| {
        text[from..from + digits].iter().fold(0, |number, digit| {
            number * radix + char::from(*digit).to_digit(radix).unwrap_or(0)
        })
    };
    let (character, length) = match text[0] {
        // The lexer made sure that it fits into a byte.
        b'x' => {
            out.push(number(1, 2, 16) as u8);
            return 3;
        }
        b'0'..=b'7' => {
            out.push(number(0, 3, 8) as u8);
            return 3;
        }
        b'u' => (number(1, 4, 16), 5),
        b'U' => (number(1, 8, 16), 9),
        b'a' => (7, 1),
        b'b' => (8, 1),
        b'f' => (12, 1),
        b'n' => (10, 1),
        b'r' => (13, 1),
        b't' => (9, 1),
        b'v' => (11, 1),
        other => (u32::from(other), 1),
    };
    let character = char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_those_of_go() {
        for (text, wanted) in [
            ("a\"b'", r#""a\"b'""#),
            ("\u{7}\n\\\u{1}", r#""\a\n\\\x01""#),
            (
                "温 \u{a0}\u{1f600}\u{e000}",
                "\"温 \\u00a0\u{1f600}\\ue000\"",
            ),
        ] {
            assert_eq!(quoted(text), wanted);
            assert_eq!(unquoted(wanted), text.as_bytes());
        }
        assert_eq!(quoted(b"a\xffb"), r#""a\xffb""#);
        assert_eq!(
            unquoted(r#""\377\x41\u00e9\U0001f600""#),
            "\u{0}A\u{e9}\u{1f600}"
                .bytes()
                .enumerate()
                .map(|(at, b)| if at == 0 { 0xff } else { b })
                .collect::<Vec<_>>()
        );
        assert_eq!(quoted_char(None), "'\u{fffd}'");
        assert_eq!(quoted_char(Some('\'')), r"'\''");
        assert_eq!(numbered_char('z'), "U+007A 'z'");
    }
}
