//! Series as unit tests write them: `up{job="a"}` and `0+10x5 _ stale`.

use latewood_promql::labels::Labels;
use latewood_promql::parse_selector;
use latewood_promql::source::STALE_BITS;
use latewood_wire::selector::Test;

/// Values of one series, and of all of a test.
pub(crate) const VALUES_MAX: usize = 10_000_000;

/// The labels of `metric{a="b"}`.
///
/// # Errors
/// Where it is something else.
pub(crate) fn labels(text: &str) -> Result<Labels, String> {
    if text
        .chars()
        .all(|letter| letter.is_whitespace() || matches!(letter, '{' | '}'))
    {
        return Ok(Labels::default());
    }
    let matchers = parse_selector(text).map_err(|error| error.to_string())?;
    let mut pairs = Vec::new();
    for matcher in &matchers {
        let Test::Equal(value) = &matcher.test else {
            return Err(format!("{text} has a condition that is not ="));
        };
        let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        pairs.push((part(&matcher.name), part(value)));
    }
    let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
    Ok(Labels::from_pairs(pairs))
}

/// Values in their order; `None` where there is no sample.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn values(text: &str) -> Result<Vec<Option<f64>>, String> {
    if text.contains("{{") {
        return Err(format!("{text}: native histograms are not supported"));
    }
    let mut values = Vec::new();
    for word in text.split_whitespace() {
        let found = item(word).ok_or_else(|| format!("{word:?} is no value of a series"))?;
        if values.len().saturating_add(found.count) > VALUES_MAX {
            return Err(format!("{word:?}: more than {VALUES_MAX} values"));
        }
        let mut next = found.first;
        for _ in 0..found.count {
            values.push(next);
            // As Prometheus, which adds again and again.
            next = next.map(|value| value + found.step);
        }
    }
    Ok(values)
}

/// One word of values.
struct Item {
    first: Option<f64>,
    step: f64,
    count: usize,
}

fn item(word: &str) -> Option<Item> {
    let one = |first| Item {
        first,
        step: 0.0,
        count: 1,
    };
    match word {
        "_" => return Some(one(None)),
        "stale" => return Some(one(Some(f64::from_bits(STALE_BITS)))),
        _ => {}
    }
    if let Some(count) = word.strip_prefix("_x") {
        return Some(Item {
            count: whole(count)?,
            ..one(None)
        });
    }
    let (first, rest) = number(word)?;
    if rest.is_empty() {
        return Some(one(Some(first)));
    }
    let (step, rest) = if rest.starts_with(['+', '-']) {
        number(rest)?
    } else {
        (0.0, rest)
    };
    let times = whole(rest.strip_prefix('x')?)?;
    Some(Item {
        first: Some(first),
        step,
        // And the first one.
        count: times.checked_add(1)?,
    })
}

fn whole(text: &str) -> Option<usize> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok())?
}

/// The number that a text begins with, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    for name in ["Inf", "NaN"] {
        let is_name = unsigned
            .get(..3)
            .is_some_and(|start| start.eq_ignore_ascii_case(name));
        if is_name {
            let end = text.len() - unsigned.len() + 3;
            return Some((text[..end].parse().ok()?, &text[end..]));
        }
    }
    let mut end = text.len() - unsigned.len();
    let mut last = b' ';
    for byte in unsigned.bytes() {
        let is_part = match byte {
            b'0'..=b'9' | b'.' => true,
            b'e' | b'E' => !matches!(last, b' ' | b'e' | b'E'),
            b'+' | b'-' => matches!(last, b'e' | b'E'),
            _ => false,
        };
        if !is_part {
            break;
        }
        last = byte;
        end += 1;
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match values(text) {
            Err(error) => error,
            Ok(values) => {
                let word = |value: Option<f64>| match value {
                    None => "_".to_owned(),
                    Some(value) if value.to_bits() == STALE_BITS => "stale".to_owned(),
                    Some(value) => value.to_string(),
                };
                let words: Vec<_> = values.into_iter().map(word).collect();
                words.join(" ")
            }
        }
    }

    #[test]
    fn values_are_expanded() {
        for (text, expected) in [
            ("", ""),
            ("1 2.5 -3", "1 2.5 -3"),
            ("0+10x3", "0 10 20 30"),
            ("-2+4x2", "-2 2 6"),
            ("1-2x2", "1 -1 -3"),
            ("-1-1x1", "-1 -2"),
            ("0x2", "0 0 0"),
            ("1x0", "1"),
            ("1e3 1e-3", "1000 0.001"),
            ("1 _ stale", "1 _ stale"),
            ("_x2 4", "_ _ 4"),
            ("NaN Inf -Inf", "NaN inf -inf"),
            ("0.1+0.1x2", "0.1 0.2 0.30000000000000004"),
            ("one", "\"one\" is no value of a series"),
            ("1+x", "\"1+x\" is no value of a series"),
            ("1x-2", "\"1x-2\" is no value of a series"),
            ("1+1", "\"1+1\" is no value of a series"),
            (
                "{{schema:1}}x2",
                "{{schema:1}}x2: native histograms are not supported",
            ),
            ("1x99999999", "\"1x99999999\": more than 10000000 values"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn labels_are_those_of_a_metric() {
        let text = |text: &str| labels(text).map(|labels| labels.to_string());
        let full = "{__name__=\"up\", job=\"a\"}".to_owned();
        assert_eq!(text("up{job=\"a\"}"), Ok(full));
        assert_eq!(text(""), Ok("{}".to_owned()));
        assert_eq!(text("{}"), Ok("{}".to_owned()));
        assert!(text("up{job!=\"a\"}").is_err());
    }
}
