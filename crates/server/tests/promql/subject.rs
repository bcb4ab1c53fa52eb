//! A running server that is compared with Prometheus.

use crate::harness::{Client, Server};
use crate::http::client::Http;
use crate::http::protobuf::{field, labels, sample};
use crate::oracle::compare::{Answer, Row};
use crate::oracle::data::Series;
use crate::oracle::query::Query;
use crate::oracle::run::Subject;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::Value;
use url::form_urlencoded::Serializer;

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
                        X-Prometheus-Remote-Write-Version: 0.1.0\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
/// Samples of a series that are sent at a time.
const BATCH: usize = 40;

/// Two servers that differ in when names are removed.
pub(crate) struct Running([One; 2]);

struct One {
    _server: Server,
    redis: Client,
    http: Http,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self(["off", "on"].map(|delays| {
            let options = [
                "--http",
                "127.0.0.1:0",
                "--promql-delayed-name-removal",
                delays,
            ];
            let server = Server::with(&options);
            One {
                redis: server.client(),
                http: Http::to(server.http()),
                _server: server,
            }
        }))
    }
}

impl Subject for Running {
    fn load(&mut self, all: &[Series], rng: &mut StdRng) {
        let mut batches: Vec<_> = all
            .iter()
            .flat_map(|series| series.samples.chunks(BATCH).map(move |some| (series, some)))
            .collect();
        for at in (1..batches.len()).rev() {
            batches.swap(at, rng.random_range(0..=at));
        }
        let flush_at = rng.random_range(0..=batches.len());
        for one in &mut self.0 {
            assert_eq!(one.redis.ask("FLUSHALL"), "+OK\r\n");
            for (at, (series, some)) in batches.iter().enumerate() {
                if at == flush_at {
                    one.redis.ask("BGSAVE");
                }
                one.write(series, some);
            }
        }
    }

    fn answer(&mut self, query: &Query, text: &str) -> Answer {
        self.0[usize::from(query.delays)].answer(query, text)
    }
}

impl One {
    fn write(&mut self, series: &Series, samples: &[(i64, f64)]) {
        let pairs = series.labels.iter();
        let pairs: Vec<_> = pairs.map(|(name, value)| (&**name, &**value)).collect();
        let mut message = labels(&pairs);
        for (time_ms, value) in samples {
            message.extend(sample(*value, time_ms.unsigned_abs()));
        }
        let body = snap::raw::Encoder::new()
            .compress_vec(&field(1, &message))
            .unwrap();
        let written = self.http.post_with("/api/v1/write", PROTOBUF, &body);
        assert_eq!(written.status, 204, "{}", written.text());
    }

    fn answer(&mut self, query: &Query, text: &str) -> Answer {
        let seconds = |ms: i64| (ms as f64 / 1000.0).to_string();
        let mut form = Serializer::new(String::new());
        form.append_pair("query", text);
        form.append_pair("lookback_delta", &seconds(query.lookback_ms));
        let path = if query.is_instant() {
            form.append_pair("time", &seconds(query.start_ms));
            "/api/v1/query"
        } else {
            form.append_pair("start", &seconds(query.start_ms));
            form.append_pair("end", &seconds(query.end_ms));
            form.append_pair("step", &seconds(query.step_ms));
            "/api/v1/query_range"
        };
        let answer = self.http.post_with(path, FORM, form.finish().as_bytes());
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|error| {
            panic!("{text}: {error}: {}", answer.text());
        });
        read(&body)
    }
}

/// An answer of the API.
fn read(body: &Value) -> Answer {
    let texts = |name: &str| {
        let texts = body[name].as_array().into_iter().flatten();
        let mut texts: Vec<_> = texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect();
        texts.sort();
        texts
    };
    let mut answer = Answer {
        warnings: texts("warnings"),
        infos: texts("infos"),
        ..Answer::default()
    };
    if body["status"] == "error" {
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        let (kind, error) = (text("errorType"), text("error"));
        // Prometheus' engine does not know of parameters.
        let error = error
            .strip_prefix("invalid parameter \"query\": ")
            .unwrap_or(&error);
        answer.error = Some((kind, error.to_owned()));
        return answer;
    }
    let (data, result) = (&body["data"], &body["data"]["result"]);
    answer.kind = data["resultType"].as_str().unwrap().to_owned();
    match answer.kind.as_str() {
        "string" => answer.text = result[1].as_str().unwrap().to_owned(),
        "scalar" => answer.rows.push(row(&Value::Null, [result].into_iter())),
        _ => {
            for series in result.as_array().unwrap() {
                let samples = series["values"].as_array();
                answer.rows.push(match samples {
                    Some(samples) => row(&series["metric"], samples.iter()),
                    None => row(&series["metric"], [&series["value"]].into_iter()),
                });
            }
        }
    }
    answer
}

fn row<'a>(metric: &Value, samples: impl Iterator<Item = &'a Value>) -> Row {
    let labels = metric.as_object().into_iter().flatten();
    Row {
        labels: labels
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect(),
        samples: samples
            .map(|pair| {
                let time_ms = (pair[0].as_f64().unwrap() * 1000.0).round() as i64;
                (time_ms, pair[1].as_str().unwrap().to_owned())
            })
            .collect(),
    }
}
