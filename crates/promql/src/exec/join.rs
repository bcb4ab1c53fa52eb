//! Arithmetic and comparison of two vectors: one to one, many to one, with fill values.
//!
//! Series are joined by their labels once. A pair of series whose group has no other pair is
//! evaluated when its column is asked for; where a side has several series of one group, their
//! steps are compared while preparing ([`crate::exec::overlap`]), since only samples at the same
//! step are ambiguous.
//!
//! "Many" is the left side, but the right one of `group_right`; "one" is the other.

use crate::column::Column;
use crate::exec::binary::{Apply, Operands};
use crate::exec::chunks::for_columns;
use crate::exec::effects::Effects;
use crate::exec::matching::{Group, Term, groups, match_labels, names, sorted};
use crate::exec::overlap::{Sides, check};
use crate::exec::presence::{Mask, has, presence};
use crate::exec::tally::Tally;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::labels::{Labels, METADATA};
use crate::tree::{Cardinality, Matching};
use std::collections::HashMap;

/// A join of two vectors.
pub(crate) struct Join {
    apply: Apply,
    matching: Matching,
    many: Node,
    one: Node,
    /// Of the many side and of the one side.
    of_many: Effects,
    of_one: Effects,
    steps: usize,
    series: Vec<Series>,
    /// Of each series the pairs that it consists of; they never overlap.
    terms: Vec<Vec<Term>>,
    /// Where the sides of each group have samples.
    many_present: Vec<Option<Mask>>,
    one_present: Vec<Option<Mask>>,
    /// Columns of the one side that several pairs need.
    shared: HashMap<usize, Column>,
}

impl Join {
    pub(crate) fn new(
        apply: Apply,
        matching: &Matching,
        nodes: Operands<Node>,
        effects: Operands<Effects>,
        steps: usize,
    ) -> Self {
        let (many_one, effects) = match matching.cardinality {
            Cardinality::OneToMany => (nodes.swapped(), effects.swapped()),
            _ => (nodes, effects),
        };
        Self {
            apply,
            matching: sorted(matching),
            many: many_one.left,
            one: many_one.right,
            of_many: effects.left,
            of_one: effects.right,
            steps,
            series: Vec::new(),
            terms: Vec::new(),
            many_present: Vec::new(),
            one_present: Vec::new(),
            shared: HashMap::new(),
        }
    }

    fn is_swapped(&self) -> bool {
        self.matching.cardinality == Cardinality::OneToMany
    }

    /// The values of missing samples: of the many side and of the one side.
    fn fills(&self) -> (Option<f64>, Option<f64>) {
        let (left, right) = (self.matching.fill_left, self.matching.fill_right);
        if self.is_swapped() {
            (right, left)
        } else {
            (left, right)
        }
    }

    /// The labels of the result of two series.
    fn labels(&self, many: &Labels, one: &Labels, ctx: &Context<'_>) -> Labels {
        let matching = &self.matching;
        let is_single = matching.cardinality == Cardinality::OneToOne;
        let drops_name = self.apply.changes_quantity()
            || (self.apply.returns_bool && !ctx.settings.delays_name_removal);
        let included = |name: &str| names(&matching.include, name);
        let own = many.iter().filter(|(name, _)| {
            let named = || names(&matching.labels, name);
            let is_dropped =
                (drops_name && METADATA.contains(name)) || (is_single && named() != matching.is_on);
            !is_dropped && !included(name)
        });
        if matching.include.is_empty() {
            return Labels::from_sorted(own);
        }
        Labels::from_pairs(own.chain(one.iter().filter(|(name, _)| included(name))))
    }

    /// Adds what a series of the many side gives with each of the other, and with the fill.
    fn add_many(
        &mut self,
        at: usize,
        group: usize,
        of: &Group,
        pairs: &mut Pairs<'_>,
        ctx: &Context<'_>,
    ) -> Result<(), EvalError> {
        let labels = self.many.series()[at].labels.clone();
        for one in &of.right {
            let labels = self.labels(&labels, &self.one.series()[*one].labels, ctx);
            let term = Term {
                many: Some(at),
                one: Some(*one),
                group,
                order: 0,
            };
            self.add(labels, term, pairs)?;
        }
        if self.fills().1.is_some() {
            let labels = self.labels(&labels, &match_labels(&self.matching, &labels), ctx);
            let term = Term {
                many: Some(at),
                one: None,
                group,
                order: 0,
            };
            self.add(labels, term, pairs)?;
        }
        Ok(())
    }

    /// Adds what a series of the one side gives with the fill.
    fn add_one(
        &mut self,
        at: usize,
        group: usize,
        pairs: &mut Pairs<'_>,
        ctx: &Context<'_>,
    ) -> Result<(), EvalError> {
        let labels = &self.one.series()[at].labels;
        let labels = self.labels(&match_labels(&self.matching, labels), labels, ctx);
        let term = Term {
            many: None,
            one: Some(at),
            group,
            order: 0,
        };
        self.add(labels, term, pairs)
    }

    fn add(
        &mut self,
        labels: Labels,
        mut term: Term,
        pairs: &mut Pairs<'_>,
    ) -> Result<(), EvalError> {
        pairs.tally.add(PAIR_BYTES + labels.own_bytes())?;
        term.order = pairs.terms;
        pairs.terms += 1;
        let next = self.series.len();
        let place = *pairs
            .places
            .entry((term.group, labels.clone()))
            .or_insert(next);
        if place == next {
            self.series.push(Series {
                labels,
                drops_name: self.apply.returns_bool,
            });
            self.terms.push(Vec::new());
        }
        self.terms[place].push(term);
        Ok(())
    }

    /// Where a side has samples, for the groups in which its fill may stand beside them.
    fn present(
        &self,
        groups: &[Group],
        is_many: bool,
        ctx: &Context<'_>,
    ) -> Result<Vec<Option<Mask>>, EvalError> {
        let (of_many, of_one) = self.fills();
        let (input, fill) = if is_many {
            (&self.many, of_many)
        } else {
            (&self.one, of_one)
        };
        let members = groups.iter().map(|group| {
            let members = if is_many { &group.left } else { &group.right };
            (fill.is_some() && group.has_both()).then_some(&members[..])
        });
        presence(&**input, members, self.steps, ctx)
    }

    /// Computes the columns of the one side that several pairs need, while there is room.
    fn share(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let mut uses = vec![0_usize; self.one.series().len()];
        for one in self.terms.iter().flatten().filter_map(|term| term.one) {
            uses[one] += 1;
        }
        let bytes = Column::len_bytes(self.steps);
        let mut wanted = Vec::new();
        for at in (0..uses.len()).filter(|at| uses[*at] > 1) {
            if !ctx.has_room(bytes) {
                break;
            }
            ctx.hold(bytes)?;
            wanted.push(at);
        }
        let shared = &mut self.shared;
        for_columns(&*self.one, &wanted, self.steps, ctx, |wanted, columns| {
            for (at, column) in wanted.iter().zip(columns) {
                shared.insert(*at, std::mem::take(column));
            }
            Ok(())
        })
    }

    /// Makes each pair a series, in the order of evaluation, which one step shows.
    fn split(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let terms: usize = self.terms.iter().map(Vec::len).sum();
        ctx.hold(terms.saturating_mul(PAIR_BYTES))?;
        let series = self.series.iter().zip(&self.terms);
        let mut pairs: Vec<(Term, Series)> = series
            .flat_map(|(series, terms)| terms.iter().map(|term| (*term, series.clone())))
            .collect();
        pairs.sort_by_key(|(term, _)| term.order);
        (self.terms, self.series) = pairs
            .into_iter()
            .map(|(term, series)| (vec![term], series))
            .unzip();
        Ok(())
    }

    /// Hears what the series without a pair say.
    fn hear(&self, ctx: &Context<'_>) -> Result<(), EvalError> {
        let mut many = vec![false; self.many.series().len()];
        let mut one = vec![false; self.one.series().len()];
        for term in self.terms.iter().flatten() {
            term.many.into_iter().for_each(|at| many[at] = true);
            term.one.into_iter().for_each(|at| one[at] = true);
        }
        let unneeded = |used: Vec<bool>| (0..used.len()).filter(move |at| !used[*at]);
        self.of_many
            .hear(&*self.many, unneeded(many), self.steps, ctx)?;
        self.of_one.hear(&*self.one, unneeded(one), self.steps, ctx)
    }

    /// Records which series match, where the query is explained.
    fn record(&self, mut groups: Vec<Group>, ctx: &Context<'_>) -> Result<(), EvalError> {
        let (fill_many, fill_one) = self.fills();
        // Those that stand beside a fill or speak are computed anyway.
        let mut sides = Operands {
            left: &*self.many,
            right: &*self.one,
        };
        let mut probes = Operands {
            left: fill_one.is_none() && !self.of_many.0,
            right: fill_many.is_none() && !self.of_one.0,
        };
        if self.is_swapped() {
            (sides, probes) = (sides.swapped(), probes.swapped());
            for group in &mut groups {
                std::mem::swap(&mut group.left, &mut group.right);
            }
        }
        ctx.record_matches(groups, sides, probes, self.steps)
    }

    /// Sets the steps of one pair.
    fn set(&self, term: &Term, many: &Column, one: &Column, out: &mut Column) {
        let (fill_many, fill_one) = self.fills();
        let value_of =
            |held: Option<usize>, column: &Column, fill: Option<f64>, step: usize| match held {
                Some(_) => column.get(step),
                None => fill,
            };
        let steps = match term.many {
            Some(_) => many,
            None => one,
        };
        // Where the side that the fill stands for has a sample after all.
        let missing = match (term.many, term.one) {
            (None, _) => self.many_present[term.group].as_ref(),
            (_, None) => self.one_present[term.group].as_ref(),
            _ => None,
        };
        for step in steps.present() {
            if missing.is_some_and(|mask| has(mask, step)) {
                continue;
            }
            let (Some(many), Some(one)) = (
                value_of(term.many, many, fill_many, step),
                value_of(term.one, one, fill_one, step),
            ) else {
                continue;
            };
            let value = if self.is_swapped() {
                self.apply.values(one, many)
            } else {
                self.apply.values(many, one)
            };
            if let Some(value) = value {
                out.set(step, value);
            }
        }
    }
}

/// Bytes of a pair of series: a term in a list of its own, a series, a place in the map.
const PAIR_BYTES: usize = 4 * size_of::<Term>() + 8 * size_of::<Series>();

/// What is known while pairs are found.
struct Pairs<'a> {
    tally: Tally<'a>,
    terms: usize,
    places: HashMap<(usize, Labels), usize>,
}

impl Operator for Join {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        if self.is_swapped() {
            self.one.prepare(ctx)?;
            self.many.prepare(ctx)?;
        } else {
            self.many.prepare(ctx)?;
            self.one.prepare(ctx)?;
        }
        // Left is the many side here, right the one side.
        let groups = groups(&self.matching, self.many.series(), self.one.series(), ctx)?;
        self.many_present = self.present(&groups, true, ctx)?;
        self.one_present = self.present(&groups, false, ctx)?;
        let mut pairs = Pairs {
            tally: Tally::new(ctx),
            terms: 0,
            places: HashMap::new(),
        };
        let mut many_group = vec![0; self.many.series().len()];
        let mut one_group = vec![0; self.one.series().len()];
        for (place, group) in groups.iter().enumerate() {
            group.left.iter().for_each(|at| many_group[*at] = place);
            group.right.iter().for_each(|at| one_group[*at] = place);
        }
        for (at, group) in many_group.iter().enumerate() {
            self.add_many(at, *group, &groups[*group], &mut pairs, ctx)?;
        }
        if self.fills().0.is_some() {
            for (at, group) in one_group.iter().enumerate() {
                self.add_one(at, *group, &mut pairs, ctx)?;
            }
        }
        pairs.tally.settle()?;
        let sides = Sides {
            many: &*self.many,
            one: &*self.one,
            matching: &self.matching,
            matches: !self.apply.is_trim(),
            fills_one: self.fills().1.is_some(),
            fills: self.fills() != (None, None),
            steps: self.steps,
        };
        check(&sides, &groups, &self.terms, ctx)?;
        if self.steps == 1 {
            self.split(ctx)?;
        }
        self.share(ctx)?;
        self.hear(ctx)?;
        self.record(groups, ctx)
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
        out.reset(self.steps);
        let mut many = scratch.take(self.steps, ctx)?;
        let mut own = scratch.take(self.steps, ctx)?;
        let mut held = None;
        let mut had_values = false;
        for term in &self.terms[at] {
            if let Some(at) = term.many
                && held != Some(at)
            {
                self.many.column(at, ctx, scratch, &mut many)?;
                held = Some(at);
            }
            let one = match term.one {
                None => &own,
                Some(at) => match self.shared.get(&at) {
                    Some(column) => column,
                    None => {
                        self.one.column(at, ctx, scratch, &mut own)?;
                        &own
                    }
                },
            };
            had_values |= match (term.many, term.one) {
                (Some(_), Some(_)) => many.present().any(|step| one.has(step)),
                (Some(_), None) => !many.is_empty(),
                (None, _) => !one.is_empty(),
            };
            self.set(term, &many, one, out);
        }
        self.apply.note_types(had_values, ctx);
        scratch.give(many);
        scratch.give(own);
        Ok(())
    }
}
