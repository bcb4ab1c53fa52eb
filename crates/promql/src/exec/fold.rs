//! Folds the columns of an input into a state of each group at each step.
//!
//! Columns are computed by all threads and folded in the order of their series, each thread over
//! its own groups or steps, so that a result does not depend on the number of threads.

use crate::column::Column;
use crate::exec::chunks::{for_columns, is_small};
use crate::exec::grouping::Groups;
use crate::exec::{Context, Node, Result};
use rayon::prelude::*;

/// Steps that one thread folds at a time, a multiple of 64.
const STEPS: usize = 1024;

/// A sample that is folded into the state of its group at its step.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) step: usize,
    /// The place of its series.
    pub(crate) series: usize,
    pub(crate) value: f64,
}

/// The states of all groups, and in which order groups had their first sample.
pub(crate) struct Folded<S> {
    /// By group and step.
    pub(crate) states: Vec<Vec<Option<S>>>,
    /// Groups with a sample, in the order of the first series that has one.
    pub(crate) order: Vec<usize>,
}

/// Folds all series of an input; a state is `None` before its first sample.
pub(crate) fn fold_all<S: Clone + Send + Sync>(
    add: &(impl Fn(&mut Option<S>, Sample) + Sync),
    input: &Node,
    groups: &Groups,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Folded<S>> {
    let states = vec![Vec::new(); groups.members.len()];
    fold_more(states, add, input, groups, steps, ctx)
}

/// The same on top of `states`, of which one without steps is that of a group without a sample; the
/// order is that of the groups that get their first sample.
pub(crate) fn fold_more<S: Clone + Send + Sync>(
    mut states: Vec<Vec<Option<S>>>,
    add: &(impl Fn(&mut Option<S>, Sample) + Sync),
    input: &Node,
    groups: &Groups,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Folded<S>> {
    let mut order = Vec::new();
    for_columns(input, &input.all(), steps, ctx, |wanted, columns| {
        let mut tasks: Vec<Task<'_, S>> = Vec::new();
        let mut task_of: Vec<(usize, usize)> = wanted
            .iter()
            .enumerate()
            .map(|(at, series)| (groups.of[*series], at))
            .collect();
        task_of.sort_by_key(|(group, _)| *group);
        let mut fresh = Vec::new();
        for (group, at) in task_of {
            let column = &columns[at];
            if column.is_empty() {
                continue;
            }
            match tasks.last_mut().filter(|task| task.group == group) {
                Some(task) => task.columns.push((wanted[at], column)),
                None => {
                    let mut states = std::mem::take(&mut states[group]);
                    if states.is_empty() {
                        fresh.push((at, group));
                        states = vec![None; steps];
                    }
                    tasks.push(Task {
                        group,
                        states,
                        columns: vec![(wanted[at], column)],
                    });
                }
            }
        }
        fresh.sort_unstable();
        order.extend(fresh.into_iter().map(|(_, group)| group));
        ctx.apart(|| {
            let each = |task: &mut Task<'_, S>| task.run(add, ctx);
            if is_small(wanted.len(), steps) {
                tasks.iter_mut().for_each(each);
            } else {
                tasks.par_iter_mut().for_each(each);
            }
        });
        for task in tasks {
            states[task.group] = task.states;
        }
        Ok(())
    })?;
    Ok(Folded { states, order })
}

/// The columns of one group in one chunk.
struct Task<'a, S> {
    group: usize,
    states: Vec<Option<S>>,
    columns: Vec<(usize, &'a Column)>,
}

impl<S: Clone + Send + Sync> Task<'_, S> {
    fn run(&mut self, add: &(impl Fn(&mut Option<S>, Sample) + Sync), ctx: &Context<'_>) {
        let columns = &self.columns;
        let parts = self.states.par_chunks_mut(STEPS).enumerate();
        parts.for_each(|(part, states)| {
            ctx.own(|| {
                for (series, column) in columns {
                    fold_column(add, states, part * STEPS, *series, column);
                }
            });
        });
    }
}

/// Folds a column into the states from step `first` on, a multiple of 64.
pub(crate) fn fold_column<S>(
    add: &impl Fn(&mut Option<S>, Sample),
    states: &mut [Option<S>],
    first: usize,
    series: usize,
    column: &Column,
) {
    let words = &column.words()[first / 64..(first + states.len()).div_ceil(64)];
    for (at, word) in words.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            let step = first + at * 64 + word.trailing_zeros() as usize;
            word &= word - 1;
            let value = column.values[step];
            let sample = Sample {
                step,
                series,
                value,
            };
            add(&mut states[step - first], sample);
        }
    }
}
