//! `and`, `or`, `unless`: step by step, samples of one side where the other has or lacks some.

use crate::column::Column;
use crate::exec::chunks::for_columns;
use crate::exec::effects::Effects;
use crate::exec::matching::{Group, groups};
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::tree::{Matching, Op};

/// A set operation.
pub(crate) struct Set {
    op: Op,
    matching: Matching,
    left: Node,
    right: Node,
    effects: (Effects, Effects),
    steps: usize,
    /// Of each series of the result: its input and its mask.
    parts: Vec<Part>,
    masks: Vec<Vec<u64>>,
    series: Vec<Series>,
}

struct Part {
    is_left: bool,
    at: usize,
    mask: Option<usize>,
}

impl Set {
    pub(crate) fn new(
        op: Op,
        matching: &Matching,
        (left, right): (Node, Node),
        effects: (Effects, Effects),
        steps: usize,
    ) -> Self {
        Self {
            op,
            matching: matching.clone(),
            left,
            right,
            effects,
            steps,
            parts: Vec::new(),
            masks: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Sets the mask of each group that has both sides: where the side that decides has a sample.
    fn find_masks(&mut self, groups: &[Group], ctx: &Context<'_>) -> Result<(), EvalError> {
        let decides = match self.op {
            Op::Or => &self.left,
            _ => &self.right,
        };
        let mut mask_of = vec![0; decides.series().len()];
        let mut members = Vec::new();
        for group in groups.iter().filter(|group| group.has_both()) {
            ctx.hold(self.steps.div_ceil(64) * 8)?;
            let group = match self.op {
                Op::Or => &group.left,
                _ => &group.right,
            };
            for member in group {
                mask_of[*member] = self.masks.len();
                members.push(*member);
            }
            self.masks.push(vec![0; self.steps.div_ceil(64)]);
        }
        members.sort_unstable();
        let masks = &mut self.masks;
        for_columns(&**decides, &members, self.steps, ctx, |members, columns| {
            for (member, column) in members.iter().zip(columns) {
                let mask = &mut masks[mask_of[*member]];
                for (mask, word) in mask.iter_mut().zip(column.words()) {
                    *mask |= word;
                }
            }
            Ok(())
        })?;
        if self.op != Op::And {
            for word in self.masks.iter_mut().flatten() {
                *word = !*word;
            }
        }
        Ok(())
    }

    /// Takes the series of the left side, by place, with their masks.
    fn take_left(&mut self, groups: &[Group], masks: &[Option<usize>]) {
        let mut mask_of = vec![None; self.left.series().len()];
        let mut taken = vec![false; mask_of.len()];
        for (group, mask) in groups.iter().zip(masks) {
            for at in &group.left {
                mask_of[*at] = *mask;
                taken[*at] = self.op != Op::And || mask.is_some();
            }
        }
        for (at, series) in self.left.series().iter().enumerate() {
            if taken[at] {
                self.series.push(series.clone());
                self.parts.push(Part {
                    is_left: true,
                    at,
                    mask: mask_of[at],
                });
            }
        }
    }

    /// The same of the right side, all of them.
    fn take_right(&mut self, groups: &[Group], masks: &[Option<usize>]) {
        let mut mask_of = vec![None; self.right.series().len()];
        for (group, mask) in groups.iter().zip(masks) {
            for at in &group.right {
                mask_of[*at] = *mask;
            }
        }
        for (at, series) in self.right.series().iter().enumerate() {
            self.series.push(series.clone());
            self.parts.push(Part {
                is_left: false,
                at,
                mask: mask_of[at],
            });
        }
    }
}

impl Operator for Set {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.left.prepare(ctx)?;
        self.right.prepare(ctx)?;
        let groups = groups(&self.matching, self.left.series(), self.right.series());
        self.find_masks(&groups, ctx)?;
        let mut next = 0..self.masks.len();
        let masks: Vec<Option<usize>> = groups
            .iter()
            .map(|group| match group.has_both() {
                true => next.next(),
                false => None,
            })
            .collect();
        match self.op {
            Op::Or => {
                self.take_left(&groups, &vec![None; groups.len()]);
                self.take_right(&groups, &masks);
            }
            _ => self.take_left(&groups, &masks),
        }
        if self.op == Op::Or {
            return Ok(());
        }
        // Series of groups that only one side has.
        let single = |group: &&Group| !group.has_both();
        let right = groups.iter().filter(single).flat_map(|group| &group.right);
        let (of_left, of_right) = self.effects;
        of_right.hear(&*self.right, right.copied(), self.steps, ctx)?;
        if self.op == Op::Unless {
            return Ok(());
        }
        let left = groups.iter().filter(single).flat_map(|group| &group.left);
        of_left.hear(&*self.left, left.copied(), self.steps, ctx)
    }

    fn series(&self) -> &[Series] {
        &self.series
    }

    fn column(
        &self,
        at: usize,
        ctx: &Context<'_>,
        scratch: &mut Scratch,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        let part = &self.parts[at];
        let input = match part.is_left {
            true => &self.left,
            false => &self.right,
        };
        input.column(part.at, ctx, scratch, out)?;
        if let Some(mask) = part.mask {
            for (word, mask) in out.words_mut().iter_mut().zip(&self.masks[mask]) {
                *word &= mask;
            }
        }
        Ok(())
    }
}
