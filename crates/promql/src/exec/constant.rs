//! What does not depend on the step: numbers, texts, expressions that are evaluated once.

use crate::exec::{Node, Series};

/// The same value at every step.
pub(crate) fn constant(value: f64, steps: usize) -> Node {
    Node::new(Series::scalar(), move |_, _, out| {
        out.fill(steps, value);
        Ok(())
    })
}

/// No series: a text, or what cannot match anything.
pub(crate) fn nothing() -> Node {
    Node::held(Vec::new(), Vec::new())
}

/// An input of one step, seen at every step.
pub(crate) fn invariant(mut input: Node, steps: usize) -> Node {
    Node::new(input.take_series(), move |at, work, out| {
        input.column(at, work, out)?;
        match out.get(0) {
            Some(value) => out.fill(steps, value),
            None => out.reset(steps),
        }
        Ok(())
    })
}
