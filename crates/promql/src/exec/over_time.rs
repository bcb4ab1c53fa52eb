//! What one window of samples gives: sums, means, deviations, lines.

use crate::exec::kahan::{Kahan, Mean};
use crate::exec::quantile::quantile;
use crate::exec::reference::seconds_between;
use crate::exec::whole::{are_whole, whole_sum};

/// A window as its functions see it; it has a sample.
pub(crate) struct Piece<'a> {
    /// Time of the step, milliseconds.
    pub(crate) step_ms: i64,
    pub(crate) timestamps: &'a [i64],
    pub(crate) values: &'a [f64],
    /// The other arguments of the function at the step, in their order.
    pub(crate) params: [f64; 2],
    /// Memory for values that are sorted.
    pub(crate) buffer: &'a mut Vec<f64>,
}

/// A function of a window; `None` where it is too short.
pub(crate) type OverTime = fn(&mut Piece<'_>) -> Option<f64>;

pub(crate) fn over_time(name: &str) -> Option<OverTime> {
    Some(match name {
        "sum_over_time" => |piece| Some(sum(piece.values)),
        "avg_over_time" => |piece| Some(mean(piece.values)),
        "count_over_time" => |piece| Some(piece.values.len() as f64),
        "present_over_time" | "absent_over_time" => |_| Some(1.0),
        "first_over_time" => |piece| piece.values.first().copied(),
        "last_over_time" => |piece| piece.values.last().copied(),
        "ts_of_first_over_time" => |piece| seconds(piece.timestamps.first()),
        "ts_of_last_over_time" => |piece| seconds(piece.timestamps.last()),
        "stdvar_over_time" => |piece| Some(variance(piece.values)),
        "stddev_over_time" => |piece| Some(variance(piece.values).sqrt()),
        "quantile_over_time" => |piece| {
            fill(piece);
            Some(quantile(piece.params[0], piece.buffer))
        },
        "mad_over_time" => |piece| Some(median_deviation(piece)),
        "integral" => |piece| Some(integral(piece)),
        "deriv" => |piece| {
            let from_ms = *piece.timestamps.first()?;
            line(piece, from_ms).map(|line| line.slope)
        },
        "predict_linear" => |piece| {
            let line = line(piece, piece.step_ms)?;
            Some(line.slope * piece.params[0] + line.at_origin)
        },
        "double_exponential_smoothing" => smoothed,
        _ => return None,
    })
}

fn seconds(time_ms: Option<&i64>) -> Option<f64> {
    time_ms.map(|time_ms| *time_ms as f64 / 1000.0)
}

fn sum(values: &[f64]) -> f64 {
    if are_whole(values) {
        return whole_sum(values);
    }
    let mut kahan = Kahan::default();
    for value in values {
        kahan.add(*value);
    }
    if kahan.sum.is_infinite() {
        kahan.sum
    } else {
        kahan.total()
    }
}

fn mean(values: &[f64]) -> f64 {
    if are_whole(values) {
        return whole_sum(values) / values.len() as f64;
    }
    let mut mean = Mean::new(values[0]);
    for value in &values[1..] {
        mean.add(*value);
    }
    mean.value()
}

/// The variance, after Welford.
fn variance(values: &[f64]) -> f64 {
    let mut count = 0.0;
    let (mut mean, mut squares) = (Kahan::default(), Kahan::default());
    for value in values {
        count += 1.0;
        let delta = value - mean.total();
        mean.add(delta / count);
        squares.add(delta * (value - mean.total()));
    }
    squares.total() / count
}

fn fill(piece: &mut Piece<'_>) {
    piece.buffer.clear();
    piece.buffer.extend_from_slice(piece.values);
}

/// The median distance from the median.
fn median_deviation(piece: &mut Piece<'_>) -> f64 {
    if piece.values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    fill(piece);
    let median = quantile(0.5, piece.buffer);
    for value in piece.buffer.iter_mut() {
        *value = (*value - median).abs();
    }
    quantile(0.5, piece.buffer)
}

/// The strategy of `integral`: the value at the left, at the right, or the mean of both.
pub(crate) fn is_strategy(value: f64) -> bool {
    [0.0, 1.0, 2.0].contains(&value)
}

/// The area under the samples; NaN counts as 0.
fn integral(piece: &Piece<'_>) -> f64 {
    let strategy = piece.params[0];
    let number = |value: f64| if value.is_nan() { 0.0 } else { value };
    let mut area = Kahan::default();
    for at in 1..piece.values.len() {
        let before = number(piece.values[at - 1]);
        let now = number(piece.values[at]);
        let height = match strategy {
            0.0 => Kahan::new(before),
            1.0 => Kahan::new(now),
            _ => middle(before, now),
        };
        if height != Kahan::default() {
            let width = seconds_between(piece.timestamps[at - 1], piece.timestamps[at]);
            area.lost += height.lost * width;
            area.add(height.sum * width);
        }
    }
    if area.sum.is_infinite() {
        area.sum
    } else {
        area.total()
    }
}

/// The mean of two values, without overflow.
fn middle(before: f64, now: f64) -> Kahan {
    let half = |mut kahan: Kahan, value: f64, by: f64| {
        kahan.add(value);
        Kahan {
            sum: kahan.sum / by,
            lost: kahan.lost / by,
        }
    };
    let whole = half(Kahan::new(before), now, 2.0);
    if whole.sum.is_infinite() && now.is_finite() && before.is_finite() {
        half(Kahan::new(before / 2.0), now / 2.0, 1.0)
    } else {
        whole
    }
}

struct Line {
    slope: f64,
    /// Its value at the origin of its times.
    at_origin: f64,
}

/// The line with the least squares through at least two samples.
fn line(piece: &Piece<'_>, origin_ms: i64) -> Option<Line> {
    let values = piece.values;
    if values.len() < 2 {
        return None;
    }
    let first = values[0];
    if values[1..].iter().all(|value| *value == first) {
        let (slope, at_origin) = if first.is_infinite() {
            (f64::NAN, f64::NAN)
        } else {
            (0.0, first)
        };
        return Some(Line { slope, at_origin });
    }
    let mut sums = [Kahan::default(); 4];
    for (time_ms, y) in piece.timestamps.iter().zip(values) {
        let x = seconds_between(origin_ms, *time_ms);
        for (sum, value) in sums.iter_mut().zip([x, *y, x * y, x * x]) {
            sum.add(value);
        }
    }
    let count = values.len() as f64;
    let [x, y, xy, xx] = sums.map(Kahan::total);
    let slope = (xy - x * y / count) / (xx - x * x / count);
    Some(Line {
        slope,
        at_origin: y / count - slope * x / count,
    })
}

/// Double exponential smoothing; factors are checked before.
fn smoothed(piece: &mut Piece<'_>) -> Option<f64> {
    let [smoothing, trend] = piece.params;
    let values = piece.values;
    if values.len() < 2 {
        return None;
    }
    let (mut before, mut last) = (0.0, values[0]);
    let mut rise = values[1] - values[0];
    for (at, value) in values.iter().enumerate().skip(1) {
        if at > 1 {
            rise = trend * (last - before) + (1.0 - trend) * rise;
        }
        let next = smoothing * value + (1.0 - smoothing) * (last + rise);
        (before, last) = (last, next);
    }
    Some(last)
}
