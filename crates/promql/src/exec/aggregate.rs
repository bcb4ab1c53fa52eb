//! Aggregations that give one series for each group.
//!
//! Few groups are folded while preparing, by all threads; of many groups each is folded when its
//! column is asked for, so that the states of all of them are never held at once.

use crate::annotation::Place;
use crate::column::Column;
use crate::exec::count_values::CountValues;
use crate::exec::effects::{Effects, speaks};
use crate::exec::fold::{Fold, fold_all, fold_column};
use crate::exec::grouping::{Grouping, Groups};
use crate::exec::kahan::{Kahan, Mean};
use crate::exec::limit_ratio::LimitRatio;
use crate::exec::param::Param;
use crate::exec::pick::{Pick, Picks};
use crate::exec::quantiles::Quantiles;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::tree::{self, Aggregator, Expr};

/// The operator of an aggregation of `input`.
///
/// # Errors
/// Where its first argument may not be used.
pub(crate) fn operator(
    node: &tree::Aggregate,
    input: Node,
    param: Option<Node>,
    steps: usize,
) -> Result<Node, EvalError> {
    let grouping = Grouping::new(node);
    if let (Aggregator::CountValues, Some(label)) = (node.op, &node.param) {
        let Expr::Text(label) = label.bare() else {
            return Err(missing());
        };
        return Ok(Box::new(CountValues::new(label, grouping, input, steps)?));
    }
    let param = || {
        Ok::<_, EvalError>(Param {
            node: param.ok_or_else(missing)?,
            effects: Effects(speaks(&node.expr)),
            place: Place {
                span: node.param.as_ref().map(Expr::span).unwrap_or_default(),
                by: node.span,
            },
        })
    };
    let pick = |picks: Picks, input, grouping, param| -> Node {
        Box::new(Pick::new(picks, input, grouping, steps, param))
    };
    Ok(match node.op {
        Aggregator::Sum => Box::new(Aggregate::new(Sum, input, grouping, steps)),
        Aggregator::Avg => Box::new(Aggregate::new(Avg, input, grouping, steps)),
        Aggregator::Count => Box::new(Aggregate::new(Count, input, grouping, steps)),
        Aggregator::Group => Box::new(Aggregate::new(Group, input, grouping, steps)),
        Aggregator::Min => Box::new(Aggregate::new(Extreme::Min, input, grouping, steps)),
        Aggregator::Max => Box::new(Aggregate::new(Extreme::Max, input, grouping, steps)),
        Aggregator::Stddev => Box::new(Aggregate::new(Spread::Dev, input, grouping, steps)),
        Aggregator::Stdvar => Box::new(Aggregate::new(Spread::Var, input, grouping, steps)),
        Aggregator::Quantile => Box::new(Quantiles::new(input, grouping, steps, param()?)),
        Aggregator::Topk => pick(Picks::Top, input, grouping, param()?),
        Aggregator::Bottomk => pick(Picks::Bottom, input, grouping, param()?),
        Aggregator::Limitk => pick(Picks::First, input, grouping, param()?),
        // Only an instant query shows the order of its groups.
        Aggregator::LimitRatio if steps == 1 => pick(Picks::Ratio, input, grouping, param()?),
        Aggregator::LimitRatio => Box::new(LimitRatio::new(input, param()?)),
        Aggregator::CountValues => return Err(missing()),
    })
}

fn missing() -> EvalError {
    EvalError::Query("aggregation without its parameter".to_owned())
}

/// How a group becomes one value at each step.
trait Reduce: Fold + 'static {
    /// The value of a state.
    fn value(&self, state: &Self::State) -> f64;
}

/// States up to this size are all held at once.
const EAGER_BYTES: usize = 32 << 20;

/// An aggregation.
struct Aggregate<R: Reduce> {
    reduce: R,
    input: Node,
    grouping: Grouping,
    steps: usize,
    groups: Groups,
    /// The columns of the groups, if they were folded while preparing.
    columns: Option<Vec<Column>>,
    series: Vec<Series>,
}

impl<R: Reduce> Aggregate<R> {
    fn new(reduce: R, input: Node, grouping: Grouping, steps: usize) -> Self {
        Self {
            reduce,
            input,
            grouping,
            steps,
            groups: Groups::default(),
            columns: None,
            series: Vec::new(),
        }
    }

    fn states_bytes(&self, groups: usize) -> usize {
        groups * self.steps * size_of::<Option<R::State>>()
    }

    fn fold_now(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let groups = self.groups.members.len();
        let bytes = self.states_bytes(groups);
        ctx.hold(bytes)?;
        ctx.hold(groups * Column::len_bytes(self.steps))?;
        let input = &*self.input;
        let folded = fold_all(&self.reduce, input, &self.groups, self.steps, ctx)?;
        let order = folded.order.iter();
        let columns = order.clone().map(|group| {
            let mut column = Column::default();
            self.show(&folded.states[*group], &mut column);
            column
        });
        self.columns = Some(columns.collect());
        self.series = order
            .map(|group| self.groups.series[*group].clone())
            .collect();
        ctx.release(bytes);
        Ok(())
    }

    fn show(&self, states: &[Option<R::State>], out: &mut Column) {
        out.reset(self.steps);
        for (step, state) in states.iter().enumerate() {
            if let Some(state) = state {
                out.set(step, self.reduce.value(state));
            }
        }
    }
}

impl<R: Reduce> Operator for Aggregate<R> {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        self.groups = self.grouping.groups(self.input.series(), ctx)?;
        let groups = self.groups.members.len();
        let is_few = groups < rayon::current_num_threads() * 2;
        if self.steps == 1 || is_few || self.states_bytes(groups) <= EAGER_BYTES {
            return self.fold_now(ctx);
        }
        self.series = self.groups.series.clone();
        Ok(())
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
        if let Some(columns) = &self.columns {
            out.clone_from(&columns[at]);
            return Ok(());
        }
        let bytes = self.states_bytes(1);
        ctx.hold(bytes)?;
        let mut states = vec![None; self.steps];
        let mut column = scratch.take(self.steps, ctx)?;
        for member in &self.groups.members[at] {
            self.input.column(*member, ctx, scratch, &mut column)?;
            fold_column(&self.reduce, &mut states, 0, *member, &column);
        }
        scratch.give(column);
        self.show(&states, out);
        ctx.release(bytes);
        Ok(())
    }
}

struct Sum;

impl Fold for Sum {
    type State = Kahan;

    fn add(&self, state: &mut Option<Kahan>, _: usize, _: usize, value: f64) {
        match state {
            Some(kahan) => kahan.add(value),
            None => *state = Some(Kahan::new(value)),
        }
    }
}

impl Reduce for Sum {
    fn value(&self, state: &Kahan) -> f64 {
        state.total()
    }
}

struct Avg;

impl Fold for Avg {
    type State = Mean;

    fn add(&self, state: &mut Option<Mean>, _: usize, _: usize, value: f64) {
        match state {
            Some(mean) => mean.add(value),
            None => *state = Some(Mean::new(value)),
        }
    }
}

impl Reduce for Avg {
    fn value(&self, state: &Mean) -> f64 {
        state.value()
    }
}

struct Count;

impl Fold for Count {
    type State = f64;

    fn add(&self, state: &mut Option<f64>, _: usize, _: usize, _: f64) {
        *state = Some(state.unwrap_or(0.0) + 1.0);
    }
}

impl Reduce for Count {
    fn value(&self, state: &f64) -> f64 {
        *state
    }
}

struct Group;

impl Fold for Group {
    type State = ();

    fn add(&self, state: &mut Option<()>, _: usize, _: usize, _: f64) {
        *state = Some(());
    }
}

impl Reduce for Group {
    fn value(&self, (): &()) -> f64 {
        1.0
    }
}

/// NaN counts only where a group has nothing else.
enum Extreme {
    Min,
    Max,
}

impl Fold for Extreme {
    type State = f64;

    fn add(&self, state: &mut Option<f64>, _: usize, _: usize, value: f64) {
        let goes = |held: f64| match self {
            Self::Min => held > value || held.is_nan(),
            Self::Max => held < value || held.is_nan(),
        };
        if state.is_none_or(goes) {
            *state = Some(value);
        }
    }
}

impl Reduce for Extreme {
    fn value(&self, state: &f64) -> f64 {
        *state
    }
}

/// The variance after Welford, or its root.
enum Spread {
    Var,
    Dev,
}

#[derive(Clone, Copy)]
struct Deviation {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Fold for Spread {
    type State = Deviation;

    fn add(&self, state: &mut Option<Deviation>, _: usize, _: usize, value: f64) {
        let Some(state) = state else {
            *state = Some(Deviation {
                count: 1.0,
                mean: value,
                squares: if value.is_finite() { 0.0 } else { f64::NAN },
            });
            return;
        };
        state.count += 1.0;
        let delta = value - state.mean;
        state.mean += delta / state.count;
        state.squares += delta * (value - state.mean);
    }
}

impl Reduce for Spread {
    fn value(&self, state: &Deviation) -> f64 {
        let variance = state.squares / state.count;
        match self {
            Self::Var => variance,
            Self::Dev => variance.sqrt(),
        }
    }
}
