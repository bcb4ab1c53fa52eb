//! At which steps any series of a group has a sample.

use crate::exec::chunks::for_columns;
use crate::exec::{Context, Node, Result};

/// A bit for each step.
pub(crate) type Mask = Vec<u64>;

pub(crate) fn has(mask: &[u64], step: usize) -> bool {
    mask[step / 64] >> (step % 64) & 1 == 1
}

/// The steps of each group of series, for those groups that have any.
pub(crate) fn presence<'a>(
    input: &Node,
    groups: impl Iterator<Item = Option<&'a [usize]>>,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Vec<Option<Mask>>> {
    let words = steps.div_ceil(64);
    let mut group_of = vec![0; input.series().len()];
    let mut wanted = Vec::new();
    let mut masks: Vec<Option<Mask>> = Vec::new();
    for members in groups {
        let mask = match members {
            None => None,
            Some(members) => {
                ctx.hold(words * 8)?;
                members.iter().for_each(|at| group_of[*at] = masks.len());
                wanted.extend_from_slice(members);
                Some(vec![0; words])
            }
        };
        masks.push(mask);
    }
    wanted.sort_unstable();
    for_columns(input, &wanted, steps, ctx, |wanted, columns| {
        for (at, column) in wanted.iter().zip(columns) {
            let mask = masks[group_of[*at]].iter_mut().flatten();
            for (mask, word) in mask.zip(column.words()) {
                *mask |= word;
            }
        }
        Ok(())
    })?;
    Ok(masks)
}
