//! How values print: numbers as Go prints them, which the crate does in its own way (`1e+06`, `+Inf`).

use gotmpl::{Result, Template, Value};
use latewood_promql::number::general;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value as `%v` of Go has it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Float(value) => general(*value),
        Value::List(list) => {
            let items: Vec<_> = list.iter().map(text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Map(map) => {
            let pairs = map.iter();
            let pairs: Vec<_> = pairs
                .map(|(name, value)| format!("{name}:{}", text(value)))
                .collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => other.to_string(),
    }
}

/// `print`: a space between two values neither of which is a text.
pub(super) fn print(values: &[Value]) -> String {
    let mut out = String::new();
    let is_text = |value: &Value| matches!(value, Value::String(_));
    for (at, value) in values.iter().enumerate() {
        if at > 0 && !is_text(value) && !is_text(&values[at - 1]) {
            out.push(' ');
        }
        out.push_str(&text(value));
    }
    out
}

/// `printf`: that of the crate, which is given texts for numbers that it prints in its own way.
pub(super) fn printf(values: &[Value]) -> Result<Value> {
    let mut values = values.to_vec();
    if let [Value::String(format), args @ ..] = &mut values[..]
        && !format.contains(['*', '['])
    {
        *format = texts_for_numbers(format, args).into();
    }
    let names: Vec<Arc<str>> = (0..values.len())
        .map(|at| format!("v{at}").into())
        .collect();
    let words: String = names.iter().map(|name| format!(" .{name}")).collect();
    let data: BTreeMap<Arc<str>, Value> = names.into_iter().zip(values).collect();
    let tree = Template::new("printf").parse(&format!("{{{{printf{words}}}}}"))?;
    Ok(tree.execute_to_string(&Value::from(data))?.into())
}

/// The format that fits once arguments have become texts.
fn texts_for_numbers(format: &str, args: &mut [Value]) -> String {
    let mut out = String::new();
    let mut args = args.iter_mut();
    let mut rest = format;
    while let Some(percent) = rest.find('%') {
        out.push_str(&rest[..percent]);
        rest = &rest[percent..];
        let is_modifier = |letter: char| letter.is_ascii_digit() || "+-# .".contains(letter);
        let modifiers = rest[1..].find(|letter| !is_modifier(letter));
        let Some(verb) = modifiers.and_then(|at| rest[1 + at..].chars().next()) else {
            break;
        };
        let end = 1 + modifiers.unwrap_or(0) + verb.len_utf8();
        let (this, behind) = rest.split_at(end);
        rest = behind;
        let arg = (verb != '%').then(|| args.next()).flatten();
        let becomes_text = |arg: &&mut Value| match arg {
            Value::Float(value) => verb == 'v' || !value.is_finite(),
            Value::List(_) | Value::Map(_) => verb == 'v',
            _ => false,
        };
        match arg.filter(becomes_text) {
            Some(arg) => {
                // Only the width, and where the text stands in it.
                let width = this[1..].trim_start_matches(['0', '+', '#', ' ']);
                let width = width.trim_end_matches(verb);
                let width = width.split('.').next().unwrap_or_default();
                out.push_str(&format!("%{width}s"));
                *arg = text(arg).into();
            }
            None => out.push_str(this),
        }
    }
    out + rest
}
