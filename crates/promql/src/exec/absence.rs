//! The labels of a vector that is absent.

use crate::labels::{Labels, METADATA};
use crate::tree::Expr;
use latewood_wire::selector::Test;

/// The labels that `absent` and `absent_over_time` give for their argument: those with one
/// equality matcher and no other matcher before it.
pub(crate) fn labels_of(argument: &Expr) -> Labels {
    let selector = match argument.bare() {
        Expr::Selector(selector) => selector,
        Expr::Range(range) => &range.selector,
        _ => return Labels::default(),
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for matcher in &selector.matchers {
        let name = std::str::from_utf8(&matcher.name).unwrap_or_default();
        if METADATA.contains(&name) {
            continue;
        }
        match &matcher.test {
            Test::Equal(value) if !seen.contains(&name) => {
                seen.push(name);
                pairs.push((name, std::str::from_utf8(value).unwrap_or_default()));
            }
            _ => pairs.retain(|(held, _)| *held != name),
        }
    }
    Labels::from_pairs(pairs)
}
