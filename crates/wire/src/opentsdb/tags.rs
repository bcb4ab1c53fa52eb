//! The tags of a telnet line: `name=value`, separated by blanks.

use super::error::{PointError, quoted};

/// The pairs of `text`, in order; ends with an error at the first bad one.
pub fn tags(text: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), PointError>> {
    let words = text
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    words.map(|word| {
        let split = memchr::memchr(b'=', word).filter(|at| !word[at + 1..].contains(&b'='));
        match split {
            Some(at) if at > 0 && at + 1 < word.len() => Ok((&word[..at], &word[at + 1..])),
            _ => Err(PointError::Tag(quoted(word))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_between_any_number_of_blanks() {
        let found: Vec<_> = tags(b" host=a  dc=x ").collect();
        assert_eq!(
            found,
            [Ok((&b"host"[..], &b"a"[..])), Ok((&b"dc"[..], &b"x"[..]))]
        );
        for bad in ["host", "=a", "host=", "host=a=b", "="] {
            let found: Vec<_> = tags(bad.as_bytes()).collect();
            assert_eq!(found, [Err(PointError::Tag(bad.to_owned()))]);
        }
    }
}
