//! Binary operations: what an operator does with two values, and those with a scalar.

use crate::column::Column;
use crate::exec::effects::{Effects, speaks};
use crate::exec::join::Join;
use crate::exec::set::Set;
use crate::exec::single::of_two;
use crate::exec::{Context, EvalError, Node, Operator, Scratch, Series};
use crate::span::Span;
use crate::tree::{Binary, Cardinality, Op, Type};

/// What belongs to the two sides of a binary operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<T> {
    pub(crate) left: T,
    pub(crate) right: T,
}

impl<T> Operands<T> {
    /// The left one on the right.
    pub(crate) fn swapped(self) -> Self {
        Self {
            left: self.right,
            right: self.left,
        }
    }
}

/// The operator of a binary operation on its two sides.
pub(crate) fn operator(node: &Binary, left: Node, right: Node, steps: usize) -> Node {
    let span = node.left.span().to(node.right.span());
    let apply = Apply {
        op: node.op,
        returns_bool: node.returns_bool,
        span,
    };
    let effects = Operands {
        left: Effects(speaks(&node.left)),
        right: Effects(speaks(&node.right)),
    };
    match (node.left.ty(), node.right.ty(), &node.matching) {
        (Type::Vector, Type::Vector, Some(matching))
            if matching.cardinality == Cardinality::ManyToMany =>
        {
            let nodes = Operands { left, right };
            Box::new(Set::new(node.op, matching, nodes, effects, steps))
        }
        (Type::Vector, Type::Vector, Some(matching)) => {
            let nodes = Operands { left, right };
            Box::new(Join::new(apply, matching, nodes, effects, steps))
        }
        (Type::Vector, _, _) => Box::new(WithScalar::new(apply, left, right, Side::Right)),
        (_, Type::Vector, _) => Box::new(WithScalar::new(apply, right, left, Side::Left)),
        _ => {
            let op = node.op;
            of_two([left, right], move |left, right| scalar(op, left, right))
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

/// The value for two scalars; a comparison gives 0 or 1.
fn scalar(op: Op, left: f64, right: f64) -> f64 {
    match compare(op, left, right) {
        Some(holds) => f64::from(u8::from(holds)),
        None => arithmetic(op, left, right).unwrap_or(f64::NAN),
    }
}

/// On which side the scalar stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A vector and a scalar. A comparison without `bool` keeps the value of the vector.
struct WithScalar {
    apply: Apply,
    vector: Node,
    scalar: Node,
    side: Side,
    column: Column,
    series: Vec<Series>,
}

impl WithScalar {
    fn new(apply: Apply, vector: Node, scalar: Node, side: Side) -> Self {
        Self {
            apply,
            vector,
            scalar,
            side,
            column: Column::default(),
            series: Vec::new(),
        }
    }

    fn value(&self, value: f64, scalar: f64) -> Option<f64> {
        if self.side == Side::Right {
            return self.apply.values(value, scalar);
        }
        match (
            compare(self.apply.op, scalar, value),
            self.apply.returns_bool,
        ) {
            (Some(holds), false) => holds.then_some(value),
            _ => self.apply.values(scalar, value),
        }
    }
}

impl Operator for WithScalar {
    fn prepare(&mut self, ctx: &Context<'_>) -> Result<(), EvalError> {
        self.vector.prepare(ctx)?;
        self.scalar.prepare(ctx)?;
        let column = &mut self.column;
        ctx.with_scratch(|scratch| self.scalar.column(0, ctx, scratch, column))?;
        ctx.hold(Column::len_bytes(self.column.values.len()))?;
        let drops_name = self.apply.changes_quantity() || self.apply.returns_bool;
        let series = self.vector.series().iter();
        self.series = ctx.collect(series.map(|series| {
            if drops_name {
                series.nameless(ctx.settings)
            } else {
                series.clone()
            }
        }))?;
        Ok(())
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
        let mut vector = scratch.take(self.column.values.len(), ctx)?;
        self.vector.column(at, ctx, scratch, &mut vector)?;
        out.reset(vector.values.len());
        for step in vector.present() {
            if let Some(value) = self.value(vector.values[step], self.column.values[step]) {
                out.set(step, value);
            }
        }
        self.apply.note_types(!vector.is_empty(), ctx);
        scratch.give(vector);
        Ok(())
    }
}
