//! `limit_ratio`: the series whose hash lies below a part of all hashes.

use crate::annotation::Place;
use crate::column::Column;
use crate::exec::param::{Param, Values};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::Labels;
use crate::number::general;
use xxhash_rust::xxh64::xxh64;

/// The part of the series of an input that the ratio of each step takes.
pub(crate) struct LimitRatio {
    input: Node,
    param: Param,
    values: Values,
    /// Places in the input, with their hashes.
    taken: Vec<(usize, f64)>,
    series: Vec<Series>,
}

impl LimitRatio {
    pub(crate) fn new(input: Node, param: Param) -> Self {
        Self {
            input,
            param,
            values: Values::default(),
            taken: Vec::new(),
            series: Vec::new(),
        }
    }
}

impl Operator for LimitRatio {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.values = self.param.values(ctx)?;
        self.input.prepare(ctx)?;
        let is_needed = check(&self.values, self.param.place, ctx)?;
        let mut unneeded = Vec::new();
        for (at, series) in self.input.series().iter().enumerate() {
            let offset = offset(&series.labels);
            let (low, high) = (self.values.min, self.values.max);
            if is_needed && (ratio_holds(low, offset) || ratio_holds(high, offset)) {
                ctx.push(&mut self.taken, (at, offset))?;
                ctx.push(&mut self.series, series.clone())?;
            } else {
                unneeded.push(at);
            }
        }
        let (effects, steps) = (self.param.effects, self.values.steps());
        effects.hear(&*self.input, unneeded.into_iter(), steps, ctx)
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
        let (at, offset) = self.taken[at];
        self.input.column(at, ctx, scratch, out)?;
        for step in 0..out.values.len() {
            if !ratio_holds(self.values.at(step), offset) {
                out.unset(step);
            }
        }
        Ok(())
    }
}

/// Whether any step takes anything; warns of ratios beyond 1.
///
/// # Errors
/// Where a ratio is not a number.
pub(crate) fn check(values: &Values, place: Place, ctx: &Context<'_>) -> Result<bool, EvalError> {
    if values.has_nan {
        return Err(EvalError::Query("Ratio value is NaN".to_owned()));
    }
    for (got, limit) in [(values.max, 1.0), (values.min, -1.0)] {
        if got.abs() > 1.0 && got.signum() == limit {
            let text = format!(
                "ratio value should be between -1 and 1, got {}, capping to {limit}",
                general(got)
            );
            ctx.annotate(|annotations| annotations.warn(text, place));
        }
    }
    Ok(values.max != 0.0 || values.min != 0.0)
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
