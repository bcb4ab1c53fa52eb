//! `[WITHLABELS | SELECTED_LABELS name...]`: which labels of a series stand in
//! a reply.
//!
//! As in RedisTimeSeries SELECTED_LABELS takes the words up to the next option
//! of a query, but for LATEST, ALIGN, BUCKETTIMESTAMP and EMPTY: those are
//! taken for names. Names are compared in any case, and each is answered by
//! the first label of that name.

use super::args::Args;
use super::fault::Fault;
use super::mget::begin;
use latewood_model::Labels;
use latewood_model::limits::SELECTED_LABELS_MAX;
use latewood_wire::resp::{Protocol, Reply};

/// The labels that a reply shows.
#[derive(Debug)]
pub(crate) enum Shown {
    None,
    /// All of the series, in their order.
    All,
    /// Those of these names, in this order.
    Selected(Vec<Box<[u8]>>),
}

/// A label's name and value.
pub(crate) type Pair<'a> = (&'a [u8], &'a [u8]);

const ENDS: [&str; 8] = [
    "FILTER",
    "COUNT",
    "AGGREGATION",
    "FILTER_BY_TS",
    "FILTER_BY_VALUE",
    "GROUPBY",
    "REDUCE",
    "EXCLUDEEMPTY",
];

/// Looks for the options from word `from` on.
pub(crate) fn parse(args: Args<'_>, from: usize) -> Result<Shown, Fault> {
    let all = args.find("WITHLABELS", from).is_some();
    let Some(at) = args.find("SELECTED_LABELS", from) else {
        return Ok(if all { Shown::All } else { Shown::None });
    };
    if all {
        return Fault::refuse("ERR TSDB: cannot accept WITHLABELS and SELECT_LABELS together");
    }
    let is_name = |&i: &usize| !ENDS.iter().any(|end| args.is(i, end));
    let names: Vec<Box<[u8]>> = (at + 1..args.len())
        .take_while(is_name)
        .take(SELECTED_LABELS_MAX + 1)
        .map(|i| args.word(i).into())
        .collect();
    match names.len() {
        0 => Fault::refuse("ERR TSDB: SELECT_LABELS should have at least 1 parameter"),
        1..=SELECTED_LABELS_MAX => Ok(Shown::Selected(names)),
        _ => Fault::refuse("ERR TSDB: reached max size for SELECT_LABELS"),
    }
}

impl Shown {
    /// Whether a reply needs the labels at all.
    pub(crate) fn any(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Writes those of `labels` that are shown.
    pub(crate) fn write(&self, reply: &mut Reply<'_>, labels: &Labels) {
        let pairs: Vec<Pair<'_>> = match self {
            Self::None => Vec::new(),
            _ => labels.iter().collect(),
        };
        self.write_pairs(reply, &pairs, pairs.len());
    }

    /// Writes those of `pairs` that are shown; where all are, the first `all`.
    pub(crate) fn write_pairs(&self, reply: &mut Reply<'_>, pairs: &[Pair<'_>], all: usize) {
        match self {
            Self::None => begin(reply, 0),
            Self::All => {
                begin(reply, all);
                for (name, value) in &pairs[..all] {
                    pair(reply, name, Some(value));
                }
            }
            Self::Selected(names) => {
                begin(reply, names.len());
                for name in names {
                    match pairs.iter().find(|pair| pair.0.eq_ignore_ascii_case(name)) {
                        Some((name, value)) => pair(reply, name, Some(value)),
                        None => pair(reply, name, None),
                    }
                }
            }
        }
    }
}

fn pair(reply: &mut Reply<'_>, name: &[u8], value: Option<&[u8]>) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(name);
    match value {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
}
