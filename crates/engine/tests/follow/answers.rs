//! All that a database answers, to compare it with what another one does.

use crate::model::reads::everything;
use latewood_engine::{Aggregation, BucketStamp, Db, ErrorKind, RangeQuery, RuleInfo, Sink};
use latewood_model::{Aggregator, Matcher, SeriesOptions, Test};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What a database answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    len: usize,
    series: BTreeMap<Vec<u8>, Series>,
    /// The keys that queries by label find.
    selected: Vec<Vec<Vec<u8>>>,
    /// The newest samples, as the bits of their values.
    latest: BTreeMap<Vec<u8>, Option<(i64, u64)>>,
    floor: i64,
}

/// What it answers of one series.
#[derive(Clone, Debug, PartialEq)]
struct Series {
    options: SeriesOptions,
    samples: Vec<(i64, u64)>,
    counts: Vec<(i64, u64)>,
    total: u64,
    first: Option<i64>,
    last: Option<i64>,
    last_sample: Option<(i64, u64)>,
    expires_at_ms: Option<i64>,
    rules: Vec<RuleInfo>,
    source: Option<Vec<u8>>,
    /// Where the open bucket of its rule is. Its value depends on how samples are in frames: sums
    /// of floating-point numbers do.
    open: Option<i64>,
}

/// Bits that are the same for every NaN: which one a sum makes is the processor's choice.
fn bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

#[derive(Default)]
struct Rows(Vec<(i64, u64)>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        let rows = timestamps.iter().zip(values.chunks(width));
        let rows = rows.flat_map(|(&at, values)| values.iter().map(move |&value| (at, value)));
        self.0.extend(rows.map(|(at, value)| (at, bits(value))));
        ControlFlow::Continue(())
    }
}

/// Made of statistics of frames where there are some.
fn counted(width: i64) -> RangeQuery {
    let aggregation = Aggregation {
        aggregators: vec![Aggregator::CountAll, Aggregator::Max, Aggregator::Last],
        bucket_ms: width,
        align: 0,
        stamp: BucketStamp::Start,
        empty: false,
    };
    RangeQuery {
        aggregation: Some(aggregation),
        reverse: true,
        ..everything()
    }
}

fn rows(db: &Db, key: &[u8], query: &RangeQuery) -> Result<Vec<(i64, u64)>, ErrorKind> {
    let mut rows = Rows::default();
    let read = db.range(key, query, &mut rows);
    read.map(|()| rows.0).map_err(|error| error.kind())
}

fn series(db: &Db, key: &[u8]) -> Result<Series, ErrorKind> {
    let told = |error: latewood_engine::Error| error.kind();
    let sample = |sample: latewood_model::Sample| (sample.timestamp, bits(sample.value));
    let info = db.info(key).map_err(told)?;
    assert!(db.contains(key));
    let source = db.source_of(key).map_err(told)?;
    Ok(Series {
        samples: rows(db, key, &everything())?,
        // The greatest of 0 and -0 is either.
        counts: rows(db, key, &counted(700))?
            .into_iter()
            .map(|(at, value)| (at, bits(f64::from_bits(value) + 0.0)))
            .collect(),
        total: info.total_samples,
        first: info.first_timestamp,
        last: info.last_timestamp,
        last_sample: db.last_sample(key).map_err(told)?.map(sample),
        expires_at_ms: db.expires_at(key).map_err(told)?,
        rules: db.rules_of(key).map_err(told)?,
        source: source.map(|key| key.to_vec()),
        open: db
            .open_bucket(key)
            .map_err(told)?
            .map(|open| open.timestamp),
        options: info.options,
    })
}

fn matchers() -> Vec<Vec<Matcher>> {
    let any = |name: &[u8], value: &[u8]| Matcher::new(name, Test::AnyOf(vec![value.into()]));
    vec![
        vec![],
        vec![any(b"site", b"north")],
        vec![Matcher::new(b"kind", Test::Present)],
        vec![Matcher::new(b"kind", Test::Absent), any(b"site", b"north")],
    ]
}

/// All that `db` answers. That of an owner brings its rules up to date, and logs that.
pub(crate) fn answers(db: &Db) -> Result<Answers, ErrorKind> {
    let (mut keys, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = db
            .scan(cursor, 3, &mut |key| keys.push(key.to_vec()))
            .unwrap();
        if cursor == 0 {
            break;
        }
    }
    let named: Result<BTreeMap<_, _>, _> = keys
        .into_iter()
        .map(|key| series(db, &key).map(|series| (key, series)))
        .collect();
    let selected = matchers().into_iter().map(|matchers| {
        let found = db.select(&matchers).unwrap().into_iter();
        found.map(|series| series.key.to_vec()).collect()
    });
    let selected = selected.collect();
    let latest = db.latest(db.select(&[]).unwrap(), Some(usize::MAX), None);
    let latest = latest.map_err(|error| error.kind())?.into_iter();
    Ok(Answers {
        len: db.len(),
        series: named?,
        selected,
        latest: latest
            .map(|one| {
                let sample = one.sample.map(|held| (held.timestamp, bits(held.value)));
                (one.key.to_vec(), sample)
            })
            .collect(),
        floor: db.floor(),
    })
}

impl Answers {
    /// Where two part, for people.
    pub(crate) fn difference(&self, wanted: &Self) -> Option<String> {
        if self == wanted {
            return None;
        }
        let keys = self.series.keys().chain(wanted.series.keys());
        for key in keys {
            let key_text = String::from_utf8_lossy(key).into_owned();
            match (self.series.get(key), wanted.series.get(key)) {
                (Some(found), Some(wanted)) if found == wanted => {}
                (Some(found), Some(wanted)) => {
                    let longest = found.samples.len().max(wanted.samples.len());
                    let at =
                        (0..longest).find(|&at| found.samples.get(at) != wanted.samples.get(at));
                    let shown = |series: &Series| {
                        let sample = at.and_then(|at| series.samples.get(at).copied());
                        let brief = Series {
                            samples: sample.into_iter().collect(),
                            counts: Vec::new(),
                            ..series.clone()
                        };
                        format!("{} samples, {brief:?}", series.samples.len())
                    };
                    let counts = found.counts.iter().zip(&wanted.counts);
                    let counts: Vec<_> = counts.filter(|(a, b)| a != b).take(3).collect();
                    let counts = format!("{counts:?}");
                    let (found, wanted) = (shown(found), shown(wanted));
                    return Some(format!(
                        "{counts} series {key_text}, sample {at:?}: found {found}, wanted {wanted}"
                    ));
                }
                (found, _) => {
                    return Some(format!("series {key_text} is there: {}", found.is_some()));
                }
            }
        }
        Some(format!(
            "found {:?}, wanted {:?}",
            (self.len, &self.selected, &self.latest, self.floor),
            (wanted.len, &wanted.selected, &wanted.latest, wanted.floor)
        ))
    }
}
