//! Templates of alerts: Go's text/template with Prometheus' functions.
//!
//! The language itself (pipelines, `if`, `range`, `with`, `define`, variables, comparisons, `printf`)
//! is the crate `gotmpl`; the functions are those of Prometheus 3.16 (`functions`). Go decides by
//! types what the crate cannot know: a label that is missing is an empty text, a field that a sample
//! has not is an error, a time has methods. So a tree is rewritten before it is run (`rewrite`),
//! and unknown functions and variables are found then: they are errors of the rule file.
//!
//! `query` needs series that a template cannot hold on to. A template that asks for an answer it has
//! not is run again once that is there, so each question is asked once an expansion.
//!
//! Bounds: 1 MiB of text, 100 questions, 100,000 rounds of `range`. Tested below and by
//! `tests/template`.

mod functions;
mod print;
mod rewrite;
mod text;
mod time;

use crate::template::functions::{CALLS, Calls, FUNCTIONS};
use gotmpl::parse::{Node, Parser};
use gotmpl::{Template as Tree, Value};
use latewood_promql::labels::Labels;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::sync::Arc;

/// Bytes that an expansion may have.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Different questions that an expansion may ask.
const QUERIES_MAX: usize = 100;
/// Rounds of all `range` in an expansion.
const ROUNDS_MAX: u64 = 100_000;
/// What Prometheus puts before each template.
const PREFIX: &str = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}\
                      {{$externalURL := .ExternalURL}}{{$value := .Value}}";

/// What stands behind each template, to see that all of it was parsed.
const END: &str = "\0end";

/// A template that was parsed and checked.
#[derive(Clone)]
pub struct Template {
    text: Arc<str>,
    name: Arc<str>,
    /// None where the text has no action.
    tree: Option<Arc<Tree>>,
}

/// What a template may say about one alert.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// `$labels`, the name of the metric among them.
    pub labels: &'a Labels,
    /// `$value`
    pub value: f64,
    /// `$externalLabels`
    pub external_labels: &'a Labels,
    /// `$externalURL`, `externalURL` and `pathPrefix`.
    pub external_url: &'a str,
    /// `now`, milliseconds.
    pub now_ms: i64,
}

/// Answers `query`: an expression, evaluated at the time of the rule.
pub type Ask<'a> = dyn FnMut(&str) -> Result<Vec<(Labels, f64)>, String> + 'a;

impl Template {
    /// Parses a label or an annotation of an alert.
    ///
    /// # Errors
    /// What is wrong, with the template's name and line.
    pub fn parse(alert: &str, text: &str) -> Result<Self, String> {
        let name = format!("__alert_{alert}");
        let tree = text.contains("{{").then(|| tree(&name, text)).transpose()?;
        Ok(Self {
            text: text.into(),
            name: name.into(),
            tree: tree.map(Arc::new),
        })
    }

    /// The template as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text it makes.
    ///
    /// # Errors
    /// Why it makes none.
    pub fn expand(&self, data: &Data<'_>, ask: &mut Ask<'_>) -> Result<String, String> {
        let Some(tree) = &self.tree else {
            return Ok(self.text.to_string());
        };
        let value = data.value();
        let mut answers = HashMap::new();
        loop {
            CALLS.set(Calls {
                now_ms: data.now_ms,
                external_url: data.external_url.to_owned(),
                answers,
                missing: None,
            });
            let mut out = Bounded(String::new());
            let ran = tree.execute_template_fmt(&mut out, &self.name, &value);
            let calls = CALLS.take();
            answers = calls.answers;
            match (ran, calls.missing) {
                (Ok(()), _) => return Ok(out.0),
                (Err(_), Some(query)) if answers.len() < QUERIES_MAX => {
                    let answer = ask(&query).map(functions::samples);
                    answers.insert(query, answer);
                }
                (Err(_), Some(_)) => {
                    return Err(self.failed(&format!("more than {QUERIES_MAX} queries")));
                }
                (Err(_), None) if out.0.len() >= TEXT_BYTES_MAX => {
                    return Err(self.failed(&format!("more than {TEXT_BYTES_MAX} bytes of text")));
                }
                (Err(error), None) => return Err(self.failed(&error)),
            }
        }
    }

    fn failed(&self, why: &dyn fmt::Display) -> String {
        format!("error executing template {}: {why}", self.name)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.text) == (&other.name, &other.text)
    }
}

impl Data<'_> {
    fn value(&self) -> Value {
        let fields = [
            ("Labels", functions::of_labels(self.labels)),
            ("ExternalLabels", functions::of_labels(self.external_labels)),
            ("ExternalURL", Value::from(self.external_url)),
            ("Value", Value::Float(self.value)),
        ];
        let fields = fields.map(|(name, value)| (Arc::from(name), value));
        Value::from(BTreeMap::from(fields))
    }
}

fn tree(name: &str, text: &str) -> Result<Tree, String> {
    let text = format!("{PREFIX}{text}");
    let parsed = |text: &str| {
        let parser = Parser::with_name(Some(name), text, "{{", "}}");
        let parsed = parser.and_then(Parser::parse);
        parsed.map_err(|error| error.to_string())
    };
    // Alone first, so that errors are those of the text.
    parsed(&text)?;
    let (mut main, mut defines) = parsed(&(text + END))?;
    // The parser takes an `end` or `else` of nothing for the end of the text.
    let is_whole = main.nodes.last_mut().is_some_and(|last| match last {
        Node::Text(last) => match last.text.strip_suffix(END) {
            Some(text) => {
                last.text = text.into();
                true
            }
            None => false,
        },
        _ => false,
    });
    if !is_whole {
        return Err(format!(
            "template: {name}: unexpected {{{{end}}}} or {{{{else}}}}"
        ));
    }
    rewrite::main(&mut main).map_err(|error| error.of(name))?;
    let mut tree = Tree::new(name)
        .max_range_iters(ROUNDS_MAX)
        .funcs(FUNCTIONS.clone());
    for define in &mut defines {
        rewrite::define(&mut define.body).map_err(|error| error.of(name))?;
        tree = tree.add_parse_tree(&define.name, define.body.clone());
    }
    Ok(tree.add_parse_tree(name, main))
}

/// A duration of nanoseconds, as Go prints it.
pub(crate) fn go_duration(nanos: i64) -> String {
    time::duration(nanos)
}

/// A text that holds up to `TEXT_BYTES_MAX` bytes.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_BYTES_MAX - self.0.len();
        let fits = text.floor_char_boundary(room);
        self.0.push_str(&text[..fits]);
        if fits < text.len() {
            // As long as it gets, for whoever asks why.
            self.0.extend(std::iter::repeat_n(' ', room - fits));
            return Err(fmt::Error);
        }
        Ok(())
    }
}
