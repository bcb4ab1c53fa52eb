//! The values of durations.

use super::{PrepareError, Prepared, Times};
use crate::literal::is_out_of_range;
use crate::span::Span;
use crate::tree::{Duration, DurationOp, Expr};

/// The milliseconds of a duration, rounded towards zero.
pub(super) fn millis(duration: &Duration, times: &Times, may_be_negative: bool) -> Prepared<i64> {
    let seconds = seconds(duration, times)?;
    let fault = if !seconds.is_finite() {
        "duration is NaN or infinite"
    } else if seconds <= 0.0 && !may_be_negative {
        "duration must be greater than 0"
    } else if is_out_of_range(seconds) {
        "duration is out of range"
    } else {
        return Ok((seconds * 1000.0) as i64);
    };
    Err(at(duration.span, fault))
}

/// Positions are those of bytes here, as in Prometheus.
fn at(span: Span, fault: &str) -> PrepareError {
    PrepareError(format!("{}:{}: {fault}", span.start, span.end))
}

fn side(side: &Option<Expr>, times: &Times) -> Prepared<f64> {
    match side {
        Some(Expr::Number(number)) => Ok(number.value),
        Some(Expr::Duration(duration)) => seconds(duration, times),
        _ => Ok(0.0),
    }
}

fn seconds(duration: &Duration, times: &Times) -> Prepared<f64> {
    let left = side(&duration.left, times)?;
    let right = side(&duration.right, times)?;
    let is_sign = duration.left.is_none();
    let fault = |text| Err(at(duration.span, text));
    Ok(match duration.op {
        DurationOp::Step => times.step_ms as f64 / 1000.0,
        DurationOp::Range => times.end_ms.saturating_sub(times.start_ms) as f64 / 1000.0,
        DurationOp::MinOf => with_nan(left, right, f64::min),
        DurationOp::MaxOf => with_nan(left, right, f64::max),
        DurationOp::Add if is_sign => right,
        DurationOp::Sub if is_sign => -right,
        DurationOp::Add => left + right,
        DurationOp::Sub => left - right,
        DurationOp::Mul => left * right,
        DurationOp::Div if right == 0.0 => return fault("division by zero"),
        DurationOp::Div => left / right,
        DurationOp::Mod if right == 0.0 => return fault("modulo by zero"),
        DurationOp::Mod => left % right,
        DurationOp::Pow => left.powf(right),
    })
}

/// NaN where a side is, unlike the comparison of Rust.
fn with_nan(left: f64, right: f64, choose: fn(f64, f64) -> f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        f64::NAN
    } else {
        choose(left, right)
    }
}
