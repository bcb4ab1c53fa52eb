//! Whether series that match the same ones ever have samples at the same step.
//!
//! Prometheus judges matching step by step; the first step that is ambiguous is the error.

use crate::exec::chunks::for_columns;
use crate::exec::matching::{Group, Term, match_labels};
use crate::exec::presence::has;
use crate::exec::{Context, EvalError, Node, Result};
use crate::tree::{Cardinality, Matching};

/// The two sides of a join; in [`Group`]s, left is the many side.
pub(crate) struct Sides<'a> {
    pub(crate) many: &'a Node,
    pub(crate) one: &'a Node,
    pub(crate) matching: &'a Matching,
    /// Whether two samples ever have a result.
    pub(crate) matches: bool,
    /// Whether a missing sample of the one side has a value.
    pub(crate) fills_one: bool,
    /// Whether a missing sample of either side has one.
    pub(crate) fills: bool,
    pub(crate) steps: usize,
}

/// Finds the first step at which a match is ambiguous.
///
/// # Errors
/// What is ambiguous there, with the series; those of the columns.
pub(crate) fn check(
    sides: &Sides<'_>,
    groups: &[Group],
    terms: &[Vec<Term>],
    ctx: &Context<'_>,
) -> Result<()> {
    let twice = sides.one_twice(groups, ctx)?;
    let many = match sides.matching.cardinality {
        _ if !sides.matches => None,
        Cardinality::OneToOne => sides.many_twice(groups, ctx)?,
        _ => sides.same_twice(groups, terms, ctx)?,
    };
    match (twice, many) {
        (Some(twice), many) if many.is_none_or(|step| twice.step <= step) => {
            Err(sides.duplicate(&twice))
        }
        (_, Some(_)) => Err(EvalError::Query(
            match sides.matching.cardinality {
                Cardinality::OneToOne => {
                    "multiple matches for labels: many-to-one matching must be explicit \
                     (group_left/group_right)"
                }
                _ => "multiple matches for labels: grouping labels must ensure unique matches",
            }
            .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Two series of the one side at the same step.
struct Twice {
    step: usize,
    first: usize,
    second: usize,
}

impl Sides<'_> {
    /// Bytes of the masks of `members` series.
    fn masks_bytes(&self, members: usize) -> usize {
        members * (size_of::<Vec<u64>>() + self.steps.div_ceil(64) * 8)
    }

    fn presence(&self, of: &Node, members: &[usize], ctx: &Context<'_>) -> Result<Vec<Vec<u64>>> {
        ctx.hold(self.masks_bytes(members.len()))?;
        let mut masks = Vec::with_capacity(members.len());
        for_columns(of, members, self.steps, ctx, |_, columns| {
            masks.extend(columns.iter().map(|column| column.words().to_vec()));
            Ok(())
        })?;
        Ok(masks)
    }

    /// The first step at which two series of one group are on the one side, and the other side
    /// has any sample at all.
    fn one_twice(&self, groups: &[Group], ctx: &Context<'_>) -> Result<Option<Twice>> {
        let mut found: Option<Twice> = None;
        let mut many = None;
        for group in groups.iter().filter(|group| group.right.len() > 1) {
            let masks = self.presence(self.one, &group.right, ctx)?;
            ctx.release(self.masks_bytes(masks.len()));
            let twice = twice_in(&masks);
            if twice.iter().all(|word| *word == 0) {
                continue;
            }
            let many = match (&many, self.fills) {
                (_, true) => &vec![u64::MAX; twice.len()],
                (Some(many), false) => many,
                (None, false) => many.insert(self.any(self.many, &self.many.all(), ctx)?),
            };
            let Some(step) = first_of(&twice, many) else {
                continue;
            };
            let mut held = (0..masks.len()).filter(|at| has(&masks[*at], step));
            let (Some(first), Some(second)) = (held.next(), held.next()) else {
                continue;
            };
            let twice = Twice {
                step,
                first: group.right[first],
                second: group.right[second],
            };
            let order = |twice: &Twice| (twice.step, twice.second);
            if found
                .as_ref()
                .is_none_or(|found| order(&twice) < order(found))
            {
                found = Some(twice);
            }
        }
        Ok(found)
    }

    /// The steps at which the one side of a group has a sample, or a fill.
    fn any_one(&self, group: &Group, ctx: &Context<'_>) -> Result<Vec<u64>> {
        if self.fills_one {
            return Ok(vec![u64::MAX; self.steps.div_ceil(64)]);
        }
        self.any(self.one, &group.right, ctx)
    }

    /// The steps at which any of `members` has a sample.
    fn any(&self, of: &Node, members: &[usize], ctx: &Context<'_>) -> Result<Vec<u64>> {
        let mut any = vec![0; self.steps.div_ceil(64)];
        for_columns(of, members, self.steps, ctx, |_, columns| {
            for column in columns {
                for (any, word) in any.iter_mut().zip(column.words()) {
                    *any |= word;
                }
            }
            Ok(())
        })?;
        Ok(any)
    }

    /// The first step at which two series of one group of the many side have a match.
    fn many_twice(&self, groups: &[Group], ctx: &Context<'_>) -> Result<Option<usize>> {
        let mut found = None;
        let matched = |group: &&Group| !group.right.is_empty() || self.fills_one;
        for group in groups.iter().filter(matched) {
            if group.left.len() > 1 {
                let step = self.first_twice(&group.left, group, ctx)?;
                found = found.into_iter().chain(step).min();
            }
        }
        Ok(found)
    }

    /// The first step at which two series of the many side with a match give the same labels.
    fn same_twice(
        &self,
        groups: &[Group],
        terms: &[Vec<Term>],
        ctx: &Context<'_>,
    ) -> Result<Option<usize>> {
        let mut found = None;
        for terms in terms.iter().filter(|terms| terms.len() > 1) {
            let mut members: Vec<usize> = terms.iter().filter_map(|term| term.many).collect();
            members.dedup();
            if members.len() < 2 {
                continue;
            }
            // All terms of a series are of one group.
            let step = self.first_twice(&members, &groups[terms[0].group], ctx)?;
            found = found.into_iter().chain(step).min();
        }
        Ok(found)
    }

    /// The first step at which two of `members` have samples, and the one side of their group.
    fn first_twice(
        &self,
        members: &[usize],
        group: &Group,
        ctx: &Context<'_>,
    ) -> Result<Option<usize>> {
        let twice = twice_in(&self.presence(self.many, members, ctx)?);
        ctx.release(self.masks_bytes(members.len()));
        if twice.iter().all(|word| *word == 0) {
            Ok(None)
        } else {
            Ok(first_of(&twice, &self.any_one(group, ctx)?))
        }
    }

    fn duplicate(&self, twice: &Twice) -> EvalError {
        let labels = |at: usize| &self.one.series()[at].labels;
        let matched = match_labels(self.matching, labels(twice.second));
        let (first, second) = (
            labels(twice.first).to_string(),
            labels(twice.second).to_string(),
        );
        let (first, second) = if first > second {
            (second, first)
        } else {
            (first, second)
        };
        let side = match self.matching.cardinality {
            Cardinality::OneToMany => "left",
            _ => "right",
        };
        EvalError::Query(format!(
            "found duplicate series for the match group {matched} on the {side} hand-side of the \
             operation: [{first}, {second}];many-to-many matching not allowed: matching labels \
             must be unique on one side"
        ))
    }
}

/// The steps that at least two masks have.
fn twice_in(masks: &[Vec<u64>]) -> Vec<u64> {
    let words = masks.first().map_or(0, Vec::len);
    let (mut once, mut twice) = (vec![0; words], vec![0; words]);
    for mask in masks {
        for ((once, twice), word) in once.iter_mut().zip(&mut twice).zip(mask) {
            *twice |= *once & word;
            *once |= word;
        }
    }
    twice
}

/// The first step of both masks.
fn first_of(a: &[u64], b: &[u64]) -> Option<usize> {
    let both = a.iter().zip(b).enumerate();
    let mut both = both.filter_map(|(at, (a, b))| {
        let word = a & b;
        (word != 0).then(|| at * 64 + word.trailing_zeros() as usize)
    });
    both.next()
}
