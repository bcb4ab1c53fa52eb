//! The server's own figures as series: `--self-metrics`.

use crate::harness::{Server, eventually};
use crate::http::client::Http;
use crate::http::promql::{ask, body};
use serde_json::Value;
use std::collections::BTreeSet;

const OPTIONS: [&str; 6] = [
    "--http",
    "127.0.0.1:0",
    "--self-metrics",
    "1s",
    "--self-retention",
    "7d",
];

fn rows(http: &mut Http, query: &str) -> Vec<Value> {
    let (status, mut answer) = ask(http, "query", &[("query", query)]);
    assert_eq!(status, 200, "{query}: {answer}");
    let rows = answer["data"]["result"].take();
    rows.as_array().unwrap().clone()
}

/// How many samples there are of a figure that never changes.
fn samples(http: &mut Http) -> u64 {
    let query = r#"count_over_time(latewood_build_info{__self__="true",job="latewood"}[1h])"#;
    let rows = rows(http, query);
    assert!(rows.len() <= 1, "{rows:?}");
    let count = rows.first().map(|row| row["value"][1].as_str().unwrap());
    count.map_or(0, |count| count.parse().unwrap())
}

/// The only value that a query gives.
fn value(http: &mut Http, query: &str) -> Option<String> {
    let rows = rows(http, query);
    assert!(rows.len() <= 1, "{rows:?}");
    Some(rows.first()?["value"][1].as_str().unwrap().to_owned())
}

#[test]
fn the_lateness_of_metrics_and_senders_is_history_too() {
    let server = Server::with(&OPTIONS);
    let (mut http, mut client) = (Http::to(server.http()), server.client());
    client.ask("CONFIG SET lateness-label site");
    for at in [900_000, 800_000] {
        client.ask(&format!("TS.ADD north:1 {at} 1 LABELS site north"));
    }
    let of = r#"label="site",value="north",__self__="true",job="latewood""#;
    let late = format!("latewood_late_label_samples_total{{{of}}}");
    let is = |http: &mut Http, query: &str, wanted: &str| {
        value(http, query).is_some_and(|value| value == wanted)
    };
    eventually("that of a value", || is(&mut http, &late, "1"));
    let oldest = format!(r#"latewood_late_label_age_seconds{{{of},share="1"}}"#);
    assert_eq!(value(&mut http, &oldest).unwrap(), "100");
    for at in [100_000, 40_000, 70_000, 200_000] {
        client.ask(&format!("TS.ADD {{\"a\\\"metric\",x=\"1\"}} {at} 1"));
    }
    let of = r#"metric="a\"metric",__self__="true",job="latewood""#;
    let late = format!("latewood_late_metric_samples_total{{{of}}}");
    // They may be written between two of its samples.
    eventually("its late samples", || is(&mut http, &late, "2"));
    let oldest = format!(r#"latewood_late_metric_age_seconds{{{of},share="1"}}"#);
    assert_eq!(value(&mut http, &oldest).unwrap(), "60");
    let half = format!(r#"latewood_late_metric_age_seconds{{{of},share="0.5"}}"#);
    let half: f64 = value(&mut http, &half).unwrap().parse().unwrap();
    assert!((30.0..=30.0 * 1.125).contains(&half), "{half}");
    let sender = r#"latewood_late_sender_samples_total{sender="127.0.0.1",user="default"}"#;
    assert_eq!(value(&mut http, sender).unwrap(), "3");
    // What came before the first of its samples counts.
    let increase = format!("increase(latewood_late_metric_samples_total{{{of}}}[1h])");
    eventually("an increase of 2, and what it is extrapolated to", || {
        let increase: f64 = value(&mut http, &increase).unwrap().parse().unwrap();
        (2.0..2.7).contains(&increase)
    });
    // What all may read does not name them.
    let text = http.get("/metrics").text();
    assert!(!text.contains("late_metric") && !text.contains("127.0.0.1\",user"));
    let told = http.get("/api/v1/metadata?metric=latewood_late_metric_samples_total");
    let told = body(&told);
    assert_eq!(
        told["data"]["latewood_late_metric_samples_total"][0]["type"],
        "counter"
    );
}

#[test]
fn all_figures_are_series_whose_history_outlives_a_restart() {
    let server = Server::with(&OPTIONS);
    let (mut http, mut client) = (Http::to(server.http()), server.client());
    client.ask("TS.ADD k 1000 1");
    let text = http.get("/metrics").text();
    let before = samples(&mut http);
    eventually("three samples more", || samples(&mut http) >= before + 3);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let served: BTreeSet<_> = lines
        .map(|line| line.split([' ', '{']).next().unwrap())
        .collect();
    let names = rows(&mut http, r#"count by (__name__) ({__self__="true"})"#);
    let names = names.iter().map(|row| row["metric"]["__name__"].as_str());
    let written: BTreeSet<_> = names.map(Option::unwrap).collect();
    let missing: Vec<_> = served.difference(&written).collect();
    assert!(served.len() > 100 && missing.is_empty(), "{missing:?}");
    // What others wrote is counted as before.
    let text = http.get("/metrics").text();
    let taken = text
        .lines()
        .filter(|line| line.starts_with("latewood_intake_samples_total"));
    assert!(
        taken.clone().count() > 5 && taken.clone().all(|line| line.ends_with(" 0")),
        "{text}"
    );
    let figure = r#"max(latewood_samples_total{__self__="true",order="in_order"}) > 100"#;
    assert_eq!(rows(&mut http, figure).len(), 1, "{text}");
    let told = http.get("/api/v1/metadata?metric=latewood_samples_total");
    assert_eq!(
        body(&told)["data"]["latewood_samples_total"][0]["type"],
        "counter"
    );
    let key = client.ask("TS.QUERYINDEX __self__=true __name__=latewood_build_info");
    let key = key.lines().last().unwrap();
    let retention = ":604800000\r\n";
    assert!(
        client.ask_words(&["TS.INFO", key]).contains(retention),
        "{key}"
    );

    let before = samples(&mut http);
    let (_, dir) = server.terminate();
    let server = Server::over(dir, &OPTIONS);
    let mut http = Http::to(server.http());
    eventually("the samples of before and more", || {
        samples(&mut http) > before
    });
}
