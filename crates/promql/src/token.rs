//! The words of the language, and how errors name them.

use crate::quote::quoted;
use crate::span::Span;
use crate::tree::{Aggregator, Op};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    End,
    Comma,
    Colon,
    /// A single `=`.
    Assign,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    /// A name without a colon.
    Identifier,
    /// A name with a colon.
    Metric,
    Number,
    Duration,
    Text,
    /// `=~`
    Match,
    /// `!~`
    NotMatch,
    /// `@`
    At,
    Op(Op),
    Aggregator(Aggregator),
    Keyword(Keyword),
    Query(QueryWord),
}

/// Words that modify what they stand beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Anchored,
    Bool,
    By,
    Fill,
    FillLeft,
    FillRight,
    GroupLeft,
    GroupRight,
    Ignoring,
    Offset,
    On,
    Smoothed,
    Without,
}

/// Words about the query itself: functions, and parts of durations and of `@`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryWord {
    Start,
    End,
    Step,
    Range,
    MinOf,
    MaxOf,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// The position of its first byte.
    pub(crate) at: usize,
}

impl Token<'_> {
    pub(crate) fn span(&self) -> Span {
        Span {
            start: self.at,
            end: self.at + self.text.len(),
        }
    }

    /// As errors name it.
    pub(crate) fn describe(&self) -> String {
        match self.kind {
            Kind::End => "end of input".to_owned(),
            Kind::Identifier => format!("identifier {}", quoted(self.text)),
            Kind::Metric => format!("metric identifier {}", quoted(self.text)),
            Kind::Text => format!("string {}", shortened(self.text)),
            Kind::Number => format!("number {}", shortened(self.text)),
            Kind::Duration => format!("duration {}", shortened(self.text)),
            Kind::Keyword(_) => format!("<{}>", self.text),
            Kind::Op(_) | Kind::Match | Kind::NotMatch | Kind::At => format!("<op:{}>", self.text),
            Kind::Aggregator(_) => format!("<aggr:{}>", self.text),
            _ => shortened(self.text),
        }
    }

    /// Whether it may stand for the name of a metric.
    pub(crate) fn is_metric(&self) -> bool {
        match self.kind {
            Kind::Identifier | Kind::Metric | Kind::Aggregator(_) | Kind::Query(_) => true,
            Kind::Op(op) => matches!(op, Op::And | Op::Or | Op::Unless),
            Kind::Keyword(word) => !matches!(
                word,
                Keyword::Bool
                    | Keyword::On
                    | Keyword::Ignoring
                    | Keyword::GroupLeft
                    | Keyword::GroupRight
            ),
            _ => false,
        }
    }

    /// Whether it may stand for the name of a label in a list.
    pub(crate) fn is_label(&self) -> bool {
        match self.kind {
            Kind::Identifier | Kind::Metric | Kind::Aggregator(_) | Kind::Query(_) => true,
            Kind::Op(op) => matches!(op, Op::And | Op::Or | Op::Unless | Op::Atan2),
            Kind::Keyword(word) => word != Keyword::Without,
            _ => false,
        }
    }

    /// Whether an expression may begin with it.
    pub(crate) fn begins_expr(&self) -> bool {
        self.is_metric()
            || matches!(
                self.kind,
                Kind::Number
                    | Kind::Duration
                    | Kind::Text
                    | Kind::LeftBrace
                    | Kind::LeftParen
                    | Kind::Op(Op::Add | Op::Sub)
            )
    }
}

/// Quoted; of more than ten bytes, the first ten characters.
fn shortened(text: &str) -> String {
    if text.len() > 10 {
        let shown: String = text.chars().take(10).collect();
        format!("{}...", quoted(&shown))
    } else {
        quoted(text)
    }
}

/// The kind of a word that is no plain name; upper and lower case are the same.
pub(crate) fn word(text: &str) -> Option<Kind> {
    // The longest is `count_values`.
    if text.len() > 12 || !text.is_ascii() {
        return None;
    }
    let mut lower = [0; 12];
    let lower = &mut lower[..text.len()];
    lower.copy_from_slice(text.as_bytes());
    lower.make_ascii_lowercase();
    let lower = std::str::from_utf8(lower).ok()?;
    if let Some(op) = Op::ALL.into_iter().find(|op| op.name() == lower) {
        return Some(Kind::Op(op));
    }
    let mut aggregators = Aggregator::ALL.into_iter();
    if let Some(op) = aggregators.find(|op| op.name() == lower) {
        return Some(Kind::Aggregator(op));
    }
    Some(match lower {
        "offset" => Kind::Keyword(Keyword::Offset),
        "smoothed" => Kind::Keyword(Keyword::Smoothed),
        "anchored" => Kind::Keyword(Keyword::Anchored),
        "by" => Kind::Keyword(Keyword::By),
        "without" => Kind::Keyword(Keyword::Without),
        "on" => Kind::Keyword(Keyword::On),
        "ignoring" => Kind::Keyword(Keyword::Ignoring),
        "group_left" => Kind::Keyword(Keyword::GroupLeft),
        "group_right" => Kind::Keyword(Keyword::GroupRight),
        "fill" => Kind::Keyword(Keyword::Fill),
        "fill_left" => Kind::Keyword(Keyword::FillLeft),
        "fill_right" => Kind::Keyword(Keyword::FillRight),
        "bool" => Kind::Keyword(Keyword::Bool),
        "inf" | "nan" => Kind::Number,
        lower => Kind::Query(query_word(lower)?),
    })
}

fn query_word(lower: &str) -> Option<QueryWord> {
    match lower {
        "start" => Some(QueryWord::Start),
        "end" => Some(QueryWord::End),
        _ => duration_word(lower),
    }
}

/// The words that begin a duration; in lower case.
pub(crate) fn duration_word(lower: &str) -> Option<QueryWord> {
    Some(match lower {
        "step" => QueryWord::Step,
        "range" => QueryWord::Range,
        "min_of" => QueryWord::MinOf,
        "max_of" => QueryWord::MaxOf,
        _ => return None,
    })
}
