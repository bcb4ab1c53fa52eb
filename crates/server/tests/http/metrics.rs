//! Figures for Prometheus, and the log.

use crate::http::client::Http;
use crate::http::server;

fn value(text: &str, series: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series}"))
        .parse()
        .unwrap()
}

#[test]
fn figures_follow_what_is_sent_and_info_says_the_same() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    http.post(
        "/write?precision=ms",
        b"m v=1,t=\"x\" 1000\nm v=2 2000\nm v=3 500\nm\n",
    );
    redis.ask("TS.ADD k 1 1");
    let answer = http.get("/metrics");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.field("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = answer.text();
    assert_eq!(
        value(&text, "latewood_intake_samples_total{protocol=\"influx\"}"),
        3.0
    );
    let refused = "latewood_intake_refused_total{protocol=\"influx\",reason=\"syntax\"}";
    assert_eq!(value(&text, refused), 1.0);
    assert_eq!(
        value(&text, "latewood_intake_strings_total{protocol=\"influx\"}"),
        1.0
    );
    assert_eq!(
        value(
            &text,
            "latewood_intake_age_seconds_count{protocol=\"influx\"}"
        ),
        3.0
    );
    assert_eq!(value(&text, "latewood_series"), 2.0);
    assert_eq!(value(&text, "latewood_ready"), 1.0);
    assert_eq!(value(&text, "latewood_connections{listener=\"http\"}"), 1.0);
    let orders = ["in_order", "late", "duplicate"].map(|order| {
        value(
            &text,
            &format!("latewood_samples_total{{order=\"{order}\"}}"),
        )
    });
    assert_eq!(orders.iter().sum::<f64>(), 4.0);
    for (field, wanted) in [("samples", 3), ("refused", 1), ("strings", 1)] {
        assert_eq!(redis.info(&format!("intake_influx_{field}")), wanted);
    }
}

#[test]
fn ages_of_redis_samples_and_refusals_by_limits_are_shown() {
    let server = server(&["--max-series", "2"]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    redis.ask("TS.ADD late 1 1");
    redis.ask("TS.ADD new * 1 ENCODING COMPRESSED");
    redis.ask("TS.MADD late 2 2 late 3 3");
    redis.ask("TS.ADD third 1 1");
    assert_eq!(http.post("/write", b"fourth v=1\n").status, 400);
    let text = http.get("/metrics").text();
    let ages = |le: &str| {
        let series = "latewood_intake_age_seconds_bucket";
        value(
            &text,
            &format!("{series}{{protocol=\"redis\",le=\"{le}\"}}"),
        )
    };
    // One of now, and four as old as the clock.
    assert_eq!([ages("10"), ages("2592000"), ages("+Inf")], [1.0, 1.0, 5.0]);
    let refused = "latewood_limit_refused_total{limit=\"series\"}";
    assert_eq!(value(&text, refused), 2.0);
    assert_eq!(redis.info("refused_series"), 2);
}

#[test]
fn the_log_names_what_was_refused_and_does_not_repeat_itself() {
    let server = server(&["--log-format", "json"]);
    let mut http = Http::to(server.http());
    for _ in 0..50 {
        assert_eq!(
            http.post("/write?precision=ms", b"m v=1 9999999999999\n")
                .status,
            400
        );
    }
    let line = server.wait_for_log("samples were refused");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&line["protocol"], &line["reason"]),
        (&"influx".into(), &"future".into())
    );
    assert_eq!(
        (&line["address"], &line["user"]),
        (&"127.0.0.1".into(), &"default".into())
    );
    assert!(
        line["first"]
            .as_str()
            .unwrap()
            .starts_with("m_v at 9999999999999"),
        "{line}"
    );
    // What comes next in the log is not the same again.
    server.client().send(b"SHUTDOWN\r\n");
    let next = server.wait_for_log("message");
    assert!(!next.contains("samples were refused"), "{next}");
}
