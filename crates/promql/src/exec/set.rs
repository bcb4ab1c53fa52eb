//! `and`, `or`, `unless`: step by step, samples of one side where the other has or lacks some.

use crate::column::Column;
use crate::exec::binary::Operands;
use crate::exec::effects::Effects;
use crate::exec::matching::{Group, groups, sorted};
use crate::exec::presence::{Mask, presence};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::tree::{Matching, Op};

/// A set operation.
pub(crate) struct Set {
    op: Op,
    matching: Matching,
    left: Node,
    right: Node,
    effects: Operands<Effects>,
    steps: usize,
    /// Of each series of the result: its input and its mask.
    parts: Vec<Part>,
    /// Of each group.
    masks: Vec<Option<Mask>>,
    series: Vec<Series>,
}

struct Part {
    is_left: bool,
    at: usize,
    /// The group whose mask counts.
    group: Option<usize>,
}

impl Set {
    pub(crate) fn new(
        op: Op,
        matching: &Matching,
        nodes: Operands<Node>,
        effects: Operands<Effects>,
        steps: usize,
    ) -> Self {
        Self {
            op,
            matching: sorted(matching),
            left: nodes.left,
            right: nodes.right,
            effects,
            steps,
            parts: Vec::new(),
            masks: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Where the side that decides has a sample, for the groups that have both sides.
    fn find_masks(
        &self,
        groups: &[Group],
        ctx: &Context<'_>,
    ) -> Result<Vec<Option<Mask>>, EvalError> {
        let is_or = self.op == Op::Or;
        let decides = if is_or { &self.left } else { &self.right };
        let members = groups.iter().map(|group| {
            let members = if is_or { &group.left } else { &group.right };
            group.has_both().then_some(&members[..])
        });
        let mut masks = presence(&**decides, members, self.steps, ctx)?;
        if self.op != Op::And {
            for word in masks.iter_mut().flatten().flatten() {
                *word = !*word;
            }
        }
        Ok(masks)
    }

    /// Takes the series of one side, by place; only those of groups with a mask if `needs_mask`.
    fn take(
        &mut self,
        is_left: bool,
        groups: &[Group],
        is_masked: bool,
        needs_mask: bool,
        ctx: &Context<'_>,
    ) -> Result<(), EvalError> {
        let input = if is_left { &self.left } else { &self.right };
        let mut group_of = vec![0; input.series().len()];
        for (place, group) in groups.iter().enumerate() {
            let members = if is_left { &group.left } else { &group.right };
            members.iter().for_each(|at| group_of[*at] = place);
        }
        for (at, series) in input.series().iter().enumerate() {
            if needs_mask && self.masks[group_of[at]].is_none() {
                continue;
            }
            ctx.push(&mut self.series, series.clone())?;
            let part = Part {
                is_left,
                at,
                group: is_masked.then_some(group_of[at]),
            };
            ctx.push(&mut self.parts, part)?;
        }
        Ok(())
    }

    /// Hears what series of groups say that only one side has.
    fn hear(&self, groups: &[Group], ctx: &Context<'_>) -> Result<(), EvalError> {
        let single = |group: &&Group| !group.has_both();
        let right = groups.iter().filter(single).flat_map(|group| &group.right);
        self.effects
            .right
            .hear(&*self.right, right.copied(), self.steps, ctx)?;
        if self.op == Op::Unless {
            return Ok(());
        }
        let left = groups.iter().filter(single).flat_map(|group| &group.left);
        self.effects
            .left
            .hear(&*self.left, left.copied(), self.steps, ctx)
    }
}

impl Operator for Set {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.left.prepare(ctx)?;
        self.right.prepare(ctx)?;
        let groups = groups(&self.matching, self.left.series(), self.right.series(), ctx)?;
        self.masks = self.find_masks(&groups, ctx)?;
        let is_or = self.op == Op::Or;
        self.take(true, &groups, !is_or, self.op == Op::And, ctx)?;
        if is_or {
            self.take(false, &groups, true, false, ctx)?;
        } else {
            self.hear(&groups, ctx)?;
        }
        let sides = Operands {
            left: &*self.left,
            right: &*self.right,
        };
        // The others are computed anyway.
        let probes = Operands {
            left: self.op == Op::And && !self.effects.left.0,
            right: !is_or && !self.effects.right.0,
        };
        ctx.record_matches(groups, sides, probes, self.steps)
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
        let part = &self.parts[at];
        let input = if part.is_left {
            &self.left
        } else {
            &self.right
        };
        input.column(part.at, ctx, scratch, out)?;
        if let Some(mask) = part.group.and_then(|group| self.masks[group].as_ref()) {
            for (word, mask) in out.words_mut().iter_mut().zip(mask) {
                *word &= mask;
            }
        }
        Ok(())
    }
}
