//! `info`: series with labels of information metrics that have the same `instance` and `job`.
//!
//! Which series of an information metric counts is judged step by step: of two with the same
//! identifying labels that of the newer sample. A series of the input is therefore one series of
//! the result for each set of labels that it has in turn. Tested by the differential test.

use crate::column::{Column, Grid};
use crate::exec::effects::Effects;
use crate::exec::reference::Reference;
use crate::exec::selector::{Selector, Takes};
use crate::exec::tally::Tally;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::{Labels, METADATA, METRIC};
use crate::source::Matcher;
use latewood_wire::selector::{Patterns, Test};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const IDENTIFYING: [&str; 2] = ["instance", "job"];
/// The information metric where none is named.
const TARGET: &[u8] = b"target_info";

/// A vector with the labels of information metrics.
pub(crate) struct Info {
    input: Node,
    effects: Effects,
    reference: Reference,
    grid: Grid,
    /// Conditions on the name of information metrics.
    names: Vec<Matcher>,
    /// Conditions on the labels that are taken over; all are if there is none.
    data: Vec<Matcher>,
    outputs: Vec<Output>,
    choices: Vec<Choices>,
    series: Vec<Series>,
}

/// A series of the result.
struct Output {
    input: usize,
    /// Its choices and which of them; none is for all steps.
    choice: Option<(usize, u32)>,
}

/// The series of information metrics that count for one pair of identifying labels.
#[derive(Default)]
struct Choices {
    /// Which set counts at each step; empty if it is the same one at all of them.
    by_step: Vec<u32>,
    /// The sets: indexes of series of information metrics, of different names.
    sets: Vec<Vec<usize>>,
}

/// Two information series with the same identifying labels and the same time.
struct Twice {
    step: usize,
    error: EvalError,
}

impl Info {
    /// `matchers` are those of the second argument, if there is one.
    pub(crate) fn new(
        input: Node,
        effects: Effects,
        reference: Reference,
        grid: Grid,
        matchers: &[Matcher],
    ) -> Self {
        let matchers = matchers.iter().cloned();
        let (names, data): (Vec<_>, Vec<_>) =
            matchers.partition(|matcher| *matcher.name == *METRIC.as_bytes());
        Self {
            input,
            effects,
            reference,
            grid,
            names: effective(names),
            data,
            outputs: Vec::new(),
            choices: Vec::new(),
            series: Vec::new(),
        }
    }

    /// The series that are information metrics themselves stay as they are.
    fn is_info(&self, series: &Series) -> bool {
        let name = series.labels.metric().as_bytes();
        self.names.iter().all(|matcher| matcher.passes(name))
    }

    /// The information series that may count for the series of the input.
    fn find(&self, ctx: &Context<'_>) -> Result<(Selector, Vec<usize>), EvalError> {
        // Values of each label, by which of the labels there are.
        let mut wanted: HashMap<[bool; 2], [BTreeSet<&str>; 2]> = HashMap::new();
        for series in self.input.series() {
            let pair = pair(&series.labels);
            if pair != ["", ""] && !self.is_info(series) {
                let sets = wanted.entry(pair.map(str::is_empty)).or_default();
                for (set, value) in sets.iter_mut().zip(pair) {
                    set.insert(value);
                }
            }
        }
        let matchers = [&self.names[..], &self.data].concat();
        let mut selector = Selector::new(&matchers, self.reference, Takes::Stamp);
        if wanted.is_empty() {
            return Ok((selector, Vec::new()));
        }
        selector.prepare(ctx)?;
        let series = selector.series().iter().enumerate();
        let wanted = series.filter(|(_, series)| {
            let pair = pair(&series.labels);
            let sets = wanted.get(&pair.map(str::is_empty));
            sets.is_some_and(|sets| {
                sets.iter()
                    .zip(pair)
                    .all(|(set, value)| set.contains(value))
            })
        });
        let found = wanted.map(|(at, _)| at).collect();
        Ok((selector, found))
    }

    /// Which of the information series `found` with one pair of labels count at each step.
    fn choose(
        &self,
        selector: &Selector,
        found: &[usize],
        twice: &mut Option<Twice>,
        ctx: &Context<'_>,
    ) -> Result<Choices, EvalError> {
        let steps = self.grid.steps;
        let mut newest: BTreeMap<&str, Vec<Option<(f64, usize)>>> = BTreeMap::new();
        let mut bytes = 0;
        ctx.with_scratch(|scratch| {
            let mut column = scratch.take(self.grid.steps, ctx)?;
            for at in found {
                ctx.source.check()?;
                selector.column(*at, ctx, scratch, &mut column)?;
                let name = selector.series()[*at].labels.metric();
                if !newest.contains_key(name) {
                    bytes += steps * size_of::<Option<(f64, usize)>>();
                    ctx.hold(steps * size_of::<Option<(f64, usize)>>())?;
                }
                let newest = newest.entry(name).or_insert_with(|| vec![None; steps]);
                for step in column.present() {
                    let time_ms = column.values[step];
                    match newest[step] {
                        Some((held_ms, held)) if held_ms == time_ms => {
                            note(twice, step, || same_time(selector, held, *at, time_ms));
                        }
                        Some((held_ms, _)) if held_ms > time_ms => {}
                        _ => newest[step] = Some((time_ms, *at)),
                    }
                }
            }
            scratch.give(column);
            Ok::<_, EvalError>(())
        })?;
        let mut numbers: HashMap<Vec<usize>, u32> = HashMap::new();
        let mut choices = Choices::default();
        let mut tally = Tally::new(ctx);
        for step in 0..steps {
            let set = newest.values().filter_map(|newest| newest[step]);
            let set: Vec<usize> = set.map(|(_, at)| at).collect();
            if !numbers.contains_key(&set) {
                tally.add(2 * (size_of::<Vec<usize>>() + set.len() * size_of::<usize>()))?;
            }
            let number = *numbers.entry(set).or_insert_with_key(|set| {
                choices.sets.push(set.clone());
                (choices.sets.len() - 1) as u32
            });
            choices.by_step.push(number);
        }
        if choices.sets.len() == 1 {
            choices.by_step = Vec::new();
        }
        tally.settle()?;
        ctx.release(bytes);
        Ok(choices)
    }

    /// The labels that a set of information series adds; the label that two of them contradict.
    fn added<'a>(
        &self,
        base: &Labels,
        infos: impl Iterator<Item = &'a Labels>,
    ) -> Result<BTreeMap<&'a str, &'a str>, &'a str> {
        let mut added = BTreeMap::new();
        for (name, value) in infos.flat_map(Labels::iter) {
            let is_wanted = self.data.is_empty()
                || self
                    .data
                    .iter()
                    .any(|matcher| *matcher.name == *name.as_bytes());
            if METADATA.contains(&name) || !is_wanted {
                continue;
            }
            if added.get(name).is_some_and(|held| *held != value) {
                return Err(name);
            }
            if base.get(name).is_empty() {
                added.insert(name, value);
            }
        }
        Ok(added)
    }

    /// Whether a series without information stays.
    fn keeps_bare(&self) -> bool {
        self.data.iter().all(|matcher| matcher.passes(b""))
    }

    /// The results of series `at` of the input; the choices of its labels are `choices`.
    fn spread(
        &mut self,
        at: usize,
        choices: usize,
        selector: &Selector,
        tally: &mut Tally<'_>,
        ctx: &Context<'_>,
    ) -> Result<(), EvalError> {
        for (number, set) in self.choices[choices].sets.iter().enumerate() {
            if set.is_empty() && !self.keeps_bare() {
                continue;
            }
            let base = &self.input.series()[at];
            let infos = set.iter().map(|info| &selector.series()[*info].labels);
            let choice = Some((choices, number as u32));
            let output = Output { input: at, choice };
            match self.added(&base.labels, infos) {
                Ok(added) => {
                    let mut series = base.clone();
                    series.labels = Labels::from_pairs(base.labels.iter().chain(added));
                    tally.add(2 * size_of::<Output>())?;
                    tally.add_series(&series)?;
                    self.series.push(series);
                    self.outputs.push(output);
                }
                Err(name) => {
                    let mut column = Column::default();
                    ctx.with_scratch(|scratch| {
                        self.restricted(&output, ctx, scratch, &mut column)
                    })?;
                    if !column.is_empty() {
                        return Err(EvalError::Query(format!("conflicting label: {name}")));
                    }
                }
            }
        }
        Ok(())
    }

    /// The samples of the input at the steps of a choice.
    fn restricted(
        &self,
        output: &Output,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        self.input.column(output.input, ctx, scratch, out)?;
        if let Some((choices, number)) = output.choice {
            for (step, held) in self.choices[choices].by_step.iter().enumerate() {
                if *held != number {
                    out.unset(step);
                }
            }
        }
        Ok(())
    }

    /// An ambiguity is an error only where the input has any sample.
    fn check(&self, twice: Option<Twice>, ctx: &Context<'_>) -> Result<(), EvalError> {
        let Some(twice) = twice else { return Ok(()) };
        ctx.with_scratch(|scratch| {
            let mut column = scratch.take(self.grid.steps, ctx)?;
            for at in 0..self.input.series().len() {
                self.input.column(at, ctx, scratch, &mut column)?;
                if column.has(twice.step) {
                    return Err(twice.error);
                }
            }
            scratch.give(column);
            Ok(())
        })
    }
}

impl Operator for Info {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.input.prepare(ctx)?;
        let (selector, found) = self.find(ctx)?;
        let mut by_pair: BTreeMap<[String; 2], Vec<usize>> = BTreeMap::new();
        for at in found {
            let pair = pair(&selector.series()[at].labels).map(str::to_owned);
            by_pair.entry(pair).or_default().push(at);
        }
        let mut twice = None;
        // The first choice is for series without information.
        self.choices
            .push(self.choose(&selector, &[], &mut twice, ctx)?);
        let mut places: HashMap<[String; 2], usize> = HashMap::new();
        for (pair, found) in by_pair {
            let choices = self.choose(&selector, &found, &mut twice, ctx)?;
            ctx.hold(choices.by_step.len() * size_of::<u32>())?;
            places.insert(pair, self.choices.len());
            self.choices.push(choices);
        }
        self.check(twice, ctx)?;
        let mut tally = Tally::new(ctx);
        for at in 0..self.input.series().len() {
            let series = self.input.series()[at].clone();
            if self.is_info(&series) {
                self.outputs.push(Output {
                    input: at,
                    choice: None,
                });
                self.series.push(series);
                continue;
            }
            let pair = pair(&series.labels).map(str::to_owned);
            let choices = places.get(&pair).copied().unwrap_or(0);
            self.spread(at, choices, &selector, &mut tally, ctx)?;
        }
        tally.settle()?;
        let needed: BTreeSet<usize> = self.outputs.iter().map(|output| output.input).collect();
        let unneeded = (0..self.input.series().len()).filter(|at| !needed.contains(at));
        self.effects
            .hear(&*self.input, unneeded, self.grid.steps, ctx)
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
        self.restricted(&self.outputs[at], ctx, scratch, out)
    }
}

/// The identifying labels.
fn pair(labels: &Labels) -> [&str; 2] {
    IDENTIFYING.map(|name| labels.get(name))
}

/// The conditions on names: `target_info` if there is none, and only names that end in `_info` if
/// all of them exclude.
fn effective(mut names: Vec<Matcher>) -> Vec<Matcher> {
    let selects = |matcher: &Matcher| matches!(matcher.test, Test::Equal(_) | Test::Match(_));
    if names.is_empty() {
        names.push(Matcher::new(METRIC.as_bytes(), Test::Equal(TARGET.into())));
    } else if !names.iter().any(selects) {
        let all = Patterns::default().compile(".+_info").map(Test::Match);
        names.extend(all.map(|all| Matcher::new(METRIC.as_bytes(), all)));
    }
    names
}

/// Keeps the ambiguity of the first step.
fn note(twice: &mut Option<Twice>, step: usize, error: impl FnOnce() -> EvalError) {
    if twice.as_ref().is_none_or(|twice| step < twice.step) {
        let error = error();
        *twice = Some(Twice { step, error });
    }
}

fn same_time(selector: &Selector, held: usize, new: usize, time_ms: f64) -> EvalError {
    let labels = |at: usize| &selector.series()[at].labels;
    EvalError::Query(format!(
        "found duplicate series for info metric: existing {} @ {time_ms}, new {} @ {time_ms}",
        labels(held),
        labels(new)
    ))
}
