//! Queries in PromQL, and what Prometheus' API says of the server.

use crate::harness::Server;
use crate::http::client::{Answer, Http};
use crate::http::server;
use serde_json::{Value, json};

/// Two series of Redis keys, and a counter by line protocol; samples at seconds 1 to 8.
pub(crate) fn filled(options: &[&str]) -> Server {
    let server = server(options);
    let mut redis = server.client();
    for at in 1..=8 {
        redis.ask(&format!("TS.ADD room:1 {at}000 {} LABELS host a", at * at));
        redis.ask(&format!("TS.ADD room:2 {at}000 {at} LABELS host b"));
    }
    let lines: String = (1..=8)
        .map(|at| format!("req,host=a total={} {at}000\n", at * 10))
        .collect();
    let written = Http::to(server.http()).post("/write?precision=ms", lines.as_bytes());
    assert_eq!(written.status, 204, "{}", written.text());
    server
}

/// A path with parameters, percent-encoded.
pub(crate) fn path(endpoint: &str, parameters: &[(&str, &str)]) -> String {
    let mut path = format!("/api/v1/{endpoint}?");
    for (name, value) in parameters {
        let encoded = |text: &str| -> String {
            let byte = |byte: u8| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' => {
                    char::from(byte).to_string()
                }
                byte => format!("%{byte:02X}"),
            };
            text.bytes().map(byte).collect()
        };
        path += &format!("{}={}&", encoded(name), encoded(value));
    }
    path
}

pub(crate) fn ask(http: &mut Http, endpoint: &str, parameters: &[(&str, &str)]) -> (u16, Value) {
    let answer = http.get(&path(endpoint, parameters));
    (answer.status, body(&answer))
}

pub(crate) fn body(answer: &Answer) -> Value {
    assert_eq!(answer.field("content-type"), Some("application/json"));
    serde_json::from_slice(&answer.body).unwrap()
}

/// The result of an instant query at second 8.
fn value(http: &mut Http, query: &str) -> Value {
    let (status, mut body) = ask(http, "query", &[("query", query), ("time", "8")]);
    assert_eq!(status, 200, "{query}: {body}");
    body["data"]["result"].take()
}

#[test]
fn every_series_is_read_whoever_wrote_it() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let one = json!([{"metric": {"__name__": "room:1", "host": "a"}, "value": [8, "64"]}]);
    assert_eq!(value(&mut http, "{__name__=\"room:1\"}"), one);
    assert_eq!(value(&mut http, "room:1"), one);
    assert_eq!(
        value(
            &mut http,
            "sum by (host) ({host=~\"a|b\", __name__!~\"room:1\"})"
        ),
        json!([
            {"metric": {"host": "a"}, "value": [8, "80"]},
            {"metric": {"host": "b"}, "value": [8, "8"]},
        ])
    );
    assert_eq!(
        value(&mut http, "rate(req_total[4s]) / on (host) room:1"),
        json!([{"metric": {"host": "a"}, "value": [8, "0.15625"]}])
    );
}

#[test]
fn results_have_the_shapes_of_prometheus() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    for (query, time, text) in [
        ("1 + 1", "4", r#"{"resultType":"scalar","result":[4,"2"]}"#),
        (
            "1e21",
            "4.5",
            r#"{"resultType":"scalar","result":[4.5,"1000000000000000000000"]}"#,
        ),
        (
            "\"x\"",
            "4.25",
            r#"{"resultType":"string","result":[4.25,"x"]}"#,
        ),
        ("nothing", "4", r#"{"resultType":"vector","result":[]}"#),
        (
            "vector(1e21)",
            "4.5",
            r#"{"resultType":"vector","result":[{"metric":{},"value":[4.500,"1e+21"]}]}"#,
        ),
        (
            "room:2[2s]",
            "8",
            r#"{"resultType":"matrix","result":[{"metric":{"__name__":"room:2","host":"b"},"values":[[7,"7"],[8,"8"]]}]}"#,
        ),
    ] {
        let answer = http.get(&path("query", &[("query", query), ("time", time)]));
        let wanted = format!("{{\"status\":\"success\",\"data\":{text}}}\n");
        assert_eq!(answer.text(), wanted, "{query}");
    }
    let steps = [("start", "1"), ("end", "3.9"), ("step", "1500ms")];
    let range = http.get(&path(
        "query_range",
        &[&[("query", "room:2 > 1")], &steps[..]].concat(),
    ));
    assert_eq!(
        range.text(),
        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":\
         {\"__name__\":\"room:2\",\"host\":\"b\"},\"values\":[[2.500,\"2\"]]}]}}\n"
    );
}

#[test]
fn a_late_sample_is_in_the_next_answer() {
    let server = filled(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    assert_eq!(
        value(&mut http, "max_over_time(room:2[6s])")[0]["value"][1],
        "8"
    );
    redis.ask("TS.ADD room:2 3500 99");
    let query = [
        ("query", "max_over_time(room:2[6s])"),
        ("time", "8"),
        ("stats", "all"),
    ];
    let stats = ask(&mut http, "query", &query).1["data"]["stats"].take();
    assert_eq!(stats["latewood"]["samplesDecoded"], 7);
    // Among the newest samples it is in its place already.
    assert_eq!(stats["latewood"]["lateSamplesMerged"], 0);
    assert_eq!(
        value(&mut http, "max_over_time(room:2[6s])")[0]["value"][1],
        "99"
    );
    redis.ask("TS.DEL room:2 3500 3500");
    assert_eq!(
        value(&mut http, "max_over_time(room:2[6s])")[0]["value"][1],
        "8"
    );
}

#[test]
fn warnings_limits_and_figures_stand_behind_the_result() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let query = ("query", "rate({host=~\"a|b\", __name__=~\"room.*\"}[5s])");
    let (_, body) = ask(
        &mut http,
        "query",
        &[query, ("time", "8"), ("limit", "1"), ("stats", "x")],
    );
    assert_eq!(body["data"]["result"].as_array().unwrap().len(), 1);
    let warnings = body["warnings"].as_array().unwrap();
    assert_eq!(warnings[0], "results truncated due to limit");
    assert!(
        warnings[1]
            .as_str()
            .unwrap()
            .starts_with("value \"x\" for parameter \"stats\"")
    );
    assert_eq!(
        body["infos"][0],
        "PromQL info: metric might not be a counter, name does not end in \
         _total/_sum/_count/_bucket: \"room:1\" (1:6)"
    );
    assert_eq!(body["data"]["stats"]["samples"]["samplesRead"], 10);
    assert_eq!(body["data"]["stats"]["samples"]["seriesTouched"], 2);
    let (_, body) = ask(&mut http, "query", &[query, ("time", "8"), ("limit", "0")]);
    assert_eq!(body["data"]["result"].as_array().unwrap().len(), 2);
    assert_eq!(body["warnings"], Value::Null);
    let lookback = |http: &mut Http, lookback| {
        let parameters = [
            ("query", "room:1"),
            ("time", "9"),
            ("lookback_delta", lookback),
        ];
        ask(http, "query", &parameters).1["data"]["result"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        (lookback(&mut http, "1s"), lookback(&mut http, "1001ms")),
        (0, 1)
    );
}

/// Path, status, kind, and how the error begins.
const WRONG: &[(&str, u16, &str, &str)] = &[
    (
        "query?query=sum(",
        400,
        "bad_data",
        "invalid parameter \"query\": 1:5: parse error: unclosed left parenthesis",
    ),
    (
        "query",
        400,
        "bad_data",
        "invalid parameter \"query\": unknown position: parse error: no expression found in input",
    ),
    (
        "query?query=up&time=x",
        400,
        "bad_data",
        "invalid parameter \"time\": invalid time value for 'time': cannot parse \"x\" to a valid timestamp",
    ),
    (
        "query?query=up&limit=x",
        400,
        "bad_data",
        "invalid parameter \"limit\": strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        "query?query=up&limit=-1",
        400,
        "bad_data",
        "invalid parameter \"limit\": limit must be non-negative",
    ),
    (
        "query?query=up&timeout=0",
        400,
        "bad_data",
        "invalid parameter \"timeout\": timeout must be positive, got 0s",
    ),
    (
        "query?query=up&lookback_delta=x",
        400,
        "bad_data",
        "error parsing lookback delta duration: cannot parse \"x\" to a valid duration",
    ),
    (
        "query?time=8&query=vector(1)%2Bon()group_left(){host=~%22a|b%22}",
        422,
        "execution",
        "found duplicate series for the match group {} on the right hand-side of the operation: ",
    ),
    (
        "query_range?query=up&start=1&end=0&step=1",
        400,
        "bad_data",
        "invalid parameter \"end\": end timestamp must not be before start time",
    ),
    (
        "query_range?query=up&end=0&step=1",
        400,
        "bad_data",
        "invalid parameter \"start\": cannot parse \"\" to a valid timestamp",
    ),
    (
        "query_range?query=up&start=1&end=2&step=0",
        400,
        "bad_data",
        "invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer",
    ),
    (
        "query_range?query=up&start=1&end=2&step=NaN",
        400,
        "bad_data",
        "invalid parameter \"step\": cannot parse \"NaN\" to a valid duration. It overflows int64",
    ),
    (
        "query_range?query=up&start=1&end=2&step=%2BInf",
        400,
        "bad_data",
        "invalid parameter \"step\": cannot parse \"+Inf\" to a valid duration. It overflows int64",
    ),
    (
        "query_range?query=up&start=1&end=12002&step=1",
        400,
        "bad_data",
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
    ),
    (
        "query_range?query=up[5m]&start=1&end=2&step=1",
        400,
        "bad_data",
        "invalid parameter \"query\": invalid expression type \"range vector\" for range query, must be Scalar or instant Vector",
    ),
    (
        "format_query?query=sum(",
        400,
        "bad_data",
        "invalid parameter \"query\": 1:5: parse error: unclosed left parenthesis",
    ),
    (
        "status/tsdb?limit=0",
        400,
        "bad_data",
        "limit must be a positive number",
    ),
    (
        "rules?type=x",
        400,
        "bad_data",
        "invalid parameter \"type\": not supported value \"x\"",
    ),
];

#[test]
fn what_is_wrong_is_told_in_the_words_of_prometheus() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    for (path, status, kind, wanted) in WRONG {
        let answer = http.get(&format!("/api/v1/{path}"));
        let body = body(&answer);
        assert_eq!(answer.status, *status, "{path}: {body}");
        assert_eq!(
            (&body["status"], &body["errorType"]),
            (&json!("error"), &json!(kind))
        );
        let error = body["error"].as_str().unwrap();
        assert!(error.starts_with(wanted), "{path}: {error}");
    }
}

/// What Grafana sends to test a data source, and what it must not find.
#[test]
fn grafana_saves_and_tests() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = http.post_with("/api/v1/query", form, b"query=1%2B1&time=4");
    assert_eq!(body(&answer)["data"]["result"], json!([4, "2"]));
    let (_, build) = ask(&mut http, "status/buildinfo", &[]);
    assert_eq!(build["data"]["version"], "3.16.0");
    assert_eq!(build["data"]["features"], Value::Null);
    let exemplars = [
        ("query", "req_total"),
        ("start", "1700000000000"),
        ("end", "1700000001000"),
    ];
    assert_eq!(
        ask(&mut http, "query_exemplars", &exemplars).1["data"],
        json!([])
    );
    for (endpoint, data) in [
        ("rules", json!({"groups": [], "mayReload": true})),
        ("alerts", json!({"alerts": []})),
        ("status/tsdb", json!(null)),
        ("status/runtimeinfo", json!(null)),
        ("status/flags", json!(null)),
        ("features", json!(null)),
    ] {
        let (status, body) = ask(&mut http, endpoint, &[]);
        assert_eq!(status, 200, "{endpoint}");
        assert!(data.is_null() || body["data"] == data, "{endpoint}: {body}");
    }
    let (_, tsdb) = ask(
        &mut http,
        "status/tsdb",
        &[("match[]", "{host=\"a\"}"), ("focusLabel", "host")],
    );
    assert_eq!(
        ask(&mut http, "status/tsdb", &[("limit", "1")]).1["data"],
        json!({
            "headStats": {
                "numSeries": 3, "numLabelPairs": 5, "chunkCount": 3,
                "minTime": 1000, "maxTime": 8000,
            },
            "totalSeries": 3,
            "totalLabelValuePairs": 5,
            "seriesCountByMetricName": [{"name": "req_total", "value": 1}],
            "labelValueCountByLabelName": [{"name": "__name__", "value": 3}],
            "seriesCountByLabelName": [{"name": "__name__", "value": 3}],
            // The lengths of name and value and a byte for each of both, in each series.
            "memoryInBytesByLabelName": [{"name": "__name__", "value": 3 * (8 + 2) + 6 + 6 + 9}],
            "seriesCountByLabelValuePair": [
                {"name": "host=a", "label": "host", "labelValue": "a", "value": 2},
            ],
        })
    );
    assert_eq!(tsdb["data"]["headStats"]["numSeries"], 2);
    assert_eq!(
        tsdb["data"]["seriesCountByFocusLabelValue"],
        json!([{"name": "a", "value": 2}])
    );
    // The fields of the body come before those of the path.
    let answer = http.post_with("/api/v1/query?query=2&time=9", form, b"query=3&time=4");
    assert_eq!(body(&answer)["data"]["result"], json!([4, "3"]));
}

#[test]
fn series_without_samples_since_a_time_are_counted() {
    let server = filled(&[]);
    let mut redis = server.client();
    redis.ask("TS.CREATE never LABELS host b");
    redis.ask("TS.ADD old{host=\"a\"} 7999 1 LABELS __name__ old host a");
    redis.ask("TS.ADD old{host=\"b\"} 1000 1 LABELS __name__ old host b");
    let mut http = Http::to(server.http());
    let mut idle = |parameters: &[(&str, &str)]| {
        let (status, body) = ask(&mut http, "status/tsdb", parameters);
        assert_eq!(status, 200, "{body}");
        let field = |name: &str| body["data"][name].clone();
        let names = ["idleSince", "seriesIdle", "seriesIdleByMetricName"];
        names.map(field)
    };
    let metric = |name: &str, value: u64| json!({"name": name, "value": value});
    assert_eq!(idle(&[]), [Value::Null, Value::Null, Value::Null]);
    let since = ("idleSince", "8");
    let list = json!([metric("old", 2), metric("never", 1)]);
    assert_eq!(idle(&[since]), [json!(8000), json!(3), list]);
    let list = json!([metric("old", 2)]);
    assert_eq!(
        idle(&[since, ("limit", "1")]),
        [json!(8000), json!(3), list]
    );
    let list = json!([metric("never", 1), metric("old", 1)]);
    let of_b = ("match[]", "{host=\"b\"}");
    assert_eq!(idle(&[since, of_b]), [json!(8000), json!(2), list]);
    let before = ("idleSince", "1970-01-01T00:00:01Z");
    let list = json!([metric("never", 1)]);
    assert_eq!(idle(&[before]), [json!(1000), json!(1), list]);
    let (status, body) = ask(&mut http, "status/tsdb", &[("idleSince", "today")]);
    assert_eq!(status, 400, "{body}");
    let text = "invalid parameter \"idleSince\"";
    assert!(body["error"].as_str().unwrap().contains(text), "{body}");
}

#[test]
fn texts_are_formatted_and_parsed() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let query = [("query", "sum by(a)(rate(foo[5m]))/2")];
    assert_eq!(
        ask(&mut http, "format_query", &query).1["data"],
        "sum by (a) (rate(foo[5m])) / 2"
    );
    let (_, tree) = ask(&mut http, "parse_query", &query);
    assert_eq!(tree["data"]["type"], "binaryExpr");
    assert_eq!(tree["data"]["lhs"]["grouping"], json!(["a"]));
}
