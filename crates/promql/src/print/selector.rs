//! Selectors, ranges and the brackets of subqueries.

use super::push_length;
use crate::labels::METRIC;
use crate::lex::is_plain_label;
use crate::quote::quoted;
use crate::source::{Matcher, parts};
use crate::tree::{At, Length, Range, Selector, Smoothing, Subquery};
use latewood_wire::selector::Test;

pub(super) fn push(out: &mut String, selector: &Selector) {
    push_series(out, selector);
    push_at(out, selector.at);
    push_smoothing(out, selector.smoothing);
    push_offset(out, &selector.offset);
}

pub(super) fn push_range(out: &mut String, range: &Range) {
    push_series(out, &range.selector);
    out.push('[');
    push_length(out, &range.range);
    out.push(']');
    push_smoothing(out, range.selector.smoothing);
    push_at(out, range.selector.at);
    push_offset(out, &range.selector.offset);
}

/// What stands behind the expression of a subquery.
pub(super) fn push_brackets(out: &mut String, subquery: &Subquery) {
    out.push('[');
    push_length(out, &subquery.range);
    out.push(':');
    if let Some(step) = &subquery.step {
        push_length(out, step);
    }
    out.push(']');
    push_at(out, subquery.at);
    push_offset(out, &subquery.offset);
}

/// The metric and the other matchers, in the order of their texts.
fn push_series(out: &mut String, selector: &Selector) {
    let name = selector.name.as_bytes();
    let mut matchers = Vec::with_capacity(selector.matchers.len());
    for matcher in &selector.matchers {
        let is_name = matches!(&matcher.test, Test::Equal(value) if **value == *name)
            && *matcher.name == *METRIC.as_bytes();
        if !is_name || name.is_empty() {
            matchers.push(matcher_text(matcher));
        }
    }
    matchers.sort_unstable();
    out.push_str(&selector.name);
    if !matchers.is_empty() {
        out.push('{');
        out.push_str(&matchers.join(","));
        out.push('}');
    }
}

fn matcher_text(matcher: &Matcher) -> String {
    let (op, value) = parts(matcher);
    let value = quoted(value);
    match std::str::from_utf8(&matcher.name) {
        Ok(name) if is_plain_label(name) => format!("{name}{op}{value}"),
        _ => format!("{}{op}{value}", quoted(&matcher.name)),
    }
}

fn push_at(out: &mut String, at: Option<At>) {
    match at {
        None => {}
        Some(At::Time(millis)) => {
            let seconds = millis as f64 / 1000.0;
            out.push_str(&format!(" @ {seconds:.3}"));
        }
        Some(At::Start) => out.push_str(" @ start()"),
        Some(At::End) => out.push_str(" @ end()"),
    }
}

fn push_smoothing(out: &mut String, smoothing: Smoothing) {
    out.push_str(match smoothing {
        Smoothing::Off => "",
        Smoothing::Anchored => " anchored",
        Smoothing::Smoothed => " smoothed",
    });
}

fn push_offset(out: &mut String, offset: &Length) {
    if !matches!(offset, Length::Known(0)) {
        out.push_str(" offset ");
        push_length(out, offset);
    }
}
