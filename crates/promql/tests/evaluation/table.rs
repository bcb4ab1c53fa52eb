//! Tables of expressions and what they give.

use crate::evaluation::memory::{Memory, shown};
use latewood_promql::Times;
use latewood_promql::engine::{Query, Settings, Value};
use latewood_promql::number::plain;

/// What an expression gives at one time, a line for each series, in the order of evaluation.
pub(crate) fn instant(
    memory: &Memory,
    query: &str,
    at_ms: i64,
    settings: &Settings,
) -> Vec<String> {
    let query = Query::new(query);
    match query.and_then(|query| query.instant(at_ms, settings, memory)) {
        Err(error) => vec![format!("error: {error}")],
        Ok(outcome) => match outcome.value {
            Value::Scalar(value) => vec![plain(value)],
            Value::String(text) => vec![text],
            Value::Vector(vector) => {
                let line = |(labels, value)| format!("{} {}", shown(&labels), plain(value));
                vector.into_iter().map(line).collect()
            }
            Value::Matrix(matrix) => {
                let pairs = |samples: Vec<(i64, f64)>| {
                    let pair = |(time_ms, value)| format!(" {}@{time_ms}", plain(value));
                    samples.into_iter().map(pair).collect::<String>()
                };
                let line = |(labels, samples)| shown(&labels) + &pairs(samples);
                matrix.into_iter().map(line).collect()
            }
        },
    }
}

/// What an expression gives at the steps of `start_ms..=end_ms`: a line for each series with a
/// word for each step, `_` where it has no sample.
pub(crate) fn range(
    memory: &Memory,
    query: &str,
    (start_ms, end_ms, step_ms): (i64, i64, i64),
    settings: &Settings,
) -> Vec<String> {
    let times = Times {
        start_ms,
        end_ms,
        step_ms,
    };
    let mut lines = Vec::new();
    let outcome = Query::new(query).and_then(|query| {
        query.range(times, settings, memory, &mut |labels, column| {
            let mut line = shown(labels);
            for step in 0..times.grid().steps {
                line.push(' ');
                line.push_str(&column.get(step).map_or("_".to_owned(), plain));
            }
            lines.push(line);
            Ok(())
        })
    });
    match outcome {
        Err(error) => vec![format!("error: {error}")],
        Ok(_) => lines,
    }
}

/// The annotations of an expression at one time, with the first byte that each is about.
pub(crate) fn notes(memory: &Memory, query: &str, at_ms: i64) -> Vec<String> {
    let query = Query::new(query).unwrap();
    let outcome = query.instant(at_ms, &Settings::default(), memory).unwrap();
    let notes = outcome.annotations.iter();
    notes
        .map(|note| format!("{} @{}", note.text, note.at.0))
        .collect()
}

/// Compares each expression at one time with its lines, joined by `; `.
pub(crate) fn check(memory: &Memory, at_ms: i64, table: &[(&str, &str)]) {
    for (query, expected) in table {
        let got = instant(memory, query, at_ms, &Settings::default()).join("; ");
        assert_eq!(got, *expected, "{query} at {at_ms}");
    }
}

/// The same at several steps.
pub(crate) fn check_range(memory: &Memory, times: (i64, i64, i64), table: &[(&str, &str)]) {
    for (query, expected) in table {
        let got = range(memory, query, times, &Settings::default()).join("; ");
        assert_eq!(got, *expected, "{query} at {times:?}");
    }
}
