//! `topk`, `bottomk`, `limitk`, and `limit_ratio` of one step: some series of each group.
//!
//! What is picked is kept with its values, at most `k` for each group and step, so that no column
//! is computed twice. Of one step, series come group by group in the order that Prometheus gives.

use crate::column::Column;
use crate::exec::fold::{Fold, fold_all};
use crate::exec::grouping::Grouping;
use crate::exec::heap::{self, Entry};
use crate::exec::limit_ratio::{self, offset, ratio_holds};
use crate::exec::param::{Param, Values};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
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

/// Some series of each group.
pub(crate) struct Pick {
    picks: Picks,
    input: Node,
    grouping: Grouping,
    steps: usize,
    param: Param,
    series: Vec<Series>,
    /// Of each series the steps at which it was picked, with the value.
    picked: Vec<Vec<(u32, f64)>>,
}

/// How a heap of a group takes in samples.
struct Picking {
    picks: Picks,
    param: Values,
    /// Of each series, for `limit_ratio`.
    offsets: Vec<f64>,
}

impl Fold for Picking {
    type State = Vec<Entry>;

    fn add(&self, state: &mut Option<Vec<Entry>>, step: usize, series: usize, value: f64) {
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

impl Pick {
    pub(crate) fn new(
        picks: Picks,
        input: Node,
        grouping: Grouping,
        steps: usize,
        param: Param,
    ) -> Self {
        Self {
            picks,
            input,
            grouping,
            steps,
            param,
            series: Vec::new(),
            picked: Vec::new(),
        }
    }

    /// Takes what was picked of a group at one step, in order.
    fn take(
        &mut self,
        step: usize,
        mut entries: Vec<Entry>,
        places: &mut [Option<usize>],
        ctx: &Context<'_>,
    ) -> Result<(), EvalError> {
        if self.steps == 1 {
            match self.picks {
                Picks::Top => heap::sort(&mut entries, heap::smallest),
                Picks::Bottom => heap::sort(&mut entries, heap::largest),
                Picks::First | Picks::Ratio => {}
            }
        }
        for entry in entries {
            let place = match places[entry.series] {
                Some(place) => place,
                None => {
                    let series = self.input.series()[entry.series].clone();
                    ctx.push(&mut self.series, series)?;
                    ctx.push(&mut self.picked, Vec::new())?;
                    *places[entry.series].insert(self.picked.len() - 1)
                }
            };
            // A grid has at most as many steps as samples may be held.
            ctx.push(&mut self.picked[place], (step as u32, entry.value))?;
        }
        Ok(())
    }
}

impl Operator for Pick {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let param = self.param.values(ctx)?;
        self.input.prepare(ctx)?;
        let is_needed = match self.picks {
            Picks::Ratio => limit_ratio::check(&param, self.param.place, ctx)?,
            Picks::Top | Picks::Bottom | Picks::First => check(&param)?,
        };
        if !is_needed {
            let all = 0..self.input.series().len();
            return self.param.effects.hear(&*self.input, all, self.steps, ctx);
        }
        let groups = self.grouping.groups(self.input.series(), ctx)?;
        let k = match self.picks {
            Picks::Ratio => usize::MAX,
            // Checked to be within bounds.
            _ => param.max as usize,
        };
        let members = groups.members.iter();
        // As heaps grow.
        let room = |members: usize| members.min(k).next_power_of_two().max(4);
        let entries: usize = members.map(|members| room(members.len())).sum();
        let heaps = groups.members.len() * size_of::<Option<Vec<Entry>>>();
        let bytes = self
            .steps
            .saturating_mul(heaps + entries * size_of::<Entry>());
        ctx.hold(bytes)?;
        let offsets = match self.picks {
            Picks::Ratio => self
                .input
                .series()
                .iter()
                .map(|s| offset(&s.labels))
                .collect(),
            _ => Vec::new(),
        };
        let picking = Picking {
            picks: self.picks,
            param,
            offsets,
        };
        let folded = fold_all(&picking, &*self.input, &groups, self.steps, ctx)?;
        let mut places = vec![None; self.input.series().len()];
        let mut states = folded.states;
        for group in folded.order {
            for (step, state) in std::mem::take(&mut states[group]).into_iter().enumerate() {
                self.take(step, state.unwrap_or_default(), &mut places, ctx)?;
            }
        }
        ctx.release(bytes);
        Ok(())
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn compute(
        &self,
        at: usize,
        _: &Context<'_>,
        _: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        out.reset(self.steps);
        for (step, value) in &self.picked[at] {
            out.set(*step as usize, *value);
        }
        Ok(())
    }
}

/// Whether any step picks anything.
fn check(param: &Values) -> Result<bool, EvalError> {
    if !param.has_nan && param.max < 1.0 {
        return Ok(false);
    }
    let error = |text: String| Err(EvalError::Query(text));
    if param.has_nan {
        return error("Parameter value is NaN".to_owned());
    }
    if param.min <= K_MIN {
        return error(format!(
            "Scalar value {} underflows int64",
            general(param.min)
        ));
    }
    if param.max >= K_MAX {
        return error(format!(
            "Scalar value {} overflows int64",
            general(param.max)
        ));
    }
    Ok(true)
}
