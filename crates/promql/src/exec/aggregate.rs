//! Aggregations that give one series for each group.
//!
//! Few groups are folded while preparing, by all threads; of many groups each is folded when its
//! column is asked for, so that the states of all of them are never held at once. Where the series are
//! too many to be held at once, the states are, and series come and go ([`super::parts`]).

use crate::annotation::Place;
use crate::column::Column;
use crate::exec::count_values::count_values;
use crate::exec::effects::Input;
use crate::exec::fold::{Sample, fold_all, fold_column, fold_more};
use crate::exec::grouping::Grouping;
use crate::exec::kahan::{Kahan, Mean};
use crate::exec::limit_ratio::limit_ratio;
use crate::exec::param::Param;
use crate::exec::parts::Fed;
use crate::exec::pick::{Picks, pick};
use crate::exec::quantiles::quantiles;
use crate::exec::{Context, EvalError, Node, Result, Series};
use crate::labels::Labels;
use crate::tree::{self, Aggregator, Expr};
use std::collections::BTreeMap;

/// The operator of an aggregation of `input`; `param` is its first argument, unless that is a text.
///
/// # Errors
/// Where the first argument may not be used.
#[inline(never)]
pub(crate) fn aggregate(
    node: &tree::Aggregate,
    input: Fed<'_>,
    param: Option<&Node>,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    let grouping = Grouping::new(node);
    let all = Grouped {
        grouping: &grouping,
        steps,
        ctx,
    };
    match node.op {
        Aggregator::Sum => all.reduce(input, Kahan::new, Kahan::add, Kahan::total),
        Aggregator::Avg => all.reduce(input, Mean::new, Mean::add, Mean::value),
        Aggregator::Count => all.reduce(input, |_| 1.0, |count, _| *count += 1.0, |count| count),
        Aggregator::Group => all.reduce(input, |_| (), |(), _| (), |()| 1.0),
        // NaN counts only where a group has nothing else.
        Aggregator::Min => all.reduce(
            input,
            |value| value,
            |held, value| {
                if *held > value || held.is_nan() {
                    *held = value;
                }
            },
            |held| held,
        ),
        Aggregator::Max => all.reduce(
            input,
            |value| value,
            |held, value| {
                if *held < value || held.is_nan() {
                    *held = value;
                }
            },
            |held| held,
        ),
        Aggregator::Stdvar => {
            all.reduce(input, Deviation::new, Deviation::add, Deviation::variance)
        }
        Aggregator::Stddev => all.reduce(input, Deviation::new, Deviation::add, |deviation| {
            deviation.variance().sqrt()
        }),
        Aggregator::CountValues => match node.param.as_ref().map(Expr::bare) {
            Some(Expr::Text(label)) => count_values(label, &grouping, &input.whole()?, steps, ctx),
            _ => Err(missing()),
        },
        Aggregator::Quantile
        | Aggregator::Topk
        | Aggregator::Bottomk
        | Aggregator::Limitk
        | Aggregator::LimitRatio => {
            let place = Place {
                span: node.param.as_ref().map(Expr::span).unwrap_or_default(),
                by: node.span,
            };
            let param = Param::new(param.ok_or_else(missing)?, place, ctx)?;
            with_param(node, input.whole()?, param, &all)
        }
    }
}

/// The operator of an aggregation whose first argument is a number.
fn with_param(
    node: &tree::Aggregate,
    input: Node,
    param: Param,
    all: &Grouped<'_>,
) -> Result<Node> {
    let Grouped {
        grouping,
        steps,
        ctx,
    } = *all;
    let picks = match node.op {
        Aggregator::Topk => Picks::Top,
        Aggregator::Bottomk => Picks::Bottom,
        Aggregator::Limitk => Picks::First,
        Aggregator::LimitRatio => Picks::Ratio,
        _ => return quantiles(&input, grouping, steps, &param, ctx),
    };
    let input = Input::new(input, &node.expr);
    // Only an instant query shows the order of its groups.
    if picks == Picks::Ratio && steps > 1 {
        limit_ratio(input, param, steps, ctx)
    } else {
        pick(picks, &input, grouping, param, steps, ctx)
    }
}

fn missing() -> EvalError {
    EvalError::Query("aggregation without its parameter".to_owned())
}

/// Bytes of a group whose series come and go, beside its states and labels.
const GROUP_BYTES: usize = 256;
/// States up to this size are all held at once.
const EAGER_BYTES: usize = 32 << 20;

/// What all aggregations of groups need.
struct Grouped<'a> {
    grouping: &'a Grouping,
    steps: usize,
    ctx: &'a Context<'a>,
}

impl Grouped<'_> {
    /// One value for each group and step: a state made of the `first` sample, to which the others
    /// are added, and its `value`.
    fn reduce<S: Copy + Send + Sync + 'static>(
        &self,
        input: Fed<'_>,
        first: impl Fn(f64) -> S + Send + Sync + 'static,
        add: impl Fn(&mut S, f64) + Send + Sync + 'static,
        value: impl Fn(S) -> f64 + Send + Sync + 'static,
    ) -> Result<Node> {
        let Self { steps, ctx, .. } = *self;
        let fold = move |state: &mut Option<S>, sample: Sample| match state {
            Some(state) => add(state, sample.value),
            None => *state = Some(first(sample.value)),
        };
        let show = move |states: &[Option<S>], out: &mut Column| {
            out.reset(steps);
            for (step, state) in states.iter().enumerate() {
                if let Some(state) = state {
                    out.set(step, value(*state));
                }
            }
        };
        let states_bytes = move |groups: usize| groups * steps * size_of::<Option<S>>();
        if let Some(node) = self.reduce_some(&input, &fold, &show)? {
            return Ok(node);
        }
        let input = input.whole()?;
        let groups = self.grouping.groups(input.series(), ctx)?;
        let count = groups.members.len();
        let is_few = count < rayon::current_num_threads() * 2;
        if steps == 1 || is_few || states_bytes(count) <= EAGER_BYTES {
            let bytes = states_bytes(count);
            ctx.hold(bytes)?;
            ctx.hold(count * Column::len_bytes(steps))?;
            let folded = fold_all(&fold, &input, &groups, steps, ctx)?;
            let made = folded.order.iter().map(|group| {
                let mut column = Column::default();
                show(&folded.states[*group], &mut column);
                (groups.series[*group].clone(), column)
            });
            let (series, columns) = made.unzip();
            ctx.release(bytes);
            return Ok(Node::held(series, columns));
        }
        Ok(Node::new(groups.series, move |at, work, out| {
            let bytes = states_bytes(1);
            work.ctx.hold(bytes)?;
            let mut states = vec![None; steps];
            let mut column = work.take(steps)?;
            for member in &groups.members[at] {
                input.column(*member, work, &mut column)?;
                fold_column(&fold, &mut states, 0, *member, &column);
            }
            work.give(column);
            show(&states, out);
            work.ctx.release(bytes);
            Ok(())
        }))
    }

    /// The same where the series are too many to be held at once; otherwise `None`. Groups are in the
    /// order of their labels.
    fn reduce_some<S: Copy + Send + Sync>(
        &self,
        input: &Fed<'_>,
        fold: &(impl Fn(&mut Option<S>, Sample) + Sync),
        show: &impl Fn(&[Option<S>], &mut Column),
    ) -> Result<Option<Node>> {
        let Self { steps, ctx, .. } = *self;
        let mut all: BTreeMap<Labels, (Series, Vec<Option<S>>)> = BTreeMap::new();
        let group_bytes = steps * size_of::<Option<S>>() + Column::len_bytes(steps) + GROUP_BYTES;
        let is_done = input.each(self.grouping.named(), &mut |input, part| {
            let groups = self.grouping.groups(input.series(), part)?;
            let mut states = Vec::with_capacity(groups.series.len());
            for series in &groups.series {
                if !all.contains_key(&series.labels) {
                    ctx.hold(group_bytes + series.labels.len_bytes())?;
                    let first = (series.clone(), Vec::new());
                    all.insert(series.labels.clone(), first);
                }
                let known = all.get_mut(&series.labels);
                states.push(known.map_or_else(Vec::new, |known| std::mem::take(&mut known.1)));
            }
            let folded = fold_more(states, fold, &input, &groups, steps, part)?;
            for (series, states) in groups.series.iter().zip(folded.states) {
                if let Some(known) = all.get_mut(&series.labels) {
                    known.1 = states;
                }
            }
            Ok(())
        })?;
        if !is_done {
            return Ok(None);
        }
        let made = all.into_values().filter(|one| !one.1.is_empty());
        let made = made.map(|(series, states)| {
            let mut column = Column::default();
            show(&states, &mut column);
            (series, column)
        });
        let (series, columns) = made.unzip();
        Ok(Some(Node::held(series, columns)))
    }
}

/// The variance after Welford.
#[derive(Clone, Copy)]
struct Deviation {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    fn new(value: f64) -> Self {
        Self {
            count: 1.0,
            mean: value,
            squares: if value.is_finite() { 0.0 } else { f64::NAN },
        }
    }

    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }

    fn variance(self) -> f64 {
        self.squares / self.count
    }
}
