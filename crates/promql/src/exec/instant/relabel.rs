//! `label_replace` and `label_join`: other labels, the same values.
//!
//! Patterns are those of Go, match the whole value, and a dot matches a line break.
//! Tested by tables and by the differential test.

use crate::column::Column;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
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
        /// The pattern.
        pattern: Regex,
        /// What the label becomes.
        template: String,
    },
    /// Values of labels with a separator between them.
    Join {
        /// The labels.
        labels: Vec<String>,
        /// The separator.
        separator: String,
    },
}

/// Compiles the pattern of `label_replace`.
pub(crate) fn pattern(text: &str) -> Result<Regex, EvalError> {
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
pub(crate) struct Relabeled {
    input: Node,
    target: String,
    source: Source,
    series: Vec<Series>,
}

impl Relabeled {
    pub(crate) fn new(input: Node, target: String, source: Source) -> Self {
        Self {
            input,
            target,
            source,
            series: Vec::new(),
        }
    }

    /// The new value of the label, if it gets one.
    fn value(&self, series: &Series) -> Option<String> {
        match &self.source {
            Source::Replace {
                label,
                pattern,
                template,
            } => {
                let captures = pattern.captures(series.labels.get(label))?;
                Some(expanded(template, &captures))
            }
            Source::Join { labels, separator } => {
                let values = labels.iter().map(|label| series.labels.get(label));
                Some(values.collect::<Vec<_>>().join(separator))
            }
        }
    }
}

impl Operator for Relabeled {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        let relabeled = self.input.series().iter().map(|series| {
            let Some(value) = self.value(series) else {
                return series.clone();
            };
            Series {
                labels: series.labels.with(&self.target, &value),
                // A name that was just set stays.
                drops_name: series.drops_name && self.target != METRIC,
            }
        });
        self.series = relabeled.collect();
        Ok(())
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        self.input.column(at, ctx, scratch, out)
    }
}

/// A template with `$1`, `${1}`, `$name` and `${name}` replaced, as Go does it: the name is as long
/// as it can be, a group that is not there is empty, what is no name stays as it is.
fn expanded(template: &str, captures: &Captures<'_>) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(rest) else {
            out.push('$');
            continue;
        };
        rest = after;
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit())
            && (name == "0" || !name.starts_with('0'));
        let group = match is_number {
            true => name.parse().ok().and_then(|group| captures.get(group)),
            false => captures.name(name),
        };
        out.push_str(group.map_or("", |group| group.as_str()));
    }
    out.push_str(rest);
    out
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
            assert_eq!(expanded(template, &captures), value, "{template}");
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
