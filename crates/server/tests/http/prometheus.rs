//! Remote write in both versions, and the text format.

use crate::http::client::{Answer, Http};
use crate::http::protobuf::{field, labels, sample};
use crate::http::server;
use std::io::Write;

const SNAPPY: &str = "Content-Encoding: snappy\r\n";
const V1: &str = "Content-Type: application/x-protobuf\r\n";
const V2: &str = "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\n";

pub(crate) fn write(http: &mut Http, head: &str, message: &[u8]) -> Answer {
    let body = snap::raw::Encoder::new().compress_vec(message).unwrap();
    http.post_with("/api/v1/write", &format!("{SNAPPY}{head}"), &body)
}

#[test]
fn version_1_keeps_samples_and_stale_markers() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let up = labels(&[("__name__", "up"), ("job", "a")]);
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    let series = [
        up.clone(),
        sample(1.0, 2000),
        sample(stale, 3000),
        sample(0.0, 1000),
    ]
    .concat();
    assert_eq!(write(&mut http, V1, &field(1, &series)).status, 204);
    let expected = "*3\r\n*2\r\n:1000\r\n+0\r\n*2\r\n:2000\r\n+1\r\n*2\r\n:3000\r\n+NaN\r\n";
    assert_eq!(redis.ask("TS.RANGE up{job=\"a\"} - +"), expected);

    // A native histogram is refused for good; the samples beside it are kept.
    let other = [up, sample(5.0, 5000), field(4, b"")].concat();
    let answer = write(&mut http, V1, &field(1, &other));
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("native histograms"),
        "{}",
        answer.text()
    );
    assert_eq!(redis.ask("TS.GET up{job=\"a\"}"), "*2\r\n:5000\r\n+5\r\n");
}

#[test]
fn a_series_with_a_label_without_a_name_is_not_written_into_another() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let up = labels(&[("__name__", "up")]);
    let odd = labels(&[("__name__", "up"), ("", "x")]);
    let message: Vec<u8> = [(&up, 1000), (&up, 2000), (&odd, 3000)]
        .iter()
        .flat_map(|(labels, at)| field(1, &[&labels[..], &sample(1.0, *at)].concat()))
        .collect();
    let answer = write(&mut http, V1, &message);
    assert_eq!(answer.status, 400);
    let text = answer.text();
    assert!(
        text.contains("1 refused, 2 kept") && text.contains("series 3"),
        "{text}"
    );
    assert_eq!(server.client().ask("TS.GET up"), "*2\r\n:2000\r\n+1\r\n");
}

#[test]
fn version_2_counts_what_was_written() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let symbols: Vec<u8> = ["", "__name__", "up", "job", "a"]
        .iter()
        .flat_map(|symbol| field(4, symbol.as_bytes()))
        .collect();
    let series = [
        field(1, &[1, 2, 3, 4]),
        sample(1.0, 1000),
        sample(2.0, 2000),
    ]
    .concat();
    let message = [symbols.clone(), field(5, &series)].concat();
    let answer = write(&mut http, V2, &message);
    let written = |answer: &Answer, what: &str| {
        let name = format!("x-prometheus-remote-write-{what}-written");
        answer.field(&name).map(str::to_owned)
    };
    assert_eq!(
        (answer.status, written(&answer, "samples").as_deref()),
        (204, Some("2"))
    );
    assert_eq!(written(&answer, "histograms").as_deref(), Some("0"));
    assert_eq!(written(&answer, "exemplars").as_deref(), Some("0"));
    assert_eq!(
        server.client().ask("TS.GET up{job=\"a\"}"),
        "*2\r\n:2000\r\n+2\r\n"
    );

    // A reference out of the table: 400, and the headers all the same.
    let broken = [
        symbols,
        field(5, &[field(1, &[1, 9]), sample(1.0, 1)].concat()),
    ]
    .concat();
    let answer = write(&mut http, V2, &broken);
    assert_eq!(
        (answer.status, written(&answer, "samples").as_deref()),
        (400, Some("0"))
    );
}

#[test]
fn other_messages_and_compressions_are_told_apart_from_bad_ones() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    assert_eq!(http.post_with("/api/v1/write", V1, b"").status, 415);
    let other = "Content-Type: application/x-protobuf;proto=other.Request\r\n";
    assert_eq!(write(&mut http, other, b"").status, 415);
    assert_eq!(
        write(&mut http, "Content-Type: text/plain\r\n", b"").status,
        415
    );
    assert_eq!(write(&mut http, V1, b"\x0a\xff").status, 400);
    let head = format!("{SNAPPY}{V1}");
    let answer = http.post_with("/api/v1/write", &head, b"\xff\xff\xff\xff\x0fx");
    assert!(matches!(answer.status, 400 | 413), "{answer:?}");
    assert_eq!(write(&mut http, V1, b"").status, 204);
}

#[test]
fn text_is_imported() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let text = b"# TYPE up gauge\nup{job=\"a\"} 1 1000\nup{job=a} 1\nup{job=\"a\"} 2 2000";
    let answer = http.post("/api/v1/import/prometheus", text);
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("1 refused, 2 kept\\nline 3: "),
        "{}",
        answer.text()
    );
    let all = server.client().ask("TS.RANGE up{job=\"a\"} - +");
    assert_eq!(all, "*2\r\n*2\r\n:1000\r\n+1\r\n*2\r\n:2000\r\n+2\r\n");
}

#[test]
fn openmetrics_is_taken_in_seconds_by_its_type_or_its_end() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let path = "/api/v1/import/prometheus";
    let typed = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    let plain = "Content-Type: text/plain; version=0.0.4\r\n";
    let gzip = |text: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    };
    // As `promtool tsdb dump-openmetrics` writes it.
    let dumped = b"m{c=\"1\"} 1021 1565133713\nm{c=\"1\"} 7 1565133713.989\n# EOF\n";
    let packed = gzip(dumped);
    for (head, body) in [
        (typed, &b"m{c=\"0\"} 1 1565133713.989"[..]),
        ("", dumped),
        ("Content-Encoding: gzip\r\n", &packed),
        (plain, b"m{c=\"2\"} 1 5000\n# EOF\n"),
    ] {
        let answer = http.post_with(path, head, body);
        assert_eq!(answer.status, 204, "{head}: {}", answer.text());
    }
    let mut client = server.client();
    let one = "*1\r\n*2\r\n:1565133713989\r\n+1\r\n";
    assert_eq!(client.ask("TS.RANGE m{c=\"0\"} - +"), one);
    let two = "*2\r\n*2\r\n:1565133713000\r\n+1021\r\n*2\r\n:1565133713989\r\n+7\r\n";
    assert_eq!(client.ask("TS.RANGE m{c=\"1\"} - +"), two);
    let milliseconds = "*1\r\n*2\r\n:5000\r\n+1\r\n";
    assert_eq!(client.ask("TS.RANGE m{c=\"2\"} - +"), milliseconds);

    // What cannot be inflated to its end is not stored in the wrong unit.
    let cut = &packed[..packed.len() - 9];
    let answer = http.post_with(path, "Content-Encoding: gzip\r\n", cut);
    assert_eq!(answer.status, 400, "{}", answer.text());
    let words = http.post_with(path, typed, b"m 1 never\n").text();
    assert!(
        words.contains("line 1: the timestamp is not a number of seconds: 'm 1 never'"),
        "{words}"
    );
    // Nearly the end of OpenMetrics: nothing is stored, in whatever unit.
    let near = http.post_with(path, "", b"m{c=\"3\"} 1 5000\n#EOF\n");
    assert_eq!(near.status, 400);
    assert!(
        near.text().contains("the last line is '#EOF'"),
        "{}",
        near.text()
    );
    assert_eq!(client.ask("EXISTS m{c=\"3\"}"), ":0\r\n");
}

/// The forms of numbers and labels that `promtool tsdb dump-openmetrics` has: `%g` and `%.3f` of Go, braces
/// also without labels, neither TYPE nor HELP.
#[test]
fn a_dump_of_promtool_is_read_back_exactly() {
    // Some of it is of the year 2099.
    let server = server(&["--future-limit", "0"]);
    let mut http = Http::to(server.http());
    let dump = "\
up{} 1 1700000000.000
up{} 0 1700000000.001
up{} 1.234567e+06 1700000015.999
size{path=\"C:\\\\dir \\\"x\\\"\\n\",unit=\"é {1,2}\"} 1.7976931348623157e+308 4102444799.123
size{path=\"C:\\\\dir \\\"x\\\"\\n\",unit=\"é {1,2}\"} 5e-324 0.001
size{path=\"C:\\\\dir \\\"x\\\"\\n\",unit=\"é {1,2}\"} 0.1 1.000
ends{le=\"+Inf\"} +Inf 1700000000.500
ends{le=\"+Inf\"} -Inf 1700000001.500
ends{le=\"+Inf\"} NaN 1700000002.500
# EOF
";
    let answer = http.post("/api/v1/import/prometheus", dump.as_bytes());
    assert_eq!((answer.status, answer.text()), (204, String::new()));
    let mut series = |selector: &str| {
        let path = format!("/api/v1/export?match[]={selector}");
        http.get(&path).text().trim_end().to_owned()
    };
    assert_eq!(
        series("up"),
        "{\"metric\":{\"__name__\":\"up\"},\"values\":[1,0,1234567],\
         \"timestamps\":[1700000000000,1700000000001,1700000015999]}"
    );
    assert_eq!(
        series("size"),
        "{\"metric\":{\"__name__\":\"size\",\"path\":\"C:\\\\dir \\\"x\\\"\\n\",\"unit\":\"é {1,2}\"},\
         \"values\":[5e-324,0.1,1.7976931348623157e+308],\"timestamps\":[1,1000,4102444799123]}"
    );
    assert_eq!(
        series("ends"),
        "{\"metric\":{\"__name__\":\"ends\",\"le\":\"+Inf\"},\"values\":[\"Infinity\",\"-Infinity\",null],\
         \"timestamps\":[1700000000500,1700000001500,1700000002500]}"
    );
}

#[test]
fn columns_of_csv_are_what_the_request_says() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let path = "/api/v1/import/csv?format=";
    let lines =
        b"kitchen,21.5,40,1700000000\ncellar,12,,1700000000.5\nroom,celsius,humidity,time\n";
    let rooms = "1:label:room,2:metric:celsius,3:metric:humidity,4:time:unix_s";
    let answer = http.post(&format!("{path}{rooms}"), lines);
    assert_eq!(answer.status, 400);
    for told in [
        "1 refused, 3 kept",
        "line 3: column 4 is not a time of the format: 'time'",
    ] {
        assert!(answer.text().contains(told), "{}", answer.text());
    }
    let got = |redis: &mut crate::harness::Client, key: &str| redis.ask(&format!("TS.GET {key}"));
    let sample = |at: &str, value: &str| format!("*2\r\n:{at}\r\n+{value}\r\n");
    assert_eq!(
        got(&mut redis, "celsius{room=\"cellar\"}"),
        sample("1700000000500", "12")
    );
    assert_eq!(
        got(&mut redis, "humidity{room=\"kitchen\"}"),
        sample("1700000000000", "40")
    );
    // The same line means another series in another format.
    let floors = "1:label:floor,2:metric:celsius,4:time:unix_s";
    let answer = http.post(&format!("{path}{floors}"), &lines[..27]);
    assert_eq!((answer.status, answer.text()), (204, String::new()));
    assert_eq!(
        got(&mut redis, "celsius{floor=\"kitchen\"}"),
        sample("1700000000000", "21.5")
    );
    for (query, words) in [
        ("", "missing parameter format"),
        ("?format=1:metric", "expected column:kind:context, such as"),
        (
            "?format=1:metric:a&timestamp=1",
            "timestamp\\\"; expected format",
        ),
    ] {
        let answer = http.post(&format!("/api/v1/import/csv{query}"), lines);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(words), "{}", answer.text());
    }
}

#[test]
fn parameters_that_would_change_what_is_meant_are_refused() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let line = b"up,job=a value=1 1700000000000000000\n";
    for path in [
        "/write?db=a&extra_label=job=x",
        "/api/v2/write?extra_label=job=x",
        "/api/v3/write_lp?extra_label=job=x",
        "/api/v1/write?extra_label=job=x",
        "/api/v1/import?extra_label=job%3Dx",
        "/api/v1/import/prometheus?extra_label=job=x",
        "/api/v1/import/csv?format=1:metric:a&extra_label=job=x",
        "/api/put?extra_label=job=x",
        "/v1/metrics?extra_label=job=x",
        "/api/v1/read?extra_label=job=x",
        "/api/v2/delete?bucket=a&extra_label=job=x",
    ] {
        let answer = http.post(path, line);
        assert_eq!(answer.status, 400, "{path}");
        let words = "the parameter extra_label is not supported";
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    for name in ["extra_label", "extra_filters", "extra_filters[]"] {
        let answer = http.get(&format!("/api/v1/query?query=up&{name}=x"));
        let words = format!("the parameter {name} is not supported");
        for words in [
            &*words,
            "\"status\":\"error\"",
            "\"errorType\":\"bad_data\"",
        ] {
            assert!(answer.text().contains(words), "{}", answer.text());
        }
        assert_eq!(answer.status, 400, "{name}");
    }
    let found = http.get("/api/v1/label/__name__/values").text();
    assert!(found.contains("\"data\":[]"), "{found}");
}
