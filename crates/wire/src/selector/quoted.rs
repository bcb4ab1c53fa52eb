//! Quoted strings with the escapes of Go.

use super::SelectorError;

/// Parses the string whose opening quote is at `at`, and moves past it.
pub(super) fn unquote(text: &[u8], at: &mut usize) -> Result<Vec<u8>, SelectorError> {
    let start = *at;
    let quote = text[start];
    let mut out = Vec::new();
    let mut next = start + 1;
    loop {
        let Some(&byte) = text.get(next) else {
            return Err(SelectorError::NoEnd(start));
        };
        next += 1;
        if byte == quote {
            *at = next;
            return Ok(out);
        }
        // A backtick string has no escapes.
        if byte != b'\\' || quote == b'`' {
            out.push(byte);
            continue;
        }
        let bad = SelectorError::BadEscape(next - 1);
        let Some(&escaped) = text.get(next) else {
            return Err(SelectorError::NoEnd(start));
        };
        next += escape(&text[next..], escaped, quote, &mut out).ok_or(bad)?;
    }
}

/// Appends the meaning of an escape; returns its length.
fn escape(text: &[u8], escaped: u8, quote: u8, out: &mut Vec<u8>) -> Option<usize> {
    let one = match escaped {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' => b'\\',
        byte if byte == quote => quote,
        b'x' => {
            out.push(u8::try_from(number(text, 1, 2, 16)?).ok()?);
            return Some(3);
        }
        b'0'..=b'7' => {
            out.push(u8::try_from(number(text, 0, 3, 8)?).ok()?);
            return Some(3);
        }
        b'u' => return character(text, 4, out),
        b'U' => return character(text, 8, out),
        _ => return None,
    };
    out.push(one);
    Some(1)
}

fn character(text: &[u8], digits: usize, out: &mut Vec<u8>) -> Option<usize> {
    let letter = char::from_u32(number(text, 1, digits, 16)?)?;
    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    Some(1 + digits)
}

/// The number of `digits` digits at `from`.
fn number(text: &[u8], from: usize, digits: usize, radix: u32) -> Option<u32> {
    let digits = text.get(from..from + digits)?;
    digits.iter().try_fold(0, |number: u32, &digit| {
        let digit = char::from(digit).to_digit(radix)?;
        number.checked_mul(radix)?.checked_add(digit)
    })
}
