//! `topk`, `bottomk`, `limitk`, and `limit_ratio` of one step: some series of each group.
//!
//! What is picked is kept with its values, at most `k` for each group and step, so that no column
//! is computed twice. Of one step, series come group by group in the order that Prometheus gives.

use crate::exec::constant::nothing;
use crate::exec::effects::Input;
use crate::exec::fold::{Sample, fold_all};
use crate::exec::grouping::Grouping;
use crate::exec::heap::{self, Entry};
use crate::exec::limit_ratio::{self, offset, ratio_holds};
use crate::exec::param::Param;
use crate::exec::{Context, EvalError, Node, Result, Series};
use crate::number::general;

/// What is picked of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picks {
    /// The largest values.
    Top,
    /// The smallest values.
    Bottom,
    /// The first series.
    First,
    /// Series by their hash.
    Ratio,
}

/// The largest float below the largest 64-bit integer.
const K_MAX: f64 = 9_223_372_036_854_774_784.0;
/// The smallest 64-bit integer.
const K_MIN: f64 = -9_223_372_036_854_775_808.0;

/// How a heap of a group takes in samples.
struct Picking {
    picks: Picks,
    param: Param,
    /// Of each series, for `limit_ratio`.
    offsets: Vec<f64>,
}

impl Picking {
    fn add(
        &self,
        state: &mut Option<Vec<Entry>>,
        Sample {
            step,
            series,
            value,
        }: Sample,
    ) {
        let heap = state.get_or_insert_default();
        let entry = Entry { value, series };
        let param = self.param.at(step);
        if self.picks == Picks::Ratio {
            if ratio_holds(param, self.offsets[series]) {
                heap::push(heap, entry, heap::smallest);
            }
            return;
        }
        // Checked to be within bounds.
        let k = param as i64;
        if k < 1 {
            return;
        }
        let is_full = heap.len() as u64 >= k.unsigned_abs();
        let (less, enters): (heap::Less, fn(f64, f64) -> bool) = match self.picks {
            Picks::Top => (heap::smallest, |top, new| top < new),
            Picks::Bottom => (heap::largest, |top, new| top > new),
            Picks::First | Picks::Ratio => (heap::smallest, |_, _| false),
        };
        if !is_full {
            heap::push(heap, entry, less);
        } else if self.picks != Picks::First {
            let top = heap[0].value;
            if enters(top, value) || (top.is_nan() && !value.is_nan()) {
                heap::replace_top(heap, entry, less);
            }
        }
    }
}

#[derive(Default)]
struct Picked {
    series: Vec<Series>,
    /// Of each the steps at which it was picked, with the value.
    steps: Vec<Vec<(u32, f64)>>,
}

impl Picked {
    /// Takes what was picked of a group at one step, in order.
    fn take(
        &mut self,
        step: usize,
        entries: Vec<Entry>,
        from: &[Series],
        places: &mut [Option<usize>],
        ctx: &Context<'_>,
    ) -> Result<()> {
        for entry in entries {
            let place = match places[entry.series] {
                Some(place) => place,
                None => {
                    ctx.push(&mut self.series, from[entry.series].clone())?;
                    ctx.push(&mut self.steps, Vec::new())?;
                    *places[entry.series].insert(self.steps.len() - 1)
                }
            };
            // A grid has at most as many steps as samples may be held.
            ctx.push(&mut self.steps[place], (step as u32, entry.value))?;
        }
        Ok(())
    }
}

/// Some series of each group.
pub(crate) fn pick(
    picks: Picks,
    input: &Input,
    grouping: &Grouping,
    param: Param,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    let is_needed = match picks {
        Picks::Ratio => limit_ratio::check(&param, ctx)?,
        Picks::Top | Picks::Bottom | Picks::First => check(&param)?,
    };
    let series = input.node.series();
    if !is_needed {
        input.hear(0..series.len(), steps, ctx)?;
        return Ok(nothing());
    }
    let groups = grouping.groups(series, ctx)?;
    let (k, offsets) = match picks {
        Picks::Ratio => {
            let offsets = series.iter().map(|series| offset(&series.labels));
            (usize::MAX, offsets.collect())
        }
        // Checked to be within bounds.
        _ => (param.max as usize, Vec::new()),
    };
    let members = groups.members.iter();
    // As heaps grow.
    let room = |members: usize| members.min(k).next_power_of_two().max(4);
    let entries: usize = members.map(|members| room(members.len())).sum();
    let heaps = groups.members.len() * size_of::<Option<Vec<Entry>>>();
    let bytes = steps.saturating_mul(heaps + entries * size_of::<Entry>());
    ctx.hold(bytes)?;
    let picking = Picking {
        picks,
        param,
        offsets,
    };
    let add = |state: &mut _, sample| picking.add(state, sample);
    let folded = fold_all(&add, &input.node, &groups, steps, ctx)?;
    let mut places = vec![None; series.len()];
    let mut picked = Picked::default();
    let mut states = folded.states;
    for group in folded.order {
        for (step, state) in std::mem::take(&mut states[group]).into_iter().enumerate() {
            let mut entries = state.unwrap_or_default();
            match picks {
                Picks::Top if steps == 1 => heap::sort(&mut entries, heap::smallest),
                Picks::Bottom if steps == 1 => heap::sort(&mut entries, heap::largest),
                _ => {}
            }
            picked.take(step, entries, series, &mut places, ctx)?;
        }
    }
    ctx.release(bytes);
    let Picked {
        series,
        steps: at_steps,
    } = picked;
    Ok(Node::new(series, move |at, _, out| {
        out.reset(steps);
        for (step, value) in &at_steps[at] {
            out.set(*step as usize, *value);
        }
        Ok(())
    }))
}

/// Whether any step picks anything.
fn check(param: &Param) -> Result<bool> {
    if !param.has_nan && param.max < 1.0 {
        return Ok(false);
    }
    let error = |text: String| Err(EvalError::Query(text));
    if param.has_nan {
        return error("Parameter value is NaN".to_owned());
    }
    for (value, is_beyond, how) in [
        (param.min, param.min <= K_MIN, "underflows"),
        (param.max, param.max >= K_MAX, "overflows"),
    ] {
        if is_beyond {
            let value = general(value);
            return error(format!("Scalar value {value} {how} int64"));
        }
    }
    Ok(true)
}
