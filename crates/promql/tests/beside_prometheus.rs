//! Latewood's evaluation over series in memory, beside Prometheus' own engine ([`crate::oracle`]).

use crate::oracle::compare::{Answer, Row};
use crate::oracle::data::Series;
use crate::oracle::query::Query;
use crate::oracle::run::{self, Subject};
use latewood_promql::Times;
use latewood_promql::annotation::{Annotations, Level};
use latewood_promql::engine::{self, Error, Outcome, Settings, Value};
use latewood_promql::labels::Labels;
use latewood_promql::number;
use latewood_promql::source::{Found, Hold, Matcher, Source, SourceError, Take};
use rand::rngs::StdRng;

const EXPRESSIONS: u64 = 3_000;

/// Series in the order of their labels.
#[derive(Default)]
struct Latewood {
    series: Vec<(Labels, Vec<(i64, f64)>)>,
}

impl Subject for Latewood {
    fn load(&mut self, all: &[Series], _: &mut StdRng) {
        let mut series: Vec<_> = all
            .iter()
            .map(|series| {
                let labels = series.labels.iter();
                let labels = labels.map(|(name, value)| (name.as_str(), value.as_str()));
                (Labels::from_pairs(labels), series.samples.clone())
            })
            .collect();
        series.sort_by(|a, b| a.0.cmp(&b.0));
        self.series = series;
    }

    fn answer(&mut self, query: &Query, text: &str) -> Answer {
        let settings = Settings {
            lookback_ms: query.lookback_ms,
            delays_name_removal: query.delays,
            ..Settings::default()
        };
        let mut answer = Answer::default();
        let outcome = if query.is_instant() {
            self.instant(query, text, &settings, &mut answer)
        } else {
            self.range(query, text, &settings, &mut answer)
        };
        match outcome {
            Ok(annotations) => annotate(&mut answer, text, &annotations),
            Err(error) => {
                let kind = match error {
                    Error::Eval(_) => "execution",
                    _ => "bad_data",
                };
                answer.error = Some((kind.to_owned(), error.to_string()));
            }
        }
        answer
    }
}

impl Latewood {
    fn instant(
        &self,
        query: &Query,
        text: &str,
        settings: &Settings,
        answer: &mut Answer,
    ) -> Result<Annotations, Error> {
        let at_ms = query.start_ms;
        let parsed = engine::Query::new(text)?;
        let Outcome {
            value, annotations, ..
        } = parsed.instant(at_ms, settings, self)?;
        let one = |labels: &Labels, value| row(labels, [(at_ms, value)]);
        let (kind, rows) = match value {
            Value::Scalar(value) => ("scalar", vec![one(&Labels::default(), value)]),
            Value::String(text) => {
                answer.text = text;
                ("string", Vec::new())
            }
            Value::Vector(vector) => {
                let rows = vector.iter().map(|(labels, value)| one(labels, *value));
                ("vector", rows.collect())
            }
            Value::Matrix(matrix) => {
                let rows = matrix
                    .iter()
                    .map(|(labels, held)| row(labels, held.iter().copied()));
                ("matrix", rows.collect())
            }
        };
        answer.kind = kind.to_owned();
        answer.rows = rows;
        Ok(annotations)
    }

    fn range(
        &self,
        query: &Query,
        text: &str,
        settings: &Settings,
        answer: &mut Answer,
    ) -> Result<Annotations, Error> {
        let times = Times {
            start_ms: query.start_ms,
            end_ms: query.end_ms,
            step_ms: query.step_ms,
        };
        let parsed = engine::Query::new(text)?;
        answer.kind = "matrix".to_owned();
        let rows = &mut answer.rows;
        let grid = times.grid();
        let outcome = parsed.range(times, settings, self, &mut |labels, column| {
            let steps = column.present();
            rows.push(row(
                labels,
                steps.map(|at| (grid.time_ms(at), column.values[at])),
            ));
            Ok(())
        })?;
        Ok(outcome.annotations)
    }
}

fn row(labels: &Labels, samples: impl IntoIterator<Item = (i64, f64)>) -> Row {
    let labels = labels.iter();
    let samples = samples.into_iter();
    Row {
        labels: labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        samples: samples
            .map(|(time, value)| (time, number::plain(value)))
            .collect(),
    }
}

/// Annotations as the API of Prometheus gives them, sorted.
fn annotate(answer: &mut Answer, query: &str, annotations: &Annotations) {
    for found in annotations.iter() {
        let text = found.shown(query);
        match found.level {
            Level::Warning => answer.warnings.push(text),
            Level::Info => answer.infos.push(text),
        }
    }
    answer.warnings.sort();
    answer.infos.sort();
}

impl Source for Latewood {
    fn select(
        &self,
        matchers: &[Matcher],
        from_ms: i64,
        to_ms: i64,
        _: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        let matches = |labels: &Labels| {
            matchers.iter().all(|matcher| {
                let name = std::str::from_utf8(&matcher.name).expect("a name");
                matcher.passes(labels.get(name).as_bytes())
            })
        };
        let series = self.series.iter().enumerate();
        let found = series.filter(|(_, (labels, samples))| {
            let mut times = samples.iter().map(|(time, _)| *time);
            matches(labels) && times.any(|time| (from_ms..=to_ms).contains(&time))
        });
        let found = found.map(|(handle, (labels, _))| Found {
            handle,
            labels: labels.clone(),
        });
        Ok(found.collect())
    }

    fn read(
        &self,
        handle: usize,
        from_ms: i64,
        to_ms: i64,
        take: &mut Take<'_>,
    ) -> Result<(), SourceError> {
        for (time, value) in &self.series[handle].1 {
            if (from_ms..=to_ms).contains(time) && take(&[*time], &[*value]).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn answers_are_those_of_prometheus() {
    run::compare(EXPRESSIONS, &mut Latewood::default());
}
