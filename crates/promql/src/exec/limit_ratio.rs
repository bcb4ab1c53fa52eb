//! `limit_ratio`: the series whose hash lies below a part of all hashes.

use crate::exec::effects::Input;
use crate::exec::param::Param;
use crate::exec::{Context, EvalError, Node, Result};
use crate::labels::Labels;
use crate::number::general;
use xxhash_rust::xxh64::xxh64;

/// The part of the series of an input that the ratio of each step takes.
pub(crate) fn limit_ratio(
    input: Input,
    param: Param,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    let is_needed = check(&param, ctx)?;
    // Places in the input, with their hashes.
    let (mut taken, mut kept) = (Vec::new(), Vec::new());
    let mut unneeded = Vec::new();
    for (at, series) in input.node.series().iter().enumerate() {
        let offset = offset(&series.labels);
        if is_needed && (ratio_holds(param.min, offset) || ratio_holds(param.max, offset)) {
            ctx.push(&mut taken, (at, offset))?;
            ctx.push(&mut kept, series.clone())?;
        } else {
            unneeded.push(at);
        }
    }
    input.hear(unneeded.into_iter(), steps, ctx)?;
    Ok(Node::new(kept, move |at, work, out| {
        let (at, offset) = taken[at];
        input.node.column(at, work, out)?;
        for step in 0..out.values.len() {
            if !ratio_holds(param.at(step), offset) {
                out.unset(step);
            }
        }
        Ok(())
    }))
}

/// Whether any step takes anything; warns of ratios beyond 1.
///
/// # Errors
/// Where a ratio is not a number.
pub(crate) fn check(param: &Param, ctx: &Context<'_>) -> Result<bool> {
    if param.has_nan {
        return Err(EvalError::Query("Ratio value is NaN".to_owned()));
    }
    for (got, limit) in [(param.max, 1.0), (param.min, -1.0)] {
        if got.abs() > 1.0 && got.signum() == limit {
            let text = format!(
                "ratio value should be between -1 and 1, got {}, capping to {limit}",
                general(got)
            );
            ctx.annotate(|annotations| annotations.warn(text, param.place));
        }
    }
    Ok(param.max != 0.0 || param.min != 0.0)
}

/// Whether a ratio takes a series: below it from the start, or a negative one from the end.
pub(crate) fn ratio_holds(ratio: f64, offset: f64) -> bool {
    let ratio = ratio.clamp(-1.0, 1.0);
    match ratio {
        0.0 => false,
        ratio if ratio > 0.0 => offset < ratio,
        ratio => offset >= 1.0 + ratio,
    }
}

/// Where the hash of labels lies between 0 and 1: that of the labels as Prometheus encodes them.
pub(crate) fn offset(labels: &Labels) -> f64 {
    let mut bytes = Vec::with_capacity(labels.len_bytes());
    for part in labels.iter().flat_map(|(name, value)| [name, value]) {
        let length = part.len();
        match u8::try_from(length) {
            Ok(length) if length < u8::MAX => bytes.push(length),
            _ => {
                bytes.push(u8::MAX);
                bytes.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
            }
        }
        bytes.extend_from_slice(part.as_bytes());
    }
    xxh64(&bytes, 0) as f64 / u64::MAX as f64
}
