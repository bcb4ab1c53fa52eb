//! Label filters: parses one condition of FILTER into a [`Matcher`].
//!
//! ```text
//! l=v      l=(v1,v2)     l=      has no label l
//! l!=v     l!=(v1,v2)    l!=     has a label l
//! ```
//!
//! The text is split as RedisTimeSeries splits it, so that every filter has the
//! same meaning. The separators depend on the whole text: `!` and `=` if it
//! contains `!=`, else `=`; and `(` as well if one follows. Runs of separators
//! count as one. The first piece is the name, the second the value, the others
//! are ignored: `a=b=c` is `a=b`, and `=b` is `b=`. There are no escapes or
//! quotes.

use latewood_model::{Matcher, Test};

/// Parses one filter; `None` if it is invalid. Linear in its bytes.
///
/// ```
/// use latewood_model::Test;
/// let matcher = latewood_wire::filter::parse(b"region!=(eu,us)").unwrap();
/// assert_eq!(&*matcher.name, b"region");
/// assert_eq!(matcher.test, Test::NoneOf(vec![(*b"eu").into(), (*b"us").into()]));
/// ```
pub fn parse(text: &[u8]) -> Option<Matcher> {
    let negative = memchr::memmem::find(text, b"!=").is_some();
    let list_mark: &[u8] = if negative { b"!=(" } else { b"=(" };
    let list = memchr::memmem::find(text, list_mark).is_some();
    if !negative && !text.contains(&b'=') {
        return None;
    }
    let cuts = |byte: &u8| match byte {
        b'=' => true,
        b'!' => negative,
        b'(' => list,
        _ => false,
    };
    let mut pieces = text.split(cuts).filter(|piece| !piece.is_empty());
    let name = pieces.next()?;
    let values = match pieces.next() {
        None if list => return None,
        None if negative => return Some(Matcher::new(name, Test::Present)),
        None => return Some(Matcher::new(name, Test::Absent)),
        Some(values) if list => items(values)?,
        Some(value) => vec![value.into()],
    };
    let test = if negative {
        Test::NoneOf(values)
    } else {
        Test::AnyOf(values)
    };
    Some(Matcher::new(name, test))
}

/// The values of `v1,v2)`: an empty list, or no value is empty.
fn items(text: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let text = text.strip_suffix(b")")?;
    if text.is_empty() {
        return Some(Vec::new());
    }
    let items = text.split(|byte| *byte == b',');
    items
        .map(|item| (!item.is_empty()).then(|| item.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The meaning of a filter in its plainest spelling, or `error`.
    fn read(text: &str) -> String {
        let Some(matcher) = parse(text.as_bytes()) else {
            return "error".to_owned();
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let list = |values: &[Box<[u8]>]| {
            let values: Vec<String> = values.iter().map(|value| text(value)).collect();
            values.join(",")
        };
        let name = text(&matcher.name);
        match &matcher.test {
            Test::AnyOf(values) => format!("{name}=({})", list(values)),
            Test::NoneOf(values) => format!("{name}!=({})", list(values)),
            Test::Absent => format!("{name}="),
            Test::Present => format!("{name}!="),
        }
    }

    fn expect(cases: &[(&str, &str)]) {
        for (text, meaning) in cases {
            assert_eq!(read(text), *meaning, "{text}");
        }
    }

    // Checked against RedisTimeSeries 1.12.

    #[test]
    fn the_six_forms() {
        expect(&[
            ("a=b", "a=(b)"),
            ("a!=b", "a!=(b)"),
            ("a=", "a="),
            ("a!=", "a!="),
            ("a=(b,c)", "a=(b,c)"),
            ("a!=(b,c)", "a!=(b,c)"),
            ("a=()", "a=()"),
            ("a!=()", "a!=()"),
            ("a b=c d", "a b=(c d)"),
            ("a=\"b\"", "a=(\"b\")"),
            ("a=(b, c )", "a=(b, c )"),
            ("a=(1\\,2\\)", "a=(1\\,2\\)"),
        ]);
    }

    #[test]
    fn pieces_past_the_second_are_passed_over() {
        expect(&[
            ("a=b=c", "a=(b)"),
            ("a==b", "a=(b)"),
            ("a==", "a="),
            ("=b", "b="),
            ("!=b", "b!="),
            ("!a=q", "!a=(q)"),
            ("a=!b", "a=(!b)"),
            ("a!!=b", "a!=(b)"),
            ("a=!=b", "a!=(b)"),
            ("a=b!=c", "a!=(b)"),
            ("a!=!=", "a!="),
            ("a=(=b)", "a=(b)"),
            ("a=((b)", "a=(b)"),
            ("a=(b)(c)", "a=(b)"),
            ("a=(b)=c", "a=(b)"),
            ("a=(b))", "a=(b))"),
            ("a=(b!=c)", "a!=((b)"),
            ("a!=1=(2)", "a!=(1)"),
            ("(a=(b)", "a=(b)"),
            ("=(a=(b)", "a=(b)"),
        ]);
    }

    #[test]
    fn values_without_a_list_keep_their_marks() {
        expect(&[
            ("a=b)", "a=(b))"),
            ("a=b,c", "a=(b,c)"),
            ("a=b(c)", "a=(b(c))"),
            ("a(b=y", "a(b=(y)"),
            ("a= (b)", "a=( (b))"),
        ]);
    }

    #[test]
    fn what_is_no_filter() {
        for text in [
            "",
            " ",
            "a",
            "a!",
            "!",
            "=",
            "!=",
            "(",
            "a=(",
            "a=(b",
            "a!=(",
            "a!=(b",
            "a=(b)x",
            "a=(b),(c)",
            "a=(b,,c)",
            "a=(,b)",
            "a=(b,)",
            "a=(,)",
            "a=(b=c)",
            "a!=(b!=c)",
            "=(b)",
            "!=(b)",
            "a=b!=(c)",
            "a=(1\\,)",
        ] {
            assert_eq!(read(text), "error", "{text}");
        }
    }
}
