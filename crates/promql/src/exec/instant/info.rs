//! `info`: series with labels of information metrics that have the same `instance` and `job`.
//!
//! Which series of an information metric counts is judged step by step: of two with the same
//! identifying labels that of the newer sample. A series of the input is therefore one series of
//! the result for each set of labels that it has in turn. Tested by the differential test.

use crate::column::Column;
use crate::exec::constant::nothing;
use crate::exec::effects::Input;
use crate::exec::reference::Reference;
use crate::exec::selector::{ALWAYS_MS, Selector, Takes};
use crate::exec::tally::Tally;
use crate::exec::{Context, EvalError, Node, Result, Series, Work};
use crate::labels::{Labels, METADATA, METRIC};
use crate::source::Matcher;
use latewood_wire::selector::{Patterns, Test};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const IDENTIFYING: [&str; 2] = ["instance", "job"];
/// The information metric where none is named.
const TARGET: &[u8] = b"target_info";

/// A vector with the labels of information metrics.
pub(crate) struct Info {
    input: Input,
    reference: Reference,
    steps: usize,
    /// Conditions on the name of information metrics.
    names: Vec<Matcher>,
    /// Conditions on the labels that are taken over; all are if there is none.
    data: Vec<Matcher>,
    outputs: Vec<Output>,
    choices: Vec<Choices>,
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
        input: Input,
        reference: Reference,
        steps: usize,
        matchers: &[Matcher],
    ) -> Self {
        let (names, data) = parted(matchers);
        Self {
            input,
            reference,
            steps,
            names,
            data,
            outputs: Vec::new(),
            choices: Vec::new(),
        }
    }

    #[inline(never)]
    pub(crate) fn operator(mut self, ctx: &Context<'_>) -> Result<Node> {
        let (infos, found) = self.find(ctx)?;
        let mut by_pair: BTreeMap<[String; 2], Vec<usize>> = BTreeMap::new();
        for at in found {
            let pair = pair(&infos.series()[at].labels).map(str::to_owned);
            by_pair.entry(pair).or_default().push(at);
        }
        let mut twice = None;
        // The first choice is for series without information.
        let bare = self.choose(&infos, Vec::new(), &mut twice, ctx)?;
        self.choices.push(bare);
        let mut places: HashMap<[String; 2], usize> = HashMap::new();
        for (pair, found) in by_pair {
            let choices = self.choose(&infos, found, &mut twice, ctx)?;
            ctx.hold(choices.by_step.len() * size_of::<u32>())?;
            places.insert(pair, self.choices.len());
            self.choices.push(choices);
        }
        self.check(twice, ctx)?;
        let mut made = Vec::new();
        let mut tally = Tally::new(ctx);
        for at in self.input.node.all() {
            let series = self.input.node.series()[at].clone();
            if self.is_info(&series) {
                let choice = None;
                self.outputs.push(Output { input: at, choice });
                made.push(series);
                continue;
            }
            let pair = pair(&series.labels).map(str::to_owned);
            let choices = places.get(&pair).copied().unwrap_or(0);
            for (series, output) in self.spread(at, choices, &infos, &mut tally, ctx)? {
                made.push(series);
                self.outputs.push(output);
            }
        }
        tally.settle()?;
        let needed: BTreeSet<usize> = self.outputs.iter().map(|output| output.input).collect();
        let all = 0..self.input.node.series().len();
        let unneeded = all.filter(|at| !needed.contains(at));
        self.input.hear(unneeded, self.steps, ctx)?;
        Ok(Node::new(made, move |at, work, out| {
            self.restricted(&self.outputs[at], work, out)
        }))
    }

    /// The series that are information metrics themselves stay as they are.
    fn is_info(&self, series: &Series) -> bool {
        let name = series.labels.metric().as_bytes();
        self.names.iter().all(|matcher| matcher.passes(name))
    }

    /// The information series that may count for the series of the input.
    fn find(&self, ctx: &Context<'_>) -> Result<(Node, Vec<usize>)> {
        // Values of each label, by which of the labels there are.
        let mut wanted: HashMap<[bool; 2], [BTreeSet<&str>; 2]> = HashMap::new();
        for series in self.input.node.series() {
            let pair = pair(&series.labels);
            if pair != ["", ""] && !self.is_info(series) {
                let sets = wanted.entry(pair.map(str::is_empty)).or_default();
                for (set, value) in sets.iter_mut().zip(pair) {
                    set.insert(value);
                }
            }
        }
        if wanted.is_empty() {
            return Ok((nothing(), Vec::new()));
        }
        let infos = Selector {
            matchers: &[&self.names[..], &self.data].concat(),
            reference: self.reference,
            takes: Takes::Stamp,
            within_ms: ALWAYS_MS,
        };
        let infos = infos.operator(ctx)?;
        let series = infos.series().iter().enumerate();
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
        Ok((infos, found))
    }

    /// Which of the information series `found` with one pair of labels count at each step.
    fn choose(
        &self,
        infos: &Node,
        found: Vec<usize>,
        twice: &mut Option<Twice>,
        ctx: &Context<'_>,
    ) -> Result<Choices> {
        let steps = self.steps;
        let mut newest: BTreeMap<&str, Vec<Option<(f64, usize)>>> = BTreeMap::new();
        let each_bytes = steps * size_of::<Option<(f64, usize)>>();
        infos.each(found, steps, ctx, |at, column| {
            let name = infos.series()[at].labels.metric();
            if !newest.contains_key(name) {
                ctx.hold(each_bytes)?;
            }
            let newest = newest.entry(name).or_insert_with(|| vec![None; steps]);
            for step in column.present() {
                let time_ms = column.values[step];
                match newest[step] {
                    Some((held_ms, held)) if held_ms == time_ms => {
                        note(twice, step, || same_time(infos, held, at, time_ms));
                    }
                    Some((held_ms, _)) if held_ms > time_ms => {}
                    _ => newest[step] = Some((time_ms, at)),
                }
            }
            Ok(())
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
        ctx.release(newest.len() * each_bytes);
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

    /// The results of series `at` of the input; the choices of its labels are `choices`.
    fn spread(
        &self,
        at: usize,
        choices: usize,
        infos: &Node,
        tally: &mut Tally<'_>,
        ctx: &Context<'_>,
    ) -> Result<Vec<(Series, Output)>> {
        let mut made = Vec::new();
        for (number, set) in self.choices[choices].sets.iter().enumerate() {
            if set.is_empty() && !self.data.iter().all(|matcher| matcher.passes(b"")) {
                continue;
            }
            let base = &self.input.node.series()[at];
            let infos = set.iter().map(|info| &infos.series()[*info].labels);
            let choice = Some((choices, number as u32));
            let output = Output { input: at, choice };
            match self.added(&base.labels, infos) {
                Ok(added) => {
                    let mut series = base.clone();
                    series.labels = Labels::from_pairs(base.labels.iter().chain(added));
                    tally.add(2 * size_of::<Output>())?;
                    tally.add_series(&series)?;
                    made.push((series, output));
                }
                Err(name) => {
                    let mut column = Column::default();
                    ctx.work(|work| self.restricted(&output, work, &mut column))?;
                    if !column.is_empty() {
                        return Err(EvalError::Query(format!("conflicting label: {name}")));
                    }
                }
            }
        }
        Ok(made)
    }

    /// The samples of the input at the steps of a choice.
    fn restricted(&self, output: &Output, work: &mut Work<'_>, out: &mut Column) -> Result<()> {
        self.input.node.column(output.input, work, out)?;
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
    fn check(&self, twice: Option<Twice>, ctx: &Context<'_>) -> Result<()> {
        let Some(Twice { step, error }) = twice else {
            return Ok(());
        };
        let input = &self.input.node;
        let mut error = Some(error);
        input.each(input.all(), self.steps, ctx, |_, column| {
            let is_here = column.has(step);
            error.take_if(|_| is_here).map_or(Ok(()), Err)
        })
    }
}

fn pair(labels: &Labels) -> [&str; 2] {
    IDENTIFYING.map(|name| labels.get(name))
}

/// What information metrics must match where the second argument has `matchers`.
pub(crate) fn matchers(matchers: &[Matcher]) -> Vec<Matcher> {
    let (names, data) = parted(matchers);
    [names, data].concat()
}

/// Conditions on names, and on other labels.
fn parted(matchers: &[Matcher]) -> (Vec<Matcher>, Vec<Matcher>) {
    let matchers = matchers.iter().cloned();
    let (names, data) = matchers.partition(|matcher| *matcher.name == *METRIC.as_bytes());
    (effective(names), data)
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

fn same_time(infos: &Node, held: usize, new: usize, time_ms: f64) -> EvalError {
    let labels = |at: usize| &infos.series()[at].labels;
    EvalError::Query(format!(
        "found duplicate series for info metric: existing {} @ {time_ms}, new {} @ {time_ms}",
        labels(held),
        labels(new)
    ))
}
