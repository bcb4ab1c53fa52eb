//! `label_replace` and `label_join`: other labels, the same values.
//!
//! Patterns are those of Go, match the whole value, and a dot matches a line break.
//! Tested by tables and by the differential test.

use crate::exec::pace::Pace;
use crate::exec::tally::Tally;
use crate::exec::{Context, EvalError, Node, Result, Series};
use crate::labels::METRIC;
use crate::pattern::translate;
use regex::{Captures, Regex, RegexBuilder};

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// What becomes of the label.
pub(crate) enum Source {
    /// The expanded template where the pattern matches a label, else what it was.
    Replace {
        /// The label that the pattern matches.
        label: String,
        pattern: Regex,
        /// What the label becomes.
        template: String,
    },
    /// Values of labels with a separator between them.
    Join {
        labels: Vec<String>,
        separator: String,
    },
}

/// Compiles the pattern of `label_replace`.
pub(crate) fn pattern(text: &str) -> Result<Regex> {
    let compile = |pattern: String| {
        RegexBuilder::new(&format!("^(?s:{pattern})$"))
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX)
            .build()
            .ok()
    };
    let compiled = translate(text).ok().and_then(compile);
    compiled.ok_or_else(|| {
        EvalError::Query(format!(
            "invalid regular expression in label_replace(): {text}"
        ))
    })
}

/// An input with one label set from others.
pub(crate) fn relabeled(
    input: Node,
    target: &str,
    source: &Source,
    ctx: &Context<'_>,
) -> Result<Node> {
    let mut tally = Tally::new(ctx);
    let mut pace = Pace::default();
    let mut relabeled = Vec::new();
    let labels = match source {
        Source::Replace { template, .. } => template.len(),
        Source::Join { labels, .. } => labels.len(),
    };
    for series in input.series() {
        pace.pass(labels, ctx)?;
        let mut series = series.clone();
        if let Some(value) = source.value(&series, ctx)? {
            series.labels = series.labels.with(target, &value);
            // A name that was just set stays.
            series.drops_name &= target != METRIC;
            ctx.release(value.len());
        }
        tally.add_series(&series)?;
        relabeled.push(series);
    }
    tally.settle()?;
    Ok(Node::new(relabeled, move |at, work, out| {
        input.column(at, work, out)
    }))
}

impl Source {
    /// The new value of the label, if it gets one.
    ///
    /// # Errors
    /// Where the query holds more than it may: a value is counted before it is made.
    fn value(&self, series: &Series, ctx: &Context<'_>) -> Result<Option<String>> {
        match self {
            Self::Replace {
                label,
                pattern,
                template,
            } => {
                let Some(captures) = pattern.captures(series.labels.get(label)) else {
                    return Ok(None);
                };
                counted(ctx, |part| expand(template, &captures, part)).map(Some)
            }
            Self::Join { labels, separator } => {
                let join = |part: &mut dyn FnMut(&str)| {
                    for (at, label) in labels.iter().enumerate() {
                        if at > 0 {
                            part(separator);
                        }
                        part(series.labels.get(label));
                    }
                };
                counted(ctx, join).map(Some)
            }
        }
    }
}

/// A text of parts, which `parts` names twice: to count its bytes, and to make it.
fn counted(ctx: &Context<'_>, parts: impl Fn(&mut dyn FnMut(&str))) -> Result<String> {
    let mut bytes = 0_usize;
    parts(&mut |part| bytes = bytes.saturating_add(part.len()));
    // Beside itself it becomes part of the bytes of labels, which may grow to twice of them.
    let labels_bytes = bytes.saturating_mul(3);
    ctx.hold(labels_bytes)?;
    let mut text = String::with_capacity(bytes);
    parts(&mut |part| text.push_str(part));
    ctx.release(labels_bytes - bytes);
    Ok(text)
}

/// A template with `$1`, `${1}`, `$name` and `${name}` replaced, as Go does it: the name is as long
/// as it can be, a group that is not there is empty, what is no name stays as it is.
fn expand(template: &str, captures: &Captures<'_>, part: &mut dyn FnMut(&str)) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        part(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            part("$");
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(rest) else {
            part("$");
            continue;
        };
        rest = after;
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit())
            && (name == "0" || !name.starts_with('0'));
        let group = if is_number {
            name.parse().ok().and_then(|group| captures.get(group))
        } else {
            captures.name(name)
        };
        part(group.map_or("", |group| group.as_str()));
    }
    part(rest);
}

/// The name behind a `$` and what follows it.
fn reference(text: &str) -> Option<(&str, &str)> {
    let braced = text.strip_prefix('{');
    let text = braced.unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = match braced {
        Some(_) => rest.strip_prefix('}')?,
        None => rest,
    };
    (!name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_expand_as_in_go() {
        let pattern = pattern("(?P<first>a+)(b)?(.*)").expect("a pattern");
        let captures = pattern.captures("aac\nd").expect("a match");
        for (template, value) in [
            ("$1", "aa"),
            ("${1}x$3", "aaxc\nd"),
            ("$1x", ""),
            ("$first-${first}", "aa-aa"),
            ("$2|$9|$none|${none}", "|||"),
            ("$$1 $ ${ ${1 $", "$1 $ ${ ${1 $"),
            ("$01 ${0}", " aac\nd"),
        ] {
            let mut expanded = String::new();
            expand(template, &captures, &mut |part| expanded.push_str(part));
            assert_eq!(expanded, value, "{template}");
        }
    }

    #[test]
    fn patterns_match_whole_values() {
        assert!(!pattern("a").expect("a pattern").is_match("ab"));
        assert!(pattern("a|b").expect("a pattern").is_match("b"));
        let error = pattern("(").expect_err("an error").to_string();
        assert_eq!(error, "invalid regular expression in label_replace(): (");
    }
}
