//! Metadata of metrics, and counts of series, as Prometheus' API tells them.

use crate::harness::Server;
use crate::http::client::Http;
use crate::http::promql::{ask, body, filled};
use crate::http::server;
use serde_json::json;

#[test]
fn counting_series_ends_when_its_client_leaves() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    for some in 0..6 {
        let lines = (0..5000).map(|at| format!("m,n={some},host=host-{at} v=1 1000\n"));
        let text: String = lines.collect();
        let written = http.post("/write?precision=ms", text.as_bytes());
        assert_eq!(written.status, 204, "{}", written.text());
    }
    let (status, all) = ask(&mut http, "status/tsdb", &[]);
    assert_eq!((status, &all["data"]["totalSeries"]), (200, &json!(30_000)));
    let mut redis = server.client();
    // A count may end before it is noticed that nobody waits, not every one.
    for _ in 0..1000 {
        if redis.info("read_labels_cancelled") > 0 {
            return;
        }
        let asked = redis.info("read_labels_requests");
        let mut leaves = Http::to(server.http());
        leaves.send(b"GET /api/v1/status/tsdb HTTP/1.1\r\nHost: x\r\n\r\n");
        while redis.info("read_labels_requests") == asked {
            std::thread::yield_now();
        }
        drop(leaves);
    }
    panic!("every count went on to its end");
}

#[test]
fn much_metadata_comes_in_pieces_and_a_limit_ends_it() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let help = "\u{e9} \"x\" ".repeat(400);
    let names: Vec<String> = (0..1000).map(|at| format!("m{at:04}")).collect();
    for some in names.chunks(100) {
        let lines = some.iter().map(|name| format!("# HELP {name} {help}\n"));
        let text: String = lines.collect();
        let written = http.post("/api/v1/import/prometheus", text.as_bytes());
        assert_eq!(written.status, 204, "{}", written.text());
    }
    let answer = http.get("/api/v1/metadata");
    assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
    let metrics = body(&answer);
    let metrics = metrics["data"].as_object().unwrap();
    assert!(metrics.keys().eq(&names));
    let wanted = json!([{"type": "", "unit": "", "help": help.trim_end()}]);
    assert!(metrics.values().all(|one| *one == wanted));
    for limit in [0, 1, 63, 64, 65, 999] {
        let (_, some) = ask(&mut http, "metadata", &[("limit", &limit.to_string())]);
        let some = some["data"].as_object().unwrap();
        assert!(some.keys().eq(&names[..limit]), "{limit}");
    }
    let (_, all) = ask(&mut http, "metadata", &[("limit", "-1")]);
    assert_eq!(all["data"].as_object().unwrap().len(), names.len());
    let mut redis = server.client();
    assert_eq!(redis.info("metadata_metrics"), 1000);
    assert_eq!(redis.info("metadata_left_out"), 0);
    assert!(redis.info("memory_metadata_bytes") > 1000 * help.len() as u64);
    let long = format!("# HELP long {}\n", "x".repeat(5000));
    http.post("/api/v1/import/prometheus", long.as_bytes());
    assert_eq!(redis.info("metadata_left_out"), 1);
    let metrics = http.get("/metrics").text();
    for line in [
        "latewood_metadata_metrics 1000\n",
        "latewood_metadata_left_out_total 1\n",
        "latewood_memory_bytes{part=\"metadata\"} ",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[test]
fn what_senders_say_of_metrics_is_kept() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let text = b"# TYPE up gauge\n# HELP up whether it is up\nup 1\n# UNIT wait_seconds seconds\n";
    assert_eq!(http.post("/api/v1/import/prometheus", text).status, 204);
    let all = json!({
        "up": [{"type": "gauge", "unit": "", "help": "whether it is up"}],
        "wait_seconds": [{"type": "", "unit": "seconds", "help": ""}],
    });
    assert_eq!(ask(&mut http, "metadata", &[]).1["data"], all);
    let one = ask(
        &mut http,
        "metadata",
        &[("metric", "up"), ("limit_per_metric", "1")],
    )
    .1;
    assert_eq!(one["data"].as_object().unwrap().len(), 1);
    let one = ask(&mut http, "metadata", &[("limit", "1")]).1;
    assert_eq!(one["data"]["up"], all["up"]);
    assert_eq!(
        ask(&mut http, "metadata", &[("metric", "nothing")]).1["data"],
        json!({})
    );
    for name in ["limit", "limit_per_metric"] {
        let (status, body) = ask(&mut http, "metadata", &[(name, "x")]);
        assert_eq!(
            (status, &body["error"]),
            (400, &json!(format!("{name} must be a number")))
        );
    }
    // Of metrics that a user may not read or write it sees and says nothing.
    server.client().ask("ACL SETUSER some on >pw ~up +@all");
    let token = "Authorization: Token some:pw\r\n";
    http.post_with(
        "/api/v1/import/prometheus",
        token,
        b"# HELP wait_seconds mine\n# HELP up mine\n",
    );
    http.send(format!("GET /api/v1/metadata HTTP/1.1\r\nHost: x\r\n{token}\r\n").as_bytes());
    let seen = body(&http.answer());
    assert_eq!(
        seen["data"],
        json!({"up": [{"type": "gauge", "unit": "", "help": "mine"}]})
    );
    assert_eq!(
        ask(&mut http, "metadata", &[]).1["data"]["wait_seconds"],
        all["wait_seconds"]
    );
    let (_, dir) = server.terminate();
    let server = Server::over(dir, &["--wal", "off", "--http", "127.0.0.1:0"]);
    let mut http = Http::to(server.http());
    assert_eq!(
        ask(&mut http, "metadata", &[]).1["data"]
            .as_object()
            .unwrap()
            .len(),
        2
    );
}
