//! The questions, as commands.

use super::data::{self, Kind};

/// A command that is asked again and again.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Its name in the report.
    pub(super) name: &'static str,
    /// Its words.
    pub(super) words: Vec<String>,
}

/// The questions about the data of a set.
pub(super) fn questions(kind: Kind) -> Vec<Question> {
    let question = |(name, command): (&'static str, String)| Question {
        name,
        words: command.split(' ').map(Into::into).collect(),
    };
    let key = data::key(0);
    let questions = match kind {
        Kind::Wide => vec![
            (
                "mrange-groupby",
                "TS.MRANGE - + FILTER unit=celsius GROUPBY region REDUCE avg".to_owned(),
            ),
            (
                "mrange-groupby-max-minutes",
                "TS.MRANGE - + AGGREGATION max 60000 FILTER unit=celsius GROUPBY region REDUCE max"
                    .to_owned(),
            ),
            (
                "mrange-aggregation",
                "TS.MRANGE - + AGGREGATION avg 60000 FILTER unit=celsius".to_owned(),
            ),
        ],
        Kind::Long => vec![
            (
                "range-hours",
                format!("TS.RANGE {key} - + AGGREGATION avg 3600000"),
            ),
            (
                "range-minutes",
                format!("TS.RANGE {key} - + AGGREGATION avg 60000"),
            ),
        ],
        Kind::Index => vec![
            ("mget", "TS.MGET FILTER batch=b3".to_owned()),
            (
                "queryindex-selective",
                "TS.QUERYINDEX unit=celsius host=h7 region!=r71".to_owned(),
            ),
            (
                "queryindex-unselective",
                "TS.QUERYINDEX unit=celsius kind=k1".to_owned(),
            ),
        ],
        Kind::Idle => Vec::new(),
    };
    questions.into_iter().map(question).collect()
}
