//! What the grammar does not say: types, numbers of arguments, and which modifiers go together.
//!
//! The first error is that of Prometheus, since both walk the tree in the same order.

use crate::error::ParseError;
use crate::labels::METRIC;
use crate::lex::is_space;
use crate::quote::quoted;
use crate::source::parts;
use crate::span::Span;
use crate::tree::{
    Aggregate, Aggregator, Binary, Call, Cardinality, Expr, Matching, Op, Selector, Type,
};

type Checked<T = ()> = Result<T, ParseError>;

/// Checks an expression; drops the matching of operations that are not between vectors.
///
/// # Errors
/// The first error.
pub(crate) fn check(text: &str, expr: &mut Expr) -> Checked {
    Checker { text }.expr(expr).map(|_| ())
}

struct Checker<'a> {
    text: &'a str,
}

/// As the documentation names a type.
fn documented(kind: Type) -> &'static str {
    match kind {
        Type::Vector => "instant vector",
        Type::Matrix => "range vector",
        kind => kind.name(),
    }
}

impl Checker<'_> {
    fn fail<T>(&self, span: Span, text: impl Into<String>) -> Checked<T> {
        Err(ParseError::new(self.text, span, text))
    }

    /// Checks an expression; its type. Spans and types are only computed where they are needed:
    /// both walk the tree.
    fn expr(&self, expr: &mut Expr) -> Checked<Type> {
        match expr {
            Expr::Aggregate(aggregate) => self.aggregate(aggregate).map(|()| Type::Vector),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Call(call) => self.call(call).map(|()| call.function.returns),
            Expr::Paren(inner, _) | Expr::Invariant(inner) => self.expr(inner),
            Expr::Unary(unary) => {
                let kind = self.expr(&mut unary.expr)?;
                if matches!(kind, Type::Scalar | Type::Vector) {
                    return Ok(kind);
                }
                let got = documented(kind);
                let text = format!(
                    "unary expression only allowed on expressions of type scalar or instant \
                     vector, got \"{got}\""
                );
                self.fail(expr.span(), text)
            }
            Expr::Subquery(subquery) => match self.expr(&mut subquery.expr)? {
                Type::Vector => Ok(Type::Matrix),
                kind => {
                    let got = kind.name();
                    let text =
                        format!("subquery is only allowed on instant vector, got {got} instead");
                    self.fail(subquery.span(), text)
                }
            },
            Expr::Range(range) => self.selector(&range.selector, false).map(|()| Type::Matrix),
            Expr::Selector(selector) => self.selector(selector, false).map(|()| Type::Vector),
            Expr::Number(_) | Expr::Duration(_) => Ok(Type::Scalar),
            Expr::Text(_) => Ok(Type::String),
        }
    }

    /// Checks an expression that must be of a type.
    fn expect(&self, expr: &mut Expr, wanted: Type, context: &str) -> Checked {
        match self.expr(expr)? {
            got if got == wanted => Ok(()),
            got => self.wrong_type(got, wanted, context, expr.span()),
        }
    }

    fn wrong_type(&self, got: Type, wanted: Type, context: &str, span: Span) -> Checked {
        let (wanted, got) = (documented(wanted), documented(got));
        self.fail(
            span,
            format!("expected type {wanted} in {context}, got {got}"),
        )
    }

    fn aggregate(&self, aggregate: &mut Aggregate) -> Checked {
        self.expect(&mut aggregate.expr, Type::Vector, "aggregation expression")?;
        let wanted = match aggregate.op {
            Aggregator::CountValues => Type::String,
            _ => Type::Scalar,
        };
        match &mut aggregate.param {
            Some(param) => self.expect(param, wanted, "aggregation parameter"),
            None => Ok(()),
        }
    }

    fn binary(&self, binary: &mut Binary) -> Checked<Type> {
        let kinds = [self.expr(&mut binary.left)?, self.expr(&mut binary.right)?];
        let op = binary.op;
        if binary.returns_bool && !op.is_comparison() {
            let text = "bool modifier can only be used on comparison operators";
            return self.fail(self.operator(binary), text);
        }
        if op.is_comparison() && !binary.returns_bool && kinds == [Type::Scalar; 2] {
            let text = "comparisons between scalars must use BOOL modifier";
            return self.fail(self.operator(binary), text);
        }
        if let Some(matching) = &mut binary.matching {
            if op.is_set() && matching.cardinality == Cardinality::OneToOne {
                matching.cardinality = Cardinality::ManyToMany;
            }
            if let Some(label) = copied_label(matching) {
                let label = quoted(label);
                let text = format!("label {label} must not occur in ON and GROUP clause at once");
                return self.fail(self.operator(binary), text);
            }
        }
        for (kind, side) in kinds.iter().zip([&binary.left, &binary.right]) {
            if !matches!(kind, Type::Scalar | Type::Vector) {
                let text = "binary expression must contain only scalar and instant vector types";
                return self.fail(side.span(), text);
            }
        }
        let matching = if kinds == [Type::Vector; 2] {
            set_error(op, binary.matching.as_ref())
        } else {
            scalar_error(op, binary.matching.take().as_ref())
        };
        match (matching, kinds) {
            (Some(text), _) => self.fail(binary.span(), text),
            (None, [Type::Scalar, Type::Scalar]) => Ok(Type::Scalar),
            _ => Ok(Type::Vector),
        }
    }

    /// From behind the left side to before the right one, without blanks.
    fn operator(&self, binary: &Binary) -> Span {
        let bytes = self.text.as_bytes();
        let is_blank = |at: usize| {
            bytes
                .get(at)
                .is_some_and(|byte| is_space(char::from(*byte)))
        };
        let mut start = binary.left.span().end;
        while is_blank(start) {
            start += 1;
        }
        let mut end = binary.right.span().start.saturating_sub(1);
        while end > start && is_blank(end) {
            end -= 1;
        }
        Span { start, end }
    }

    fn call(&self, call: &mut Call) -> Checked {
        let (function, span) = (call.function, call.span);
        self.count_arguments(call)?;
        if function.name == "info" && call.args.len() > 1 {
            self.info(call)?;
        }
        for (at, arg) in call.args.iter_mut().enumerate() {
            let wanted = match function.args.get(at).or(function.args.last()) {
                Some(wanted) => *wanted,
                // The number of arguments was checked.
                None => return self.fail(span, "unexpected argument"),
            };
            let got = match &mut *arg {
                Expr::Selector(selector) if function.name == "info" && at == 1 => {
                    self.selector(selector, true)?;
                    Type::Vector
                }
                _ => self.expr(arg)?,
            };
            if got != wanted {
                let context = format!("call to function \"{}\"", function.name);
                return self.wrong_type(got, wanted, &context, arg.span());
            }
        }
        Ok(())
    }

    fn count_arguments(&self, call: &Call) -> Checked {
        let (name, types, got) = (
            call.function.name,
            call.function.args.len(),
            call.args.len(),
        );
        let (min, max) = match call.function.variadic {
            0 => (types, types),
            variadic => match usize::try_from(variadic) {
                Ok(more) => (types - 1, types - 1 + more),
                Err(_) => (types - 1, usize::MAX),
            },
        };
        let count = match call.function.variadic {
            0 if got != types => format!("{types}"),
            _ if got < min => format!("at least {min}"),
            _ if got > max => format!("at most {max}"),
            _ => return Ok(()),
        };
        let text = format!("expected {count} argument(s) in call to \"{name}\", got {got}");
        self.fail(call.span, text)
    }

    /// The second argument of `info` is a selector without a metric.
    fn info(&self, call: &Call) -> Checked {
        let labels = &call.args[1];
        if labels.ty() != Type::Vector {
            let context = "call to function \"info\"";
            return self.wrong_type(labels.ty(), Type::Vector, context, call.span);
        }
        match labels {
            Expr::Selector(selector) if selector.name.is_empty() => Ok(()),
            Expr::Selector(_) => {
                let text = "expected label selectors only, got vector selector instead";
                self.fail(labels.span(), text)
            }
            _ => self.fail(labels.span(), "expected label selectors only"),
        }
    }

    fn selector(&self, selector: &Selector, may_be_empty: bool) -> Checked {
        let (name, matchers) = (&selector.name, &selector.matchers);
        if !name.is_empty() {
            let inside = &matchers[..matchers.len() - 1];
            return match inside
                .iter()
                .find(|matcher| *matcher.name == *METRIC.as_bytes())
            {
                Some(matcher) => {
                    let (name, value) = (quoted(name), quoted(parts(matcher).1));
                    let text = format!("metric name must not be set twice: {name} or {value}");
                    self.fail(selector.span, text)
                }
                None => Ok(()),
            };
        }
        if may_be_empty || matchers.iter().any(|matcher| !matcher.passes(b"")) {
            Ok(())
        } else {
            let text = "vector selector must contain at least one non-empty matcher";
            self.fail(selector.span, text)
        }
    }
}

/// A label to match by that is to be copied too.
fn copied_label(matching: &Matching) -> Option<&String> {
    let mut labels = matching.labels.iter();
    labels.find(|label| matching.is_on && matching.include.contains(label))
}

/// What is wrong with the matching of two vectors.
fn set_error(op: Op, matching: Option<&Matching>) -> Option<String> {
    let matching = matching.filter(|_| op.is_set())?;
    if matching.cardinality != Cardinality::ManyToMany {
        return Some(format!(
            "no grouping allowed for \"{}\" operation",
            op.name()
        ));
    }
    has_fill(matching).then(|| "filling in missing series not allowed for set operators".to_owned())
}

/// What is wrong with an operation that is not between two vectors.
fn scalar_error(op: Op, matching: Option<&Matching>) -> Option<String> {
    if matching.is_some_and(|matching| !matching.labels.is_empty()) {
        return Some("vector matching only allowed between instant vectors".to_owned());
    }
    if matching.is_some_and(has_fill) {
        let text = "filling in missing series only allowed between instant vectors";
        return Some(text.to_owned());
    }
    let shown = op.name();
    op.is_set()
        .then(|| format!("set operator \"{shown}\" not allowed in binary scalar expression"))
}

fn has_fill(matching: &Matching) -> bool {
    matching.fill_left.is_some() || matching.fill_right.is_some()
}
