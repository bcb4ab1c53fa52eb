//! New series that the memory budget has no room for.

use crate::http::client::{Answer, Http};
use crate::http::prometheus::write;
use crate::http::protobuf::{field, labels, sample};
use crate::http::server;

const JSON: &str = "Content-Type: application/json\r\n";
const V1: &str = "Content-Type: application/x-protobuf\r\n";
const BUDGET: &str = "64mb";
/// Requests after which the budget is spent, whatever the series take.
const REQUESTS_MAX: usize = 4000;

/// The first answer to a new series that says it was not taken.
fn refused(mut send: impl FnMut(usize) -> Answer) -> Answer {
    let answers = (0..REQUESTS_MAX).map(&mut send);
    let mut refused = answers.skip_while(|answer| matches!(answer.status, 200 | 204));
    refused.next().expect("every series was taken")
}

fn lines(from: usize) -> String {
    let each = |n| format!("churn,host=host-{n},room=a-label-of-some-length v=1 1\n");
    (from * 500..(from + 1) * 500).map(each).collect()
}

#[test]
fn a_new_series_without_room_is_to_be_sent_again_in_every_protocol() {
    let server = server(&["--memory", BUDGET]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    assert_eq!(http.post("/write", b"kept v=1 1000000\n").status, 204);
    refused(|n| http.post("/write", lines(n).as_bytes()));

    let influx = refused(|n| {
        let mixed = format!("kept v=2 2000000\nnew,a=influx-{n} v=1 1\n");
        http.post("/write", mixed.as_bytes())
    });
    let text = refused(|n| {
        let line = format!("new{{a=\"text-{n}\"}} 1 1000\n");
        http.post("/api/v1/import/prometheus", line.as_bytes())
    });
    let prometheus = refused(|n| {
        let host = format!("write-{n}");
        let series = labels(&[("__name__", "new"), ("a", &host)]);
        let series = [series, sample(1.0, 1000)].concat();
        write(&mut http, V1, &field(1, &series))
    });
    let opentsdb = refused(|n| {
        let point = format!(
            r#"{{"metric":"new","timestamp":1346846400,"value":1,"tags":{{"a":"put-{n}"}}}}"#
        );
        http.post("/api/put?details", point.as_bytes())
    });
    let otlp = refused(|n| {
        let points = format!(
            r#"{{"timeUnixNano":"1000000","asInt":"1","attributes":[{{"key":"a","value":{{"stringValue":"otlp-{n}"}}}}]}}"#
        );
        let body = crate::http::otlp::request(&points);
        http.post_with("/v1/metrics", JSON, body.as_bytes())
    });
    for answer in [influx, text, prometheus, opentsdb, otlp] {
        let said = answer.text();
        assert_eq!(answer.status, 503, "{said}");
        assert!(answer.field("retry-after").is_some(), "{said}");
        assert!(said.contains("does not allow another series"), "{said}");
        assert!(
            said.contains("new{a=") || said.contains("new_v{a=") || said.contains("temp{a="),
            "{said}"
        );
    }
    damaged_ends_are_told_after_want_of_memory(&mut http);
    // The series there are go on taking samples, beside refused ones too.
    redis.expect(&[("TS.GET kept_v", "*2\r\n:2\r\n+2\r\n")]);
    assert_eq!(http.post("/write", b"kept v=3 3000000\n").status, 204);
    assert_eq!(redis.info("refused_series"), 0);
    assert!(redis.info("memory_refused") > 0);
}

/// Bodies whose ends are damaged: who drops them for that would drop what was
/// only not kept for want of memory.
fn damaged_ends_are_told_after_want_of_memory(http: &mut Http) {
    // Where some were kept after all, the damage is what there is to tell.
    fn wanting(mut send: impl FnMut(usize) -> Answer) -> Answer {
        let mut answers = (0..REQUESTS_MAX).map(&mut send);
        let wanting = answers.find(|answer| answer.status != 400);
        wanting.expect("want of memory was never told of")
    }
    let influx = wanting(|n| {
        let lines: String = (0..5000)
            .map(|m| format!("new,a=cut-{n}-{m} v=1 1\n"))
            .collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, lines.as_bytes()).unwrap();
        let mut body = gzip.finish().unwrap();
        body.truncate(body.len() - 20);
        http.post_with("/write", "Content-Encoding: gzip\r\n", &body)
    });
    let prometheus = wanting(|n| {
        let host = format!("cut-{n}");
        let series = labels(&[("__name__", "new"), ("a", &host)]);
        let series = [series, sample(1.0, 1000)].concat();
        let message = [&*series, b"\x0a\xff"].map(|series| field(1, series));
        write(http, V1, &message.concat())
    });
    for answer in [influx, prometheus] {
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(answer.field("retry-after").is_some(), "{}", answer.text());
    }
}
