//! The syntax tree, with the position of each node.
//!
//! Durations are milliseconds. What the query only says in relation to its own times (`step()`,
//! `range()`, `@ start()`) stays as written until `prepare` resolves it.

use crate::function::Function;
pub use crate::function::Type;
use crate::span::Span;
use latewood_wire::named;
use latewood_wire::selector::Matcher;

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// `1.5`, `5m`
    Number(Number),
    /// `"text"`
    Text(Text),
    /// `(expr)`
    Paren(Box<Expr>, Span),
    /// `-expr`, `+expr`
    Unary(Box<Unary>),
    /// `a + b`
    Binary(Box<Binary>),
    /// `sum by (l) (expr)`
    Aggregate(Box<Aggregate>),
    /// `f(expr, ...)`
    Call(Box<Call>),
    /// `metric{l="v"} offset 5m @ 1`
    Selector(Box<Selector>),
    /// `metric[5m]`
    Range(Box<Range>),
    /// `expr[5m:1m]`
    Subquery(Box<Subquery>),
    /// An expression of durations where a number is expected, as `step() + 1m`.
    Duration(Box<Duration>),
    /// What is the same at every step; only `prepare` makes it.
    Invariant(Box<Expr>),
}

impl Expr {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Self::Number(number) => number.span,
            Self::Text(text) => text.span,
            Self::Paren(_, span) => *span,
            Self::Unary(unary) => Span {
                start: unary.start,
                end: unary.expr.span().end,
            },
            Self::Binary(binary) => binary.span(),
            Self::Aggregate(aggregate) => aggregate.span,
            Self::Call(call) => call.span,
            Self::Selector(selector) => selector.span,
            Self::Range(range) => range.span(),
            Self::Subquery(subquery) => subquery.span(),
            Self::Duration(duration) => duration.span,
            Self::Invariant(expr) => expr.span(),
        }
    }

    /// What it evaluates to.
    pub fn ty(&self) -> Type {
        match self {
            Self::Number(_) | Self::Duration(_) => Type::Scalar,
            Self::Text(_) => Type::String,
            Self::Paren(expr, _) | Self::Invariant(expr) => expr.ty(),
            Self::Unary(unary) => unary.expr.ty(),
            Self::Binary(binary) => match (binary.left.ty(), binary.right.ty()) {
                (Type::Scalar, Type::Scalar) => Type::Scalar,
                _ => Type::Vector,
            },
            Self::Aggregate(_) | Self::Selector(_) => Type::Vector,
            Self::Call(call) => call.function.returns,
            Self::Range(_) | Self::Subquery(_) => Type::Matrix,
        }
    }

    /// What an expression consists of, in the order of the text.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Paren(inner, _) | Self::Invariant(inner) => vec![&**inner],
            Self::Unary(unary) => vec![&unary.expr],
            Self::Binary(binary) => vec![&binary.left, &binary.right],
            Self::Aggregate(aggregate) => {
                let param = aggregate.param.iter();
                param.chain([&aggregate.expr]).collect()
            }
            Self::Call(call) => call.args.iter().collect(),
            Self::Subquery(subquery) => vec![&subquery.expr],
            Self::Number(_)
            | Self::Text(_)
            | Self::Selector(_)
            | Self::Range(_)
            | Self::Duration(_) => Vec::new(),
        }
    }

    /// What stands in its parentheses, and in what `prepare` put around it.
    pub fn bare(&self) -> &Self {
        match self {
            Self::Paren(expr, _) | Self::Invariant(expr) => expr.bare(),
            _ => self,
        }
    }
}

impl Binary {
    /// From the start of the left side to the end of the right one.
    pub fn span(&self) -> Span {
        self.left.span().to(self.right.span())
    }
}

impl Range {
    /// Where it stands, its modifiers included.
    pub fn span(&self) -> Span {
        Span {
            start: self.selector.span.start,
            end: self.end,
        }
    }
}

impl Subquery {
    /// Where it stands, its modifiers included.
    pub fn span(&self) -> Span {
        Span {
            start: self.expr.span().start,
            end: self.end,
        }
    }
}

/// A number.
#[derive(Clone, Debug)]
pub struct Number {
    /// Its value; seconds if it was a duration.
    pub value: f64,
    /// Written as a duration.
    pub is_duration: bool,
    /// Where it stands.
    pub span: Span,
}

/// A text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Without quotes and escapes; empty where it is not UTF-8.
    pub value: String,
    /// Its bytes where they are not UTF-8: only the label of `count_values` may be such a text.
    pub not_utf8: Option<Box<[u8]>>,
    /// Where it stands.
    pub span: Span,
}

impl Text {
    /// The text as bytes, which may not be UTF-8.
    pub fn bytes(&self) -> &[u8] {
        self.not_utf8.as_deref().unwrap_or(self.value.as_bytes())
    }
}

/// A sign before an expression.
#[derive(Clone, Debug)]
pub struct Unary {
    /// `-` rather than `+`.
    pub negates: bool,
    /// Behind the sign.
    pub expr: Expr,
    /// The byte of the sign.
    pub start: usize,
}

named! {
    /// A binary operator.
    #[expect(missing_docs, reason = "named as in the language")]
    pub enum Op {
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Mod => "%",
        Pow => "^",
        Atan2 => "atan2",
        Equal => "==",
        NotEqual => "!=",
        Greater => ">",
        Less => "<",
        GreaterEqual => ">=",
        LessEqual => "<=",
        /// `</`
        TrimUpper => "</",
        /// `>/`
        TrimLower => ">/",
        And => "and",
        Or => "or",
        Unless => "unless",
    }
}

/// A binary operation.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The operator.
    pub op: Op,
    /// Left side.
    pub left: Expr,
    /// Right side.
    pub right: Expr,
    /// `bool`: 0 or 1 rather than a filter.
    pub returns_bool: bool,
    /// How series of both sides match; only between two vectors.
    pub matching: Option<Matching>,
}

named! {
    /// How many series of one side match one of the other.
    #[derive(Default)]
    pub enum Cardinality {
        /// One to one.
        #[default]
        OneToOne => "one-to-one",
        /// `group_left`
        ManyToOne => "many-to-one",
        /// `group_right`
        OneToMany => "one-to-many",
        /// The set operators.
        ManyToMany => "many-to-many",
    }
}

/// How series of two sides match.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// How many match.
    pub cardinality: Cardinality,
    /// `on` rather than `ignoring`.
    pub is_on: bool,
    /// The labels of `on` or `ignoring`.
    pub labels: Vec<String>,
    /// The labels of `group_left` or `group_right`.
    pub include: Vec<String>,
    /// The value of a missing series on the left.
    pub fill_left: Option<f64>,
    /// The value of a missing series on the right.
    pub fill_right: Option<f64>,
}

named! {
    /// An aggregation operator.
    #[expect(missing_docs, reason = "named as in the language")]
    pub enum Aggregator {
        Avg => "avg",
        Bottomk => "bottomk",
        Count => "count",
        CountValues => "count_values",
        Group => "group",
        Max => "max",
        Min => "min",
        Quantile => "quantile",
        Stddev => "stddev",
        Stdvar => "stdvar",
        Sum => "sum",
        Topk => "topk",
        Limitk => "limitk",
        LimitRatio => "limit_ratio",
    }
}

impl Aggregator {
    /// Whether it takes an argument before what it aggregates.
    pub fn has_param(self) -> bool {
        matches!(
            self,
            Self::Topk
                | Self::Bottomk
                | Self::CountValues
                | Self::Quantile
                | Self::Limitk
                | Self::LimitRatio
        )
    }
}

impl Op {
    /// `and`, `or`, `unless`
    pub fn is_set(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Unless)
    }

    /// `==`, `!=`, `<`, `<=`, `>`, `>=`
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Greater
                | Self::Less
                | Self::GreaterEqual
                | Self::LessEqual
        )
    }
}

/// An aggregation.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// The operator.
    pub op: Aggregator,
    /// What is aggregated.
    pub expr: Expr,
    /// The first argument of those that have two.
    pub param: Option<Expr>,
    /// The labels of `by` or `without`, as written.
    pub grouping: Vec<String>,
    /// `without` rather than `by`.
    pub is_without: bool,
    /// Where it stands.
    pub span: Span,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function.
    pub function: &'static Function,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// The time after `@`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// `@ 1700000000`, milliseconds.
    Time(i64),
    /// `@ start()`
    Start,
    /// `@ end()`
    End,
}

/// How values between samples are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Smoothing {
    /// Only samples count.
    #[default]
    Off,
    /// `anchored`
    Anchored,
    /// `smoothed`
    Smoothed,
}

/// A length of time: known, or an expression that `prepare` evaluates.
#[derive(Clone, Debug)]
pub enum Length {
    /// Milliseconds.
    Known(i64),
    /// An expression of durations.
    Expr(Box<Duration>),
}

impl Length {
    /// Milliseconds; 0 where `prepare` computes them.
    pub fn millis(&self) -> i64 {
        match self {
            Self::Known(millis) => *millis,
            Self::Expr(_) => 0,
        }
    }
}

/// A selector of an instant vector.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The metric written before the braces; empty if none.
    pub name: String,
    /// All conditions, that of the name among them (last, as Prometheus prints it).
    pub matchers: Vec<Matcher>,
    /// `offset`; 0 if none.
    pub offset: Length,
    /// `@`
    pub at: Option<At>,
    /// `anchored` or `smoothed`.
    pub smoothing: Smoothing,
    /// Where it stands, with `offset` and `@` unless a range stands between.
    pub span: Span,
}

/// A selector of a range vector.
#[derive(Clone, Debug)]
pub struct Range {
    /// The series.
    pub selector: Selector,
    /// Its length.
    pub range: Length,
    /// The byte behind the bracket, or behind `offset` and `@`.
    pub end: usize,
}

/// An expression evaluated at steps of its own.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// The expression.
    pub expr: Expr,
    /// Its length.
    pub range: Length,
    /// Its step; `None` is the default.
    pub step: Option<Length>,
    /// `offset`; 0 if none.
    pub offset: Length,
    /// `@`
    pub at: Option<At>,
    /// The byte behind the bracket, or behind `offset` and `@`.
    pub end: usize,
}

named! {
    /// An operator of durations.
    #[expect(missing_docs, reason = "named as in the language")]
    pub enum DurationOp {
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Mod => "%",
        Pow => "^",
        Step => "step",
        Range => "range",
        MinOf => "min_of",
        MaxOf => "max_of",
    }
}

/// An expression of durations, in seconds.
#[derive(Clone, Debug)]
pub struct Duration {
    /// The operator.
    pub op: DurationOp,
    /// Left side; none before a sign.
    pub left: Option<Expr>,
    /// Right side; none for `step()` and `range()`.
    pub right: Option<Expr>,
    /// In parentheses.
    pub is_wrapped: bool,
    /// Where it stands.
    pub span: Span,
}
