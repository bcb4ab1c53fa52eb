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
use crate::exec::effects::Input;
use crate::exec::matching::{Group, Term, groups, match_labels, names, sorted};
use crate::exec::overlap::{Sides, check};
use crate::exec::presence::{Mask, has, presence};
use crate::exec::tally::Tally;
use crate::exec::{Context, Node, Result, Series, Work};
use crate::labels::{Labels, is_metadata};
use crate::tree::{Cardinality, Matching};
use std::collections::HashMap;

/// A join of two vectors.
struct Join {
    apply: Apply,
    matching: Matching,
    many: Input,
    one: Input,
    steps: usize,
    /// Of each series the pairs that it consists of; they never overlap.
    terms: Vec<Vec<Term>>,
    /// Where the sides of each group have samples.
    many_present: Vec<Option<Mask>>,
    one_present: Vec<Option<Mask>>,
    /// Columns of the one side that several pairs need.
    shared: HashMap<usize, Column>,
}

/// The operator of a join.
///
/// # Errors
/// Where a match is ambiguous.
#[inline(never)]
pub(crate) fn join(
    apply: Apply,
    matching: &Matching,
    sides: Operands<Input>,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    let sides = match matching.cardinality {
        Cardinality::OneToMany => sides.swapped(),
        _ => sides,
    };
    let mut join = Join {
        apply,
        matching: sorted(matching),
        many: sides.left,
        one: sides.right,
        steps,
        terms: Vec::new(),
        many_present: Vec::new(),
        one_present: Vec::new(),
        shared: HashMap::new(),
    };
    let series = join.prepare(ctx)?;
    Ok(Node::new(series, move |at, work, out| {
        join.compute(at, work, out)
    }))
}

impl Join {
    /// Finds the series and their terms.
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<Vec<Series>> {
        // Left is the many side here, right the one side.
        let (many, one) = (&self.many.node, &self.one.node);
        let groups = groups(&self.matching, many.series(), one.series(), ctx)?;
        let (of_many, of_one) = self.fills();
        let many_present = self.present(many, &groups, |group| &group.left, of_many, ctx)?;
        let one_present = self.present(one, &groups, |group| &group.right, of_one, ctx)?;
        let (mut series, terms) = self.pairs(&groups, ctx)?;
        (self.many_present, self.one_present) = (many_present, one_present);
        self.terms = terms;
        let sides = Sides {
            many: &self.many.node,
            one: &self.one.node,
            matching: &self.matching,
            matches: !self.apply.is_trim(),
            fills_one: of_one.is_some(),
            fills: (of_many, of_one) != (None, None),
            steps: self.steps,
        };
        check(&sides, &groups, &self.terms, ctx)?;
        if self.steps == 1 {
            series = self.split(series, ctx)?;
        }
        self.share(ctx)?;
        self.hear(ctx)?;
        self.record(groups, ctx)?;
        Ok(series)
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
        let included = |name: &[u8]| names(&matching.include, name);
        let own = many.without(|name| {
            let named = || names(&matching.labels, name);
            (drops_name && is_metadata(name))
                || (is_single && named() != matching.is_on)
                || included(name)
        });
        if matching.include.is_empty() {
            return own;
        }
        let one = one.without(|name| !included(name));
        Labels::from_pairs(own.iter().chain(one.iter()))
    }

    /// The series of the result and their terms: each series of the many side with each of the
    /// other and with the fill, then those of the one side with the fill.
    fn pairs(&self, groups: &[Group], ctx: &Context<'_>) -> Result<(Vec<Series>, Vec<Vec<Term>>)> {
        let (many, one) = (self.many.node.series(), self.one.node.series());
        let (mut many_group, mut one_group) = (vec![0; many.len()], vec![0; one.len()]);
        for (place, group) in groups.iter().enumerate() {
            group.left.iter().for_each(|at| many_group[*at] = place);
            group.right.iter().for_each(|at| one_group[*at] = place);
        }
        let mut pairs = Pairs {
            tally: Tally::new(ctx),
            count: 0,
            places: HashMap::new(),
            returns_bool: self.apply.returns_bool,
            series: Vec::new(),
            terms: Vec::new(),
        };
        let (fills_many, fills_one) = self.fills();
        for (at, group) in many_group.into_iter().enumerate() {
            let held = &many[at].labels;
            for other in &groups[group].right {
                let labels = self.labels(held, &one[*other].labels, ctx);
                pairs.add(labels, Some(at), Some(*other), group)?;
            }
            if fills_one.is_some() {
                let labels = self.labels(held, &match_labels(&self.matching, held), ctx);
                pairs.add(labels, Some(at), None, group)?;
            }
        }
        if fills_many.is_some() {
            for (at, group) in one_group.into_iter().enumerate() {
                let held = &one[at].labels;
                let labels = self.labels(&match_labels(&self.matching, held), held, ctx);
                pairs.add(labels, None, Some(at), group)?;
            }
        }
        pairs.tally.settle()?;
        Ok((pairs.series, pairs.terms))
    }

    /// Where a side has samples, for the groups in which its fill may stand beside them.
    fn present(
        &self,
        side: &Node,
        groups: &[Group],
        members: fn(&Group) -> &[usize],
        fill: Option<f64>,
        ctx: &Context<'_>,
    ) -> Result<Vec<Option<Mask>>> {
        let members = groups
            .iter()
            .map(|group| (fill.is_some() && group.has_both()).then_some(members(group)));
        presence(side, members, self.steps, ctx)
    }

    /// Computes the columns of the one side that several pairs need, while there is room.
    fn share(&mut self, ctx: &Context<'_>) -> Result<()> {
        let mut uses = vec![0_usize; self.one.node.series().len()];
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
        for_columns(
            &self.one.node,
            &wanted,
            self.steps,
            ctx,
            |wanted, columns| {
                for (at, column) in wanted.iter().zip(columns) {
                    shared.insert(*at, std::mem::take(column));
                }
                Ok(())
            },
        )
    }

    /// Makes each pair a series, in the order of evaluation, which one step shows.
    fn split(&mut self, series: Vec<Series>, ctx: &Context<'_>) -> Result<Vec<Series>> {
        let terms: usize = self.terms.iter().map(Vec::len).sum();
        ctx.hold(terms.saturating_mul(PAIR_BYTES))?;
        let series = series.iter().zip(&self.terms);
        let mut pairs: Vec<(Term, Series)> = series
            .flat_map(|(series, terms)| terms.iter().map(|term| (*term, series.clone())))
            .collect();
        pairs.sort_by_key(|(term, _)| term.order);
        let pairs = pairs.into_iter().map(|(term, series)| (vec![term], series));
        let series;
        (self.terms, series) = pairs.unzip();
        Ok(series)
    }

    /// Hears what the series without a pair say.
    fn hear(&self, ctx: &Context<'_>) -> Result<()> {
        let mut many = vec![false; self.many.node.series().len()];
        let mut one = vec![false; self.one.node.series().len()];
        for term in self.terms.iter().flatten() {
            term.many.into_iter().for_each(|at| many[at] = true);
            term.one.into_iter().for_each(|at| one[at] = true);
        }
        let unneeded = |used: Vec<bool>| (0..used.len()).filter(move |at| !used[*at]);
        self.many.hear(unneeded(many), self.steps, ctx)?;
        self.one.hear(unneeded(one), self.steps, ctx)
    }

    /// Records which series match, where the query is explained.
    fn record(&self, mut groups: Vec<Group>, ctx: &Context<'_>) -> Result<()> {
        let (fill_many, fill_one) = self.fills();
        // Those that stand beside a fill or speak are computed anyway.
        let mut sides = Operands {
            left: &self.many.node,
            right: &self.one.node,
        };
        let mut probes = Operands {
            left: fill_one.is_none() && !self.many.speaks,
            right: fill_many.is_none() && !self.one.speaks,
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

    fn compute(&self, at: usize, work: &mut Work<'_>, out: &mut Column) -> Result<()> {
        out.reset(self.steps);
        let mut many = work.take(self.steps)?;
        let mut own = work.take(self.steps)?;
        let mut held = None;
        let mut had_values = false;
        for term in &self.terms[at] {
            if let Some(at) = term.many
                && held != Some(at)
            {
                self.many.node.column(at, work, &mut many)?;
                held = Some(at);
            }
            let one = match term.one {
                None => &own,
                Some(at) => match self.shared.get(&at) {
                    Some(column) => column,
                    None => {
                        self.one.node.column(at, work, &mut own)?;
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
        self.apply.note_types(had_values, work.ctx);
        work.give(many);
        work.give(own);
        Ok(())
    }
}

/// Bytes of a pair of series: a term in a list of its own, a series, a place in the map.
const PAIR_BYTES: usize = 4 * size_of::<Term>() + 8 * size_of::<Series>();

/// The pairs that were found, by the labels of their result within their group.
struct Pairs<'a> {
    tally: Tally<'a>,
    count: usize,
    places: HashMap<(usize, Labels), usize>,
    returns_bool: bool,
    series: Vec<Series>,
    terms: Vec<Vec<Term>>,
}

impl Pairs<'_> {
    fn add(
        &mut self,
        labels: Labels,
        many: Option<usize>,
        one: Option<usize>,
        group: usize,
    ) -> Result<()> {
        self.tally.add(PAIR_BYTES + labels.own_bytes())?;
        let term = Term {
            many,
            one,
            group,
            order: self.count,
        };
        self.count += 1;
        let next = self.series.len();
        let place = *self.places.entry((group, labels.clone())).or_insert(next);
        if place == next {
            self.series.push(Series {
                labels,
                drops_name: self.returns_bool,
            });
            self.terms.push(Vec::new());
        }
        self.terms[place].push(term);
        Ok(())
    }
}
