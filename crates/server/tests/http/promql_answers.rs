//! How answers to queries in PromQL are sent: in pieces, compressed.

use crate::http::client::Http;
use crate::http::promql::{ask, filled, path};
use crate::http::server;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read;

/// A long answer comes in many pieces, which hold together what one query gives.
#[test]
fn a_long_answer_is_whole() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let lines: String = (0..300)
        .map(|at| format!("wide,host=h{at:03} v={at} 1000\n"))
        .collect();
    assert_eq!(
        http.post("/write?precision=ms", lines.as_bytes()).status,
        204
    );
    let range = [
        ("query", "wide_v"),
        ("start", "1"),
        ("end", "900"),
        ("step", "1"),
        ("lookback_delta", "1d"),
    ];
    let (status, body) = ask(&mut http, "query_range", &range);
    assert_eq!(status, 200);
    let series = body["data"]["result"].as_array().unwrap();
    assert_eq!(series.len(), 300);
    for coding in ["gzip", "zstd", "br, zstd;q=0.1, gzip;q=0"] {
        let path = path("query_range", &range);
        http.send(
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {coding}\r\n\r\n")
                .as_bytes(),
        );
        let answer = http.answer();
        let plain = match answer.field("content-encoding") {
            Some("gzip") => {
                let mut plain = Vec::new();
                GzDecoder::new(&answer.body[..])
                    .read_to_end(&mut plain)
                    .unwrap();
                plain
            }
            Some("zstd") => zstd::decode_all(&answer.body[..]).unwrap(),
            other => panic!("{coding}: {other:?}"),
        };
        assert_eq!(
            coding == "gzip",
            answer.field("content-encoding") == Some("gzip")
        );
        assert!(answer.body.len() * 4 < plain.len());
        let same: serde_json::Value = serde_json::from_slice(&plain).unwrap();
        assert!(same == body, "{coding}");
    }
    for (at, one) in series.iter().enumerate() {
        assert_eq!(one["metric"]["host"], format!("h{at:03}"));
        let values = one["values"].as_array().unwrap();
        assert_eq!(values.len(), 900);
        assert_eq!(values[899], json!([900, at.to_string()]));
    }
}

/// Of a tree whose text takes 16 KiB.
const LEVELS: u32 = 12;

/// A sum of 2^`levels` selectors.
fn tree(levels: u32) -> String {
    match levels {
        0 => "a".to_owned(),
        levels => format!("({0}+{0})", tree(levels - 1)),
    }
}

#[test]
fn a_tree_that_is_much_longer_than_its_text_is_sent_in_pieces() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let body = format!("query={}", tree(LEVELS).replace('+', "%2B"));
    let parsed = http.post_with("/api/v1/parse_query", form, body.as_bytes());
    assert_eq!(parsed.status, 200);
    assert_eq!(parsed.field("transfer-encoding"), Some("chunked"));
    let value: Value = serde_json::from_slice(&parsed.body).unwrap();
    let mut node = &value["data"];
    for _ in 0..LEVELS {
        assert_eq!(node["type"], "parenExpr");
        node = &node["expr"]["lhs"];
    }
    assert_eq!(node["name"], "a");
    let printed = http.post_with("/api/v1/format_query", form, body.as_bytes());
    assert_eq!(printed.status, 200);
    // Such trees leave no memory taken.
    for _ in 0..4 {
        let again = http.post_with("/api/v1/parse_query", form, body.as_bytes());
        assert_eq!(again.body, parsed.body);
    }
}

#[test]
fn one_long_series_of_an_instant_query_is_sent_in_pieces() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let query = [("query", "vector(1)[20d:10s]"), ("time", "2000000")];
    let answer = http.get(&path("query", &query));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let series = body["data"]["result"].as_array().unwrap();
    assert_eq!((series.len(), &series[0]["metric"]), (1, &json!({})));
    let expected: Vec<Value> = (27_201..=200_000).map(|at| json!([at * 10, "1"])).collect();
    assert!(series[0]["values"] == json!(expected));
}

#[test]
fn encodings_of_no_weight_are_not_acceptable() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let query = path("query", &[("query", "vector(1)[1d:1m]"), ("time", "1e9")]);
    for (accepts, coding) in [
        ("gzip", Some("gzip")),
        ("gzip;q=0.001", Some("gzip")),
        ("gzip;q=0.000", None),
        ("gzip; Q=0., zstd", Some("zstd")),
        ("identity", None),
    ] {
        http.send(
            format!("GET {query} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {accepts}\r\n\r\n")
                .as_bytes(),
        );
        let answer = http.answer();
        assert_eq!(answer.field("content-encoding"), coding, "{accepts}");
        assert_eq!(answer.field("vary"), Some("accept-encoding"), "{accepts}");
    }
}

/// What is known of frames is enough for whole numbers, in memory and in blocks; others are read.
#[test]
fn long_windows_take_statistics_of_frames() {
    const SAMPLES: u64 = 5000;
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let number = |at: u64| at * 7919 % 101;
    let lines: String = (0..SAMPLES)
        .map(|at| format!("load whole={0},half={0}.5 {1}\n", number(at), at * 1000))
        .collect();
    let written = http.post("/write?precision=ms", lines.as_bytes());
    assert_eq!(written.status, 204);
    let sum: u64 = (0..SAMPLES).map(number).sum();
    let (mean, half) = (sum as f64 / SAMPLES as f64, sum + SAMPLES / 2);
    for _ in ["in memory", "in blocks"] {
        for (query, wanted, is_known) in [
            ("sum_over_time(load_whole[2h])", sum.to_string(), true),
            ("avg_over_time(load_whole[2h])", mean.to_string(), true),
            ("count_over_time(load_half[2h])", SAMPLES.to_string(), true),
            ("max_over_time(load_half[2h])", "100.5".to_owned(), true),
            ("sum_over_time(load_half[2h])", half.to_string(), false),
        ] {
            let parameters = [("query", query), ("time", "5000"), ("stats", "all")];
            let data = ask(&mut http, "query", &parameters).1["data"].take();
            assert_eq!(data["result"][0]["value"][1], wanted, "{query}");
            let figure = |name: &str| data["stats"]["latewood"][name].as_u64().unwrap();
            let known = figure("samplesFromStatistics");
            assert_eq!(figure("samplesDecoded") + known, SAMPLES, "{query}");
            assert_eq!(known > SAMPLES / 2, is_known, "{query}: {known}");
            assert!(is_known || known == 0, "{query}: {known}");
        }
        assert_eq!(redis.ask("SAVE"), "+OK\r\n");
    }
}
