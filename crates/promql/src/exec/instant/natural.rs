//! The order of `sort_by_label`: numbers inside of texts by their value.
//!
//! A total order. The library that Prometheus uses says neither where an empty text goes nor which
//! of `1` and `01`, so that the order of such series depends on its sorting algorithm; here the
//! empty text and then the lesser one go first. Tested by the differential test.

use std::cmp::Ordering;

/// Runs of ASCII digits and of everything else.
fn chunks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let is_digits = first.is_ascii_digit();
        let end = rest
            .bytes()
            .position(|byte| byte.is_ascii_digit() != is_digits)
            .unwrap_or(rest.len());
        found.push(&rest[..end]);
        rest = &rest[end..];
    }
    found
}

/// The order of two texts; the empty one goes first.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (left, right) = (chunks(a), chunks(b));
    for (left, right) in left.iter().zip(&right) {
        // Numbers of more than 63 bits count as texts.
        let numbers = left.parse::<i64>().ok().zip(right.parse::<i64>().ok());
        let order = match numbers {
            Some((left, right)) => left.cmp(&right),
            None => left.cmp(right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_by_value() {
        let mut texts = ["b10", "b9", "a", "b", "", "10", "9", "b9c2", "b9c10", "09"];
        texts.sort_by(|a, b| compare(a, b));
        assert_eq!(
            texts,
            ["", "09", "9", "10", "a", "b", "b9", "b9c2", "b9c10", "b10"]
        );
    }
}
