//! Operators and types as they are written.

use crate::tree::{Aggregator, Cardinality, DurationOp, Op, Type};

impl Type {
    /// As the API names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::String => "string",
            Self::Vector => "vector",
            Self::Matrix => "matrix",
        }
    }
}

impl Op {
    /// As written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Pow => "^",
            Self::Atan2 => "atan2",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::GreaterEqual => ">=",
            Self::LessEqual => "<=",
            Self::TrimUpper => "</",
            Self::TrimLower => ">/",
            Self::And => "and",
            Self::Or => "or",
            Self::Unless => "unless",
        }
    }
}

impl Aggregator {
    /// As written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Bottomk => "bottomk",
            Self::Count => "count",
            Self::CountValues => "count_values",
            Self::Group => "group",
            Self::Max => "max",
            Self::Min => "min",
            Self::Quantile => "quantile",
            Self::Stddev => "stddev",
            Self::Stdvar => "stdvar",
            Self::Sum => "sum",
            Self::Topk => "topk",
            Self::Limitk => "limitk",
            Self::LimitRatio => "limit_ratio",
        }
    }
}

impl DurationOp {
    /// As written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Pow => "^",
            Self::Step => "step",
            Self::Range => "range",
            Self::MinOf => "min_of",
            Self::MaxOf => "max_of",
        }
    }
}

impl Cardinality {
    /// As the API names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneToOne => "one-to-one",
            Self::ManyToOne => "many-to-one",
            Self::OneToMany => "one-to-many",
            Self::ManyToMany => "many-to-many",
        }
    }
}
