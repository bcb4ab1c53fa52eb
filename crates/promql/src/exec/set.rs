//! `and`, `or`, `unless`: step by step, samples of one side where the other has or lacks some.

use crate::exec::binary::Operands;
use crate::exec::effects::Input;
use crate::exec::matching::{Group, groups, sorted};
use crate::exec::presence::{Mask, presence};
use crate::exec::{Context, Node, Result, Series};
use crate::tree::{Matching, Op};

/// A series of the result.
struct Part {
    is_left: bool,
    /// Its place on its side.
    at: usize,
    /// The group whose mask counts.
    group: Option<usize>,
}

/// The operator of a set operation.
#[inline(never)]
pub(crate) fn set(
    op: Op,
    matching: &Matching,
    sides: Operands<Input>,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    let nodes = sides.as_ref().map(|side| &side.node);
    let groups = groups(
        &sorted(matching),
        nodes.left.series(),
        nodes.right.series(),
        ctx,
    )?;
    let masks = masks(op, nodes, &groups, steps, ctx)?;
    let (parts, series) = parts(op, nodes, &groups, &masks, ctx)?;
    if op != Op::Or {
        // Those of groups that only one side has.
        let single = |group: &&Group| !group.has_both();
        let right = groups.iter().filter(single).flat_map(|group| &group.right);
        sides.right.hear(right.copied(), steps, ctx)?;
        if op == Op::And {
            let left = groups.iter().filter(single).flat_map(|group| &group.left);
            sides.left.hear(left.copied(), steps, ctx)?;
        }
    }
    // The others are computed anyway.
    let probes = Operands {
        left: op == Op::And && !sides.left.speaks,
        right: op != Op::Or && !sides.right.speaks,
    };
    ctx.record_matches(groups, nodes, probes, steps)?;
    Ok(Node::new(series, move |at, work, out| {
        let part = &parts[at];
        let input = if part.is_left {
            &sides.left
        } else {
            &sides.right
        };
        input.node.column(part.at, work, out)?;
        if let Some(mask) = part.group.and_then(|group| masks[group].as_ref()) {
            for (word, mask) in out.words_mut().iter_mut().zip(mask) {
                *word &= mask;
            }
        }
        Ok(())
    }))
}

/// The series of the result: of the left side, and for `or` of the right one, too.
fn parts(
    op: Op,
    nodes: Operands<&Node>,
    groups: &[Group],
    masks: &[Option<Mask>],
    ctx: &Context<'_>,
) -> Result<(Vec<Part>, Vec<Series>)> {
    let (mut parts, mut series) = (Vec::new(), Vec::new());
    let is_or = op == Op::Or;
    for is_left in [true, false].into_iter().take(1 + usize::from(is_or)) {
        let input = if is_left { nodes.left } else { nodes.right };
        let mut group_of = vec![0; input.series().len()];
        for (place, group) in groups.iter().enumerate() {
            let members = if is_left { &group.left } else { &group.right };
            members.iter().for_each(|at| group_of[*at] = place);
        }
        for (at, one) in input.series().iter().enumerate() {
            if op == Op::And && masks[group_of[at]].is_none() {
                continue;
            }
            ctx.push(&mut series, one.clone())?;
            let part = Part {
                is_left,
                at,
                // The left side masks the right one of `or`, and is masked otherwise.
                group: (is_left != is_or).then_some(group_of[at]),
            };
            ctx.push(&mut parts, part)?;
        }
    }
    Ok((parts, series))
}

/// The steps at which samples of the masked side stay, for the groups that have both sides: where
/// the other one has a sample, or has none.
fn masks(
    op: Op,
    nodes: Operands<&Node>,
    groups: &[Group],
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Vec<Option<Mask>>> {
    let is_or = op == Op::Or;
    let decides = if is_or { nodes.left } else { nodes.right };
    let members = groups.iter().map(|group| {
        let members = if is_or { &group.left } else { &group.right };
        group.has_both().then_some(&members[..])
    });
    let mut masks = presence(decides, members, steps, ctx)?;
    if op != Op::And {
        for word in masks.iter_mut().flatten().flatten() {
            *word = !*word;
        }
    }
    Ok(masks)
}
