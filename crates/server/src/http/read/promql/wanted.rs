//! The parameters of a query. What is wrong is told in the words and the order of Prometheus.

use crate::base::clock::now_ms;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::parameters::Parameters;
use latewood_promql::Times;
use latewood_promql::engine::Settings;
use latewood_wire::prometheus::time::{parse_duration_ns, parse_time};
use std::sync::Arc;
use std::time::Duration;

/// Steps of a range query, beside the first.
const STEPS_MAX: i128 = 11_000;
const NS_PER_MS: i64 = 1_000_000;

/// A query that was asked for.
pub(super) struct Wanted {
    pub(super) text: String,
    /// Its times; those of an instant query are the same.
    pub(super) times: Times,
    pub(super) is_range: bool,
    /// Rows of rules must have all late samples worked in.
    pub(super) is_fresh: bool,
    /// Series that are returned at most, if there is a limit.
    pub(super) limit: Option<usize>,
    /// The parameter `stats`.
    pub(super) stats: String,
    pub(super) longest: Duration,
    pub(super) settings: Settings,
}

impl Wanted {
    /// Reads the parameters.
    ///
    /// # Errors
    /// 400.
    pub(super) fn read(
        parameters: &Parameters,
        context: &Context,
        is_range: bool,
    ) -> Result<Self, Answer> {
        let limit = parameters.limit()?;
        let times = if is_range {
            range(parameters)?
        } else {
            instant(parameters)?
        };
        let options = &context.shared.settings.promql;
        let longest = Duration::from_millis(options.timeout_ms);
        let longest = timeout(parameters)?.map_or(longest, |wanted| wanted.min(longest));
        let lookback_ms = lookback_ms(parameters)?.unwrap_or(options.lookback_ms as i64);
        Ok(Self {
            text: parameters.first("query").to_owned(),
            times,
            is_range,
            is_fresh: is_fresh(parameters.first("fresh"))?,
            limit,
            stats: parameters.first("stats").to_owned(),
            longest,
            settings: Settings {
                lookback_ms,
                delays_name_removal: options.delays_name_removal,
                samples_max: options.samples_max as usize,
                memory_bytes_max: options.memory_bytes as usize,
                pool: Some(Arc::clone(&context.work.query_memory)),
                ..Settings::default()
            },
        })
    }
}

/// What `fresh` says.
fn is_fresh(text: &str) -> Result<bool, Answer> {
    match text {
        "" | "0" | "false" => Ok(false),
        "1" | "true" => Ok(true),
        other => {
            let wrong = format!("expected 1 or 0, got {other:?}");
            Err(Answer::parameter("fresh", wrong))
        }
    }
}

fn instant(parameters: &Parameters) -> Result<Times, Answer> {
    let at_ms = parameters.time("time")?.unwrap_or_else(now_ms);
    Ok(Times {
        start_ms: at_ms,
        end_ms: at_ms,
        step_ms: 0,
    })
}

fn range(parameters: &Parameters) -> Result<Times, Answer> {
    let time = |name| {
        let time = parse_time(parameters.first(name));
        time.map_err(|error| Answer::parameter(name, error))
    };
    let (start_ms, end_ms) = (time("start")?, time("end")?);
    if end_ms < start_ms {
        let wrong = "end timestamp must not be before start time";
        return Err(Answer::parameter("end", wrong));
    }
    let step_ns = parse_duration_ns(parameters.first("step"));
    let step_ns = step_ns.map_err(|error| Answer::parameter("step", error))?;
    // Steps are whole milliseconds.
    let step_ms = step_ns / NS_PER_MS;
    if step_ms <= 0 {
        let wrong = "zero or negative query resolution step widths are not accepted. Try a \
                     positive integer";
        return Err(Answer::parameter("step", wrong));
    }
    let span_ns = (i128::from(end_ms) - i128::from(start_ms)) * i128::from(NS_PER_MS);
    if span_ns / i128::from(step_ns) > STEPS_MAX {
        return Err(Answer::bad(
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the \
             query resolution (?step=XX)",
        ));
    }
    Ok(Times {
        start_ms,
        end_ms,
        step_ms,
    })
}

/// What `timeout` says.
fn timeout(parameters: &Parameters) -> Result<Option<Duration>, Answer> {
    let text = parameters.first("timeout");
    if text.is_empty() {
        return Ok(None);
    }
    let timeout_ns = parse_duration_ns(text);
    let timeout_ns = timeout_ns.map_err(|error| Answer::parameter("timeout", error))?;
    match u64::try_from(timeout_ns) {
        Ok(timeout_ns) if timeout_ns > 0 => Ok(Some(Duration::from_nanos(timeout_ns))),
        _ => {
            let wrong = format!("timeout must be positive, got {}", shown(timeout_ns));
            Err(Answer::parameter("timeout", wrong))
        }
    }
}

/// What `lookback_delta` says, if it says anything.
fn lookback_ms(parameters: &Parameters) -> Result<Option<i64>, Answer> {
    let text = parameters.first("lookback_delta");
    if text.is_empty() {
        return Ok(None);
    }
    let lookback_ns = parse_duration_ns(text)
        .map_err(|error| Answer::bad(format!("error parsing lookback delta duration: {error}")))?;
    // As in Prometheus, one that is not positive is none, and one below a millisecond finds nothing.
    Ok((lookback_ns > 0).then_some(lookback_ns / NS_PER_MS))
}

/// A duration as Go prints it: `-1m30s`, `1.5ms`.
fn shown(duration_ns: i64) -> String {
    let (sign, ns) = match duration_ns {
        0 => return "0s".to_owned(),
        ns => (if ns < 0 { "-" } else { "" }, ns.unsigned_abs()),
    };
    let (unit, digits) = match ns {
        ..1_000 => ("ns", 0),
        1_000..1_000_000 => ("µs", 3),
        1_000_000..1_000_000_000 => ("ms", 6),
        _ => ("s", 9),
    };
    let scale = 10_u64.pow(digits);
    let whole = match (unit, ns / scale) {
        ("s", s @ 3600..) => format!("{}h{}m{}", s / 3600, s / 60 % 60, s % 60),
        ("s", s @ 60..) => format!("{}m{}", s / 60, s % 60),
        (_, whole) => whole.to_string(),
    };
    let fraction = format!(".{:0width$}", ns % scale, width = digits as usize);
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    format!("{sign}{whole}{fraction}{unit}")
}
