//! The functions of templates.
//!
//! A template is run on one thread: what its functions share lies there while it runs.

use crate::duration;
use crate::template::print;
use crate::template::text;
use crate::template::time::{self, Time};
use gotmpl::{FuncMap, Result, TemplateError, Value, ValueFunc};
use latewood_promql::labels::Labels;
use regex::{Regex, RegexBuilder};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

/// A field of a value, or a method; no text can name the function.
pub(super) const FIELD: &str = "field of";
/// What an action prints.
pub(super) const SHOWN: &str = "shown";
/// The only entries of values that Go has types for.
const TIME: &str = "\0time";
const DURATION: &str = "\0duration";
/// Bytes of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// What functions share while a template runs.
#[derive(Default)]
pub(super) struct Calls {
    /// Milliseconds.
    pub(super) now_ms: i64,
    pub(super) external_url: String,
    pub(super) answers: HashMap<String, std::result::Result<Value, String>>,
    /// The question without an answer that ended the run.
    pub(super) missing: Option<String>,
}

thread_local! {
    pub(super) static CALLS: RefCell<Calls> = RefCell::default();
}

/// All functions, by name.
pub(super) static FUNCTIONS: LazyLock<FuncMap> = LazyLock::new(|| {
    let mut functions = FuncMap::new();
    let mut add = |name: &str, args: usize, function: fn(&Args<'_>) -> Result<Value>| {
        let name: Arc<str> = name.into();
        let key = name.to_string();
        let checked: ValueFunc = Arc::new(move |values| {
            if values.len() != args && args != ANY {
                return Err(TemplateError::ArgCount {
                    name: name.to_string(),
                    expected: args,
                    got: values.len(),
                });
            }
            let name = &name;
            function(&Args { name, values })
        });
        functions.insert(key, checked);
    };
    add(FIELD, ANY, field);
    add(SHOWN, 1, |args| shown(&args.values[0]));
    add("print", ANY, |args| Ok(print::print(args.values).into()));
    add("println", ANY, |args| {
        let words: Vec<_> = args.values.iter().map(print::text).collect();
        Ok((words.join(" ") + "\n").into())
    });
    add("printf", ANY, |args| print::printf(args.values));
    add("query", 1, query);
    add("first", 1, first);
    add("label", 2, |args| args.sample(1)?.label(args.text(0)?));
    add("value", 1, |args| Ok(args.sample(0)?.value()));
    add("strvalue", 1, |args| args.sample(0)?.label("__value__"));
    add("args", ANY, numbered);
    add("sortByLabel", 2, sort_by_label);
    add("reReplaceAll", 3, replace_all);
    add("match", 2, |args| {
        let found = args.regex(0)?.is_match(args.text(1)?);
        Ok(Value::Bool(found))
    });
    add("safeHtml", 1, |args| Ok(Value::from(args.text(0)?)));
    add("title", 1, |args| Ok(text::title(args.text(0)?).into()));
    add("toUpper", 1, |args| Ok(args.text(0)?.to_uppercase().into()));
    add("toLower", 1, |args| Ok(args.text(0)?.to_lowercase().into()));
    add("graphLink", 1, |args| link(args, 0));
    add("tableLink", 1, |args| link(args, 1));
    add("stripPort", 1, |args| {
        Ok(text::strip_port(args.text(0)?).into())
    });
    add("stripDomain", 1, |args| {
        Ok(text::strip_domain(args.text(0)?).into())
    });
    add("urlQueryEscape", 1, |args| {
        Ok(gotmpl::url_encode(args.text(0)?).into())
    });
    add("humanize", 1, |args| {
        Ok(text::humanize(args.float(0)?).into())
    });
    add("humanize1024", 1, |args| {
        Ok(text::humanize_1024(args.float(0)?).into())
    });
    add("humanizeDuration", 1, |args| {
        Ok(text::humanize_duration(args.float(0)?).into())
    });
    add("humanizePercentage", 1, percentage);
    add("humanizeTimestamp", 1, timestamp);
    add("toTime", 1, |args| Ok(entry(TIME, args.time_ms(0)?)));
    add("toDuration", 1, |args| {
        Ok(entry(DURATION, (args.float(0)? * 1e9) as i64))
    });
    add("parseDuration", 1, parse_duration);
    add("now", 0, |_| {
        Ok(Value::Float(
            CALLS.with_borrow(|calls| calls.now_ms) as f64 / 1000.0,
        ))
    });
    add("externalURL", 0, |_| {
        Ok(CALLS.with_borrow(|calls| calls.external_url.as_str().into()))
    });
    add("pathPrefix", 0, |_| {
        Ok(CALLS.with_borrow(|calls| text::path(&calls.external_url).into()))
    });
    functions
});

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// The arguments of a call.
struct Args<'a> {
    name: &'a str,
    values: &'a [Value],
}

/// A sample of an answer.
struct Sample<'a>(&'a BTreeMap<Arc<str>, Value>);

fn failed<T>(what: impl Into<String>) -> Result<T> {
    Err(TemplateError::Exec(what.into()))
}

impl<'a> Args<'a> {
    fn failed<T>(&self, what: impl std::fmt::Display) -> Result<T> {
        failed(format!("error calling {}: {what}", self.name))
    }

    fn text(&self, at: usize) -> Result<&'a str> {
        match &self.values[at] {
            Value::String(text) => Ok(text),
            other => self.failed(format_args!(
                "wrong type for value; expected string; got {}",
                other.type_name()
            )),
        }
    }

    /// A number, or a text that is one.
    fn float(&self, at: usize) -> Result<f64> {
        match &self.values[at] {
            Value::Float(value) => Ok(*value),
            Value::Int(value) => Ok(*value as f64),
            Value::Uint(value) => Ok(*value as f64),
            Value::String(text) => match text.parse() {
                Ok(value) => Ok(value),
                Err(_) => self.failed(format_args!(
                    "strconv.ParseFloat: parsing {text:?}: invalid syntax"
                )),
            },
            other => match held(other, DURATION) {
                Some(nanos) => Ok(nanos as f64 / 1e9),
                None => self.failed(format_args!("can't convert {} to float", other.type_name())),
            },
        }
    }

    /// A time in seconds as milliseconds.
    fn time_ms(&self, at: usize) -> Result<i64> {
        let seconds = self.float(at)?;
        if !seconds.is_finite() {
            return self.failed("value is NaN or Inf");
        }
        let nanos = seconds * 1e9;
        if nanos.abs() > i64::MAX as f64 {
            return self.failed(format_args!(
                "{} cannot be represented as a nanoseconds timestamp since it overflows int64",
                latewood_promql::number::general(seconds)
            ));
        }
        Ok(nanos as i64 / 1_000_000)
    }

    fn regex(&self, at: usize) -> Result<Regex> {
        let mut builder = RegexBuilder::new(self.text(at)?);
        let built = builder.size_limit(REGEX_BYTES_MAX).build();
        built.or_else(|error| self.failed(format_args!("error parsing regexp: {error}")))
    }

    fn list(&self, at: usize) -> Result<&'a [Value]> {
        match &self.values[at] {
            Value::List(list) => Ok(list),
            other => self.failed(format_args!(
                "wrong type for value; expected the result of a query; got {}",
                other.type_name()
            )),
        }
    }

    fn sample(&self, at: usize) -> Result<Sample<'a>> {
        match &self.values[at] {
            Value::Map(map) if is_sample(map) => Ok(Sample(map)),
            other => self.failed(format_args!(
                "wrong type for value; expected a sample; got {}",
                other.type_name()
            )),
        }
    }
}

impl Sample<'_> {
    fn label(&self, name: &str) -> Result<Value> {
        let labels = self.0.get("Labels");
        Ok(labels
            .and_then(|labels| labels.field(name))
            .cloned()
            .unwrap_or_else(|| "".into()))
    }

    fn value(&self) -> Value {
        self.0.get("Value").cloned().unwrap_or(Value::Nil)
    }
}

fn is_sample(map: &BTreeMap<Arc<str>, Value>) -> bool {
    map.contains_key("Value") && matches!(map.get("Labels"), Some(Value::Map(_)))
}

/// Labels as a map of texts.
pub(super) fn of_labels(labels: &Labels) -> Value {
    let pairs = labels.iter();
    let pairs = pairs.map(|(name, value)| (Arc::from(name), Value::from(value)));
    Value::from(pairs.collect::<BTreeMap<Arc<str>, Value>>())
}

/// The answer to a question.
pub(super) fn samples(rows: Vec<(Labels, f64)>) -> Value {
    let sample = |(labels, value): (Labels, f64)| {
        let fields = [
            ("Labels", of_labels(&labels)),
            ("Value", Value::Float(value)),
        ];
        Value::from(BTreeMap::from(
            fields.map(|(name, value)| (Arc::from(name), value)),
        ))
    };
    Value::from(rows.into_iter().map(sample).collect::<Vec<Value>>())
}

fn entry(kind: &str, value: i64) -> Value {
    Value::from(BTreeMap::from([(Arc::from(kind), Value::Int(value))]))
}

fn held(value: &Value, kind: &str) -> Option<i64> {
    value.field(kind).and_then(Value::as_int)
}

/// What an action prints: times and durations have a text of their own.
fn shown(value: &Value) -> Result<Value> {
    Ok(match (held(value, TIME), held(value, DURATION)) {
        (Some(time_ms), _) => Time(time_ms).shown().into(),
        (_, Some(nanos)) => time::duration(nanos).into(),
        // It has a text of its own there.
        _ if matches!(value, Value::Nil) => Value::Nil,
        _ => print::text(value).into(),
    })
}

/// A field, or what a method gives: the value, a name, arguments.
fn field(args: &Args<'_>) -> Result<Value> {
    let [value, Value::String(name), rest @ ..] = args.values else {
        return failed("a field needs a value");
    };
    if let Some(time_ms) = held(value, TIME) {
        return method_of_time(time_ms, name, rest);
    }
    if let Some(nanos) = held(value, DURATION) {
        return method_of_duration(nanos, name);
    }
    let Value::Map(map) = value else {
        let kind = value.type_name();
        return failed(format!("can't evaluate field {name} in type {kind}"));
    };
    if !rest.is_empty() {
        return failed(format!(
            "{name} has arguments but cannot be invoked as function"
        ));
    }
    match map.get(&**name) {
        Some(held) => Ok(held.clone()),
        None if is_sample(map) => failed(format!(
            "can't evaluate field {name} in type template.sample"
        )),
        // Of texts a missing one is empty, as for `missingkey=zero` of Go.
        None if map.values().all(|held| matches!(held, Value::String(_))) => Ok("".into()),
        None => Ok(Value::Nil),
    }
}

fn method_of_time(time_ms: i64, name: &str, args: &[Value]) -> Result<Value> {
    let time = Time(time_ms);
    match (name, args) {
        ("Format", [Value::String(layout)]) => Ok(time.format(layout).into()),
        ("Add", [duration]) => match held(duration, DURATION) {
            Some(nanos) => Ok(entry(TIME, time_ms.saturating_add(nanos / 1_000_000))),
            None => failed("Add needs a duration, as toDuration makes it"),
        },
        ("UTC" | "Local", []) => Ok(entry(TIME, time_ms)),
        ("String", []) => Ok(time.shown().into()),
        (_, []) if time.part(name).is_some() => Ok(Value::Int(time.part(name).unwrap_or_default())),
        _ => failed(format!(
            "times have no method {name} with these arguments here"
        )),
    }
}

fn method_of_duration(nanos: i64, name: &str) -> Result<Value> {
    let seconds = nanos as f64 / 1e9;
    Ok(match name {
        "String" => time::duration(nanos).into(),
        "Seconds" => Value::Float(seconds),
        "Minutes" => Value::Float(seconds / 60.0),
        "Hours" => Value::Float(seconds / 3600.0),
        "Milliseconds" => Value::Int(nanos / 1_000_000),
        _ => return failed(format!("durations have no method {name} here")),
    })
}

fn query(args: &Args<'_>) -> Result<Value> {
    let query = args.text(0)?;
    let answer = CALLS.with_borrow_mut(|calls| {
        let answer = calls.answers.get(query).cloned();
        if answer.is_none() {
            calls.missing = Some(query.to_owned());
        }
        answer
    });
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => args.failed(error),
        None => args.failed("the answer is not there yet"),
    }
}

fn first(args: &Args<'_>) -> Result<Value> {
    match args.list(0)?.first() {
        Some(first) => Ok(first.clone()),
        None => args.failed("first() called on vector with no elements"),
    }
}

fn sort_by_label(args: &Args<'_>) -> Result<Value> {
    let (name, mut list) = (args.text(0)?, args.list(1)?.to_vec());
    let label = |sample: &Value| {
        let label = sample.field("Labels").and_then(|labels| labels.field(name));
        label.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    list.sort_by_cached_key(label);
    Ok(list.into())
}

fn numbered(args: &Args<'_>) -> Result<Value> {
    let numbered = args.values.iter().enumerate();
    let numbered = numbered.map(|(at, value)| (Arc::from(format!("arg{at}")), value.clone()));
    Ok(Value::from(numbered.collect::<BTreeMap<Arc<str>, Value>>()))
}

fn replace_all(args: &Args<'_>) -> Result<Value> {
    let replaced = args
        .regex(0)?
        .replace_all(args.text(2)?, args.text(1)?)
        .into_owned();
    Ok(replaced.into())
}

fn link(args: &Args<'_>, tab: u8) -> Result<Value> {
    let escaped = gotmpl::url_encode(args.text(0)?);
    Ok(format!("/graph?g0.expr={escaped}&g0.tab={tab}").into())
}

fn percentage(args: &Args<'_>) -> Result<Value> {
    let value = latewood_promql::number::general_to(args.float(0)? * 100.0, 4);
    Ok(format!("{value}%").into())
}

fn timestamp(args: &Args<'_>) -> Result<Value> {
    let seconds = args.float(0)?;
    if !seconds.is_finite() {
        return Ok(latewood_promql::number::general_to(seconds, 4).into());
    }
    Ok(Time(args.time_ms(0)?).shown().into())
}

fn parse_duration(args: &Args<'_>) -> Result<Value> {
    let text = args.text(0)?;
    let (sign, positive) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    match duration::parse(positive) {
        Ok(millis) => Ok(Value::Float(sign * millis as f64 / 1000.0)),
        Err(error) => args.failed(error),
    }
}
