//! The newest samples as text that Prometheus scrapes.

use crate::http::client::Http;
use crate::http::server;
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn newest_samples_are_given_as_text_to_scrape() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = now.as_millis() as i64 - 1000;
    let text = format!(
        "up{{job=\"a\\\"b\",instance=\"x:1\"}} 0 {}\nup{{job=\"a\\\"b\",instance=\"x:1\"}} 1 {now}\n\
         up{{A=\"1\"}} +Inf {now}\n{{\"my.metric\",\"a b\"=\"1\"}} 1e-7 {now}\nalone 2.5 {now}\n\
         old 1 {}\n",
        now - 10,
        now - 400_000,
    );
    let written = http.post("/api/v1/import/prometheus", text.as_bytes());
    assert_eq!(written.status, 204, "{}", written.text());
    let answer = http.get("/federate?match[]={__name__!=%22%22}&match[]=up");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let kind = answer.field("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let expected = format!(
        "# TYPE alone untyped\nalone{{instance=\"\"}} 2.5 {now}\n\
         # TYPE \"my.metric\" untyped\n{{\"my.metric\",\"a b\"=\"1\",instance=\"\"}} 0.0000001 {now}\n\
         # TYPE up untyped\nup{{A=\"1\",instance=\"\"}} +Inf {now}\n\
         up{{instance=\"x:1\",job=\"a\\\"b\"}} 1 {now}\n"
    );
    assert_eq!(answer.text(), expected);
    // What it gives can be read as what it was made of.
    let back = http.post("/api/v1/import/prometheus", answer.text().as_bytes());
    assert_eq!(back.status, 204, "{}", back.text());

    assert_eq!(http.get("/federate?match[]=nothing").text(), "");
    let refused = http.get("/federate");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("no match[] parameter provided"));
}

#[test]
fn what_only_scrapers_have_is_empty() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    for (path, data) in [
        ("targets/metadata", "[]"),
        ("scrape_pools", "{\"scrapePools\":[]}"),
        (
            "status/config",
            "{\"yaml\":\"global:\\n  evaluation_interval: 60000ms\\n\"}",
        ),
    ] {
        let answer = http.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 200, "{path}");
        let wanted = format!("{{\"data\":{data},\"status\":\"success\"}}");
        assert_eq!(answer.text().trim_end(), wanted);
    }
}
