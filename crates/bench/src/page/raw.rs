//! Raw runs as JSON: values by path, figures by expression, sentences by template.
//!
//! A path names fields with dots between them, as in `trace.at_end.log_bytes`. An expression is
//! paths and numbers with ` * `, ` / `, ` - ` and ` + ` between them, read from left to right;
//! `a+b` without blanks is one operand. A missing field is NaN, and no text. Tested below and by
//! the committed pages.

use serde_json::Value;

use crate::measure::statistics::thousands;

/// The value at `path`; null where it is missing.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let step = |value: &'a Value, name: &str| match name.parse::<usize>() {
        Ok(place) => value.get(place).unwrap_or(&Value::Null),
        Err(_) => value.get(name).unwrap_or(&Value::Null),
    };
    path.split('.').fold(value, step)
}

/// The values of a list; none where it is missing.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    at(value, path).as_array().into_iter().flatten().collect()
}

/// The value of an expression.
pub(crate) fn number(value: &Value, expression: &str) -> f64 {
    let mut words = expression.split(' ');
    let mut result = operand(value, words.next().unwrap_or_default());
    while let (Some(operator), Some(word)) = (words.next(), words.next()) {
        let other = operand(value, word);
        match operator {
            "*" => result *= other,
            "/" => result /= other,
            "-" => result -= other,
            _ => result += other,
        }
    }
    result
}

fn operand(value: &Value, word: &str) -> f64 {
    let one = |part: &str| part.parse().unwrap_or_else(|_| figure(at(value, part)));
    word.split('+').map(one).sum()
}

/// A number as it is, a truth as 0 or 1, a list as its length.
pub(super) fn figure(value: &Value) -> f64 {
    match value {
        Value::Bool(is_true) => f64::from(u8::from(*is_true)),
        Value::Array(items) => items.len() as f64,
        other => other.as_f64().unwrap_or(f64::NAN),
    }
}

/// The text at `path`; numbers without needless zeros.
pub(crate) fn text(value: &Value, path: &str) -> String {
    match at(value, path) {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(is_true) => is_true.to_string(),
        other => other.as_f64().map_or_else(String::new, |n| n.to_string()),
    }
}

/// A template with `{expression}` replaced: texts as they are, whole numbers and the results of
/// operators with commas. `{path!}` leaves a number without commas, `{path:1}` gives it one digit
/// behind the point.
pub(crate) fn fill(template: &str, value: &Value) -> String {
    let mut parts = template.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once('}').unwrap_or((part, ""));
        filled += &filled_in(expression, value);
        filled += rest;
    }
    filled
}

fn filled_in(expression: &str, value: &Value) -> String {
    if let Some((path, places)) = expression.split_once(':') {
        let places = places.parse().unwrap_or(0);
        return format!("{:.places$}", number(value, path));
    }
    let plain = expression.strip_suffix('!');
    let path = plain.unwrap_or(expression);
    let result = number(value, path);
    let is_whole = result.fract() == 0.0 || path.contains(' ');
    match plain.is_none() && at(value, path).as_str().is_none() && is_whole {
        true => thousands(result),
        false => text(value, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_from_left_to_right() {
        let run = serde_json::json!({
            "samples": 2_000, "seconds": 0.5, "on": true, "at_end": {"files": [1, 2]},
            "name": "a", "late": 0.0,
        });
        assert_eq!(number(&run, "samples / seconds / 1e3"), 4.0);
        assert_eq!(number(&run, "samples / seconds+on"), 2_000.0 / 1.5);
        assert_eq!(number(&run, "at_end.files - on"), 1.0);
        assert!(number(&run, "nothing / 2").is_nan());
        let template = "{name}: {samples} ({samples!}) in {seconds} s, {late} %, {late:1}{x}";
        assert_eq!(fill(template, &run), "a: 2,000 (2000) in 0.5 s, 0 %, 0.0");
        assert_eq!(text(&run, "at_end.files.1"), "2");
    }
}
