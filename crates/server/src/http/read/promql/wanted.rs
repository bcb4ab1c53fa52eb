//! The parameters of a query. What is wrong is told in the words and the order of Prometheus.

use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::parameters::Parameters;
use latewood_promql::Times;
use latewood_promql::engine::Settings;
use latewood_wire::prometheus::time::{parse_duration, parse_time};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Steps of a range query, beside the first.
const STEPS_MAX: i64 = 11_000;

/// A query that was asked for.
pub(super) struct Wanted {
    /// Its text.
    pub(super) text: String,
    /// Its times; those of an instant query are the same.
    pub(super) times: Times,
    pub(super) is_range: bool,
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
        let times = match is_range {
            true => range(parameters)?,
            false => instant(parameters)?,
        };
        let options = &context.shared.settings.promql;
        let longest = Duration::from_millis(options.timeout_ms);
        let longest = timeout(parameters)?.map_or(longest, |wanted| wanted.min(longest));
        let lookback_ms = match lookback_ms(parameters)? {
            0 => options.lookback_ms as i64,
            lookback_ms => lookback_ms,
        };
        Ok(Self {
            text: parameters.first("query").to_owned(),
            times,
            is_range,
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
    let step_ms = parse_duration(parameters.first("step"));
    let step_ms = step_ms.map_err(|error| Answer::parameter("step", error))?;
    if step_ms <= 0 {
        let wrong = "zero or negative query resolution step widths are not accepted. Try a \
                     positive integer";
        return Err(Answer::parameter("step", wrong));
    }
    if end_ms.saturating_sub(start_ms) / step_ms > STEPS_MAX {
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
    let timeout_ms = parse_duration(text).map_err(|error| Answer::parameter("timeout", error))?;
    match u64::try_from(timeout_ms) {
        Ok(timeout_ms) if timeout_ms > 0 => Ok(Some(Duration::from_millis(timeout_ms))),
        _ => {
            let wrong = format!("timeout must be positive, got {}", seconds(timeout_ms));
            Err(Answer::parameter("timeout", wrong))
        }
    }
}

/// What `lookback_delta` says; 0 where it does not say anything.
fn lookback_ms(parameters: &Parameters) -> Result<i64, Answer> {
    let text = parameters.first("lookback_delta");
    if text.is_empty() {
        return Ok(0);
    }
    let lookback_ms = parse_duration(text)
        .map_err(|error| Answer::bad(format!("error parsing lookback delta duration: {error}")))?;
    // As in Prometheus, one that is not positive is none.
    Ok(lookback_ms.max(0))
}

/// A duration that is not positive, as Go prints it.
fn seconds(duration_ms: i64) -> String {
    match duration_ms {
        0 => "0s".to_owned(),
        ms => format!("{}s", ms as f64 / 1000.0),
    }
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.map_or(0, |since| since.as_millis() as i64)
}
