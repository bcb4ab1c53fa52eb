//! Binary operations: what an operator does with two values, and those with a scalar.

use crate::exec::effects::Input;
use crate::exec::instant::scalar::of_two;
use crate::exec::join::join;
use crate::exec::set::set;
use crate::exec::{Context, Node, Result};
use crate::span::Span;
use crate::tree::{Binary, Cardinality, Op, Type};

/// What belongs to the two sides of a binary operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<T> {
    pub(crate) left: T,
    pub(crate) right: T,
}

impl<T> Operands<T> {
    /// Borrowed.
    pub(crate) fn as_ref(&self) -> Operands<&T> {
        Operands {
            left: &self.left,
            right: &self.right,
        }
    }

    /// Both changed.
    pub(crate) fn map<U>(self, change: impl Fn(T) -> U) -> Operands<U> {
        Operands {
            left: change(self.left),
            right: change(self.right),
        }
    }

    /// The left one on the right.
    pub(crate) fn swapped(self) -> Self {
        Self {
            left: self.right,
            right: self.left,
        }
    }
}

/// The operator of a binary operation on its two sides.
///
/// # Errors
/// Where a match of series is ambiguous.
#[inline(never)]
pub(crate) fn binary(
    node: &Binary,
    left: Node,
    right: Node,
    steps: usize,
    ctx: &Context<'_>,
) -> Result<Node> {
    let span = node.left.span().to(node.right.span());
    let apply = Apply {
        op: node.op,
        returns_bool: node.returns_bool,
        span,
    };
    match (node.left.ty(), node.right.ty(), &node.matching) {
        (Type::Vector, Type::Vector, Some(matching)) => {
            let sides = Operands {
                left: Input::new(left, &node.left),
                right: Input::new(right, &node.right),
            };
            if matching.cardinality == Cardinality::ManyToMany {
                set(node.op, matching, sides, steps, ctx)
            } else {
                join(apply, matching, sides, steps, ctx)
            }
        }
        (Type::Vector, _, _) => with_scalar(apply, left, &right, Side::Right, ctx),
        (_, Type::Vector, _) => with_scalar(apply, right, &left, Side::Left, ctx),
        _ => {
            let op = node.op;
            Ok(of_two(left, right, move |left, right| {
                match compare(op, left, right) {
                    Some(holds) => f64::from(u8::from(holds)),
                    None => arithmetic(op, left, right).unwrap_or(f64::NAN),
                }
            }))
        }
    }
}

/// What an operation does with values of vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apply {
    pub(crate) op: Op,
    pub(crate) returns_bool: bool,
    span: Span,
}

impl Apply {
    /// Whether it is an operator of histograms, which values never match.
    pub(crate) fn is_trim(&self) -> bool {
        matches!(self.op, Op::TrimUpper | Op::TrimLower)
    }

    /// Whether the result is another quantity than the operands, so that the name goes.
    pub(crate) fn changes_quantity(&self) -> bool {
        matches!(
            self.op,
            Op::Add | Op::Sub | Op::Div | Op::Mul | Op::Pow | Op::Mod | Op::Atan2
        )
    }

    /// The value of two values; `None` where a comparison filters it out.
    pub(crate) fn values(&self, left: f64, right: f64) -> Option<f64> {
        let holds = match compare(self.op, left, right) {
            Some(holds) => holds,
            None => return arithmetic(self.op, left, right),
        };
        match (self.returns_bool, holds) {
            (true, holds) => Some(f64::from(u8::from(holds))),
            (false, true) => Some(left),
            (false, false) => None,
        }
    }

    /// Says that histograms were expected, if values were there.
    pub(crate) fn note_types(&self, had_values: bool, ctx: &Context<'_>) {
        let text = match self.op {
            Op::TrimUpper => "</",
            Op::TrimLower => ">/",
            _ => return,
        };
        if had_values {
            let text = format!(
                "incompatible sample types encountered for binary operator {text:?}: \
                 float {text} float"
            );
            ctx.annotate(|annotations| annotations.info(text, self.span));
        }
    }
}

/// The value of an arithmetic operator; none for those of histograms.
fn arithmetic(op: Op, left: f64, right: f64) -> Option<f64> {
    Some(match op {
        Op::Add => left + right,
        Op::Sub => left - right,
        Op::Mul => left * right,
        Op::Div => left / right,
        Op::Mod => left % right,
        Op::Pow => left.powf(right),
        Op::Atan2 => left.atan2(right),
        _ => return None,
    })
}

/// Whether a comparison holds; `None` if it is none.
fn compare(op: Op, left: f64, right: f64) -> Option<bool> {
    Some(match op {
        Op::Equal => left == right,
        Op::NotEqual => left != right,
        Op::Greater => left > right,
        Op::Less => left < right,
        Op::GreaterEqual => left >= right,
        Op::LessEqual => left <= right,
        _ => return None,
    })
}

/// On which side the scalar stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A vector and a scalar. A comparison without `bool` keeps the value of the vector.
fn with_scalar(
    apply: Apply,
    vector: Node,
    scalar: &Node,
    side: Side,
    ctx: &Context<'_>,
) -> Result<Node> {
    let scalar = scalar.hold_scalar(ctx)?;
    let drops_name = apply.changes_quantity() || apply.returns_bool;
    let series = ctx.renamed(vector.series(), drops_name)?;
    let value_of = move |value: f64, scalar: f64| {
        if side == Side::Right {
            return apply.values(value, scalar);
        }
        match (compare(apply.op, scalar, value), apply.returns_bool) {
            (Some(holds), false) => holds.then_some(value),
            _ => apply.values(scalar, value),
        }
    };
    Ok(Node::new(series, move |at, work, out| {
        let mut input = work.take(scalar.values.len())?;
        vector.column(at, work, &mut input)?;
        out.reset(input.values.len());
        for step in input.present() {
            if let Some(value) = value_of(input.values[step], scalar.values[step]) {
                out.set(step, value);
            }
        }
        apply.note_types(!input.is_empty(), work.ctx);
        work.give(input);
        Ok(())
    }))
}
