//! `absent` and `absent_over_time`: 1 at the steps where no series has a sample.
//!
//! Tested by `tests/evaluation/` and the differential test.

use crate::column::Column;
use crate::exec::chunks::for_columns;
use crate::exec::{Context, Node, Result, Series};
use crate::labels::{Labels, METADATA};
use crate::tree::Expr;
use latewood_wire::selector::Test;
use std::collections::HashMap;

/// The steps at which an input has nothing: one series, or none where there is no such step.
pub(crate) fn absent(
    input: &Node,
    labels: Labels,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    ctx.hold(Column::len_bytes(steps))?;
    let mut absent = Column::default();
    absent.fill(steps, 1.0);
    for_columns(input, &input.all(), steps, ctx, |_, columns| {
        for column in columns {
            for (absent, present) in absent.words_mut().iter_mut().zip(column.words()) {
                *absent &= !present;
            }
        }
        Ok(())
    })?;
    let series = (!absent.is_empty()).then(|| Series::new(labels));
    Ok(Node::held(series.into_iter().collect(), vec![absent]))
}

/// The labels that both give for their argument: those with one equality matcher and no other
/// matcher before it.
pub(crate) fn labels_of(argument: &Expr) -> Labels {
    let selector = match argument.bare() {
        Expr::Selector(selector) => selector,
        Expr::Range(range) => &range.selector,
        _ => return Labels::default(),
    };
    // Of each name its value, or nothing where another matcher came behind it.
    let mut values: HashMap<&str, Option<&str>> = HashMap::new();
    for matcher in &selector.matchers {
        let name = std::str::from_utf8(&matcher.name).unwrap_or_default();
        if METADATA.contains(&name) {
            continue;
        }
        match (values.get_mut(name), &matcher.test) {
            (Some(value), _) => *value = None,
            (None, Test::Equal(value)) => {
                let value = std::str::from_utf8(value).unwrap_or_default();
                values.insert(name, Some(value));
            }
            (None, _) => {}
        }
    }
    let pairs = values.into_iter();
    Labels::from_pairs(pairs.filter_map(|(name, value)| Some((name, value?))))
}
