//! The labels of a vector that is absent.

use crate::labels::{Labels, METADATA};
use crate::tree::Expr;
use latewood_wire::selector::Test;
use std::collections::HashMap;

/// The labels that `absent` and `absent_over_time` give for their argument: those with one
/// equality matcher and no other matcher before it.
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
