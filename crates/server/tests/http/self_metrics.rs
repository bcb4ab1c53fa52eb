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
