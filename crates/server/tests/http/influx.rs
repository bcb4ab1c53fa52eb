//! InfluxDB's senders.

use crate::http::client::Http;
use crate::http::server;
use std::io::Write;

#[test]
fn lines_become_series_that_the_redis_side_reads() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let lines = b"cpu,host=a,az=x user=1.5,sys=2i 1700000000000000000\n\
        cpu,az=x,host=a user=2.5 1700000001000000000";
    assert_eq!(http.post("/write?db=telegraf", lines).status, 204);
    let key = "cpu_user{az=\"x\",host=\"a\"}";
    assert_eq!(
        redis.ask(&format!("TS.RANGE {key} - +")),
        "*2\r\n*2\r\n:1700000000000\r\n+1.5\r\n*2\r\n:1700000001000\r\n+2.5\r\n"
    );
    let found = redis.ask("TS.QUERYINDEX __name__=cpu_sys host=a");
    assert_eq!(found, "*1\r\n$24\r\ncpu_sys{az=\"x\",host=\"a\"}\r\n");
    // The same connection, version 2, another precision, a repeated sample.
    let answer = http.post(
        "/api/v2/write?bucket=b&org=o&precision=s",
        b"cpu,host=a,az=x user=9 1700000001\n",
    );
    assert_eq!(answer.status, 204);
    let last = redis.ask(&format!("TS.GET {key}"));
    assert_eq!(last, "*2\r\n:1700000001000\r\n+9\r\n");
}

#[test]
fn the_unit_of_version_3_is_guessed_or_said() {
    let server = server(&["--influx-db-label", "db"]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    for (at, time) in [
        "1700000000",
        "1700000001000",
        "1700000002000000",
        "1700000003000000000",
    ]
    .iter()
    .enumerate()
    {
        let line = format!("m v={at} {time}\n");
        let answer = http.post("/api/v3/write_lp?db=a&no_sync=true", line.as_bytes());
        assert_eq!(answer.status, 204, "{time}: {}", answer.text());
    }
    let path = "/api/v3/write_lp?db=a&accept_partial=true&precision=millisecond";
    assert_eq!(http.post(path, b"m v=9 1700000004000\n").status, 204);
    assert_eq!(
        redis.ask("TS.RANGE m_v{db=\"a\"} - +"),
        "*5\r\n*2\r\n:1700000000000\r\n+0\r\n*2\r\n:1700000001000\r\n+1\r\n\
         *2\r\n:1700000002000\r\n+2\r\n*2\r\n:1700000003000\r\n+3\r\n\
         *2\r\n:1700000004000\r\n+9\r\n"
    );
    for (parameter, told) in [
        ("precision=h", "invalid precision"),
        ("accept_partial=false", "not supported"),
        ("accept_partial=2", "invalid accept_partial"),
        ("no_sync=2", "invalid no_sync"),
    ] {
        let answer = http.post(&format!("/api/v3/write_lp?{parameter}"), b"m v=1 1\n");
        assert_eq!(answer.status, 400, "{parameter}");
        assert!(answer.text().contains(told), "{}", answer.text());
    }
    let answer = http.post("/api/v3/write_lp", b"m v=1 1\nm v=x 1\n");
    assert_eq!(answer.status, 400);
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["data"][0]["line_number"], 2);
    let why = body["data"][0]["error_message"].as_str().unwrap();
    assert!(why.contains("invalid field value"), "{why}");
}

#[test]
fn good_lines_are_kept_and_bad_ones_named() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let answer = http.post("/write?precision=ms", b"m v=1 1\nm v=one 2\nm v=3 3\nm 4\n");
    assert_eq!(answer.status, 400);
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        body["error"],
        "partial write: line 2: unable to parse 'm v=one 2': invalid field value\n\
         line 4: unable to parse 'm 4': missing field value dropped=2"
    );
    assert_eq!(
        (&body["code"], &body["line"]),
        (&"invalid".into(), &2.into())
    );
    assert_eq!(
        redis.ask("TS.RANGE m_v - +"),
        "*2\r\n*2\r\n:1\r\n+1\r\n*2\r\n:3\r\n+3\r\n"
    );
    // Nothing good: no partial write.
    let text = http.post("/api/v2/write", b"m\n").text();
    assert!(
        text.contains("\"message\":\"line 1: unable to parse 'm': missing fields dropped=1\""),
        "{text}"
    );
}

#[test]
fn a_timestamp_in_the_wrong_unit_is_refused_by_name() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let answer = http.post("/write?precision=ms", b"m v=1 1700000000000000000\n");
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("m_v at 1700000000000000000"),
        "{}",
        answer.text()
    );
    assert_eq!(http.post("/write?precision=d", b"m v=1 1\n").status, 400);
}

#[test]
fn seconds_sent_as_nanoseconds_are_refused_where_there_is_a_limit_on_the_past() {
    let server = server(&["--past-limit", "1d"]);
    let mut http = Http::to(server.http());
    let answer = http.post("/write", b"m v=1 1700000000\nm v=2\n");
    assert_eq!(answer.status, 400);
    let why = "m_v at 1700: the timestamp is more than 86400 seconds behind the clock; is it in the \
               unit the request names?";
    assert!(answer.text().contains(why), "{}", answer.text());
    assert!(answer.text().contains("dropped=1"), "{}", answer.text());
    let metrics = http.get("/metrics").text();
    let refused = "latewood_intake_refused_total{protocol=\"influx\",reason=\"past\"} 1";
    assert!(metrics.contains(refused), "{metrics}");
}

#[test]
fn strings_are_counted_and_said_to_be_not_stored() {
    let server = server(&[]);
    let answer = Http::to(server.http()).post("/write", b"m v=1,a=\"x\",b=\"y\" 1000000\n");
    assert_eq!(answer.status, 204);
    assert_eq!(answer.field("x-latewood-strings-not-stored"), Some("2"));
}

#[test]
fn the_database_is_a_label_where_that_is_asked_for() {
    let server = server(&["--influx-db-label", "db"]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    for (path, value) in [
        ("/write?db=a", 1),
        ("/write?db=b", 2),
        ("/api/v2/write?bucket=a", 3),
    ] {
        let body = format!("m,h=x v={value} {value}000000\n");
        assert_eq!(http.post(path, body.as_bytes()).status, 204);
    }
    assert_eq!(
        redis
            .ask("TS.RANGE m_v{db=\"a\",h=\"x\"} - +")
            .matches("*2")
            .count(),
        3
    );
    assert_eq!(
        redis.ask("TS.GET m_v{db=\"b\",h=\"x\"}"),
        "*2\r\n:2\r\n+2\r\n"
    );
}

#[test]
fn compressed_bodies_are_read_in_pieces() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let mut lines = String::new();
    for number in 0..40_000 {
        lines.push_str(&format!(
            "m,h=h{} v={number} {number}000000\n",
            number % 100
        ));
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines.as_bytes()).unwrap();
    let zstd = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    let snappy = snap::raw::Encoder::new()
        .compress_vec(lines.as_bytes())
        .unwrap();
    for (name, body) in [
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd),
        ("snappy", snappy),
    ] {
        redis.ask("FLUSHALL");
        let head = format!("Content-Encoding: {name}\r\n");
        assert_eq!(http.post_with("/write", &head, &body).status, 204, "{name}");
        let range = redis.ask("TS.RANGE m_v{h=\"h7\"} - + AGGREGATION count 1000000000");
        assert_eq!(range, "*1\r\n*2\r\n:0\r\n+400\r\n", "{name}");
        let cut = &body[..body.len() / 2];
        assert_eq!(http.post_with("/write", &head, cut).status, 400, "{name}");
    }
}

#[test]
fn what_senders_ask_before_they_send_is_answered() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let ping = http.get("/ping");
    assert_eq!(ping.status, 204);
    assert!(ping.field("x-influxdb-version").is_some());
    assert!(http.get("/ping?verbose=true").text().contains("version"));
    assert!(http.get("/health").text().contains("\"status\":\"pass\""));
    assert_eq!(http.get("/-/healthy").status, 200);
    assert_eq!(http.get("/-/ready").status, 200);
    let created = http.post_with(
        "/query",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        b"q=CREATE+DATABASE+%22telegraf%22",
    );
    assert_eq!(created.status, 200);
    // Senders look for their database before they make it.
    let shown = http.get("/query?q=show%20databases");
    let shown: serde_json::Value = serde_json::from_slice(&shown.body).unwrap();
    assert_eq!(shown["results"][0]["series"][0]["name"], "databases");
    assert_eq!(
        shown["results"][0]["series"][0]["values"],
        serde_json::json!([])
    );
    assert_eq!(http.get("/query?q=SHOW+MEASUREMENTS").status, 400);
    assert_eq!(http.get("/nothing").status, 404);
    assert_eq!(http.get("/write").status, 405);
}

#[test]
fn under_sync_an_answer_is_on_disk_and_a_kill_takes_nothing() {
    let server = crate::harness::Server::with(&["--http", "127.0.0.1:0", "--durability", "sync"]);
    let mut http = Http::to(server.http());
    for number in 0..20 {
        let line = format!("m,h=a v={number} {number}000000\n");
        assert_eq!(http.post("/write", line.as_bytes()).status, 204);
    }
    let dir = server.kill();
    let again = crate::harness::Server::over(dir, &["--http", "127.0.0.1:0"]);
    let range = again.client().ask("TS.RANGE m_v{h=\"a\"} - +");
    assert!(range.starts_with("*20\r\n"), "{range}");
}

#[test]
fn refused_lines_are_counted_once_each_and_named_in_their_order() {
    let server = server(&["--past-limit", "1d"]);
    let mut http = Http::to(server.http());
    // The old line is refused when it is read, the last one before that.
    let mut lines = "aa f=1,g=2,h=3 1\nbb f=1\ncc\n".to_owned();
    for number in 0..12 {
        lines += &format!("d{number} a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=10 1\n");
    }
    let answer = http.post("/write?precision=s", lines.as_bytes());
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(
        (&body["dropped"], &body["refused"]),
        (&14.into(), &124.into())
    );
    let told = body["lines"].as_array().unwrap().iter();
    let told: Vec<_> = told.map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(told, [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    let first = body["lines"][0]["error"].as_str().unwrap();
    assert!(first.starts_with("aa_f at 1000: "), "{first}");
    assert!(first.ends_with(" (and 2 more of it)"), "{first}");
}

#[test]
fn of_a_parameter_given_twice_the_first_counts() {
    let server = server(&["--influx-db-label", "db"]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let path = "/write?precision=s&precision=ms&db=a&db=b";
    assert_eq!(http.post(path, b"m v=1 5\n").status, 204);
    let got = redis.ask("TS.GET m_v{db=\"a\"}");
    assert_eq!(got, "*2\r\n:5000\r\n+1\r\n");
    let path = "/api/v2/write?bucket=c&bucket=d&precision=ms";
    assert_eq!(http.post(path, b"m v=1 5\n").status, 204);
    assert_eq!(redis.ask("EXISTS m_v{db=\"c\"}"), ":1\r\n");
    assert_eq!(http.get("/query?q=show+databases&q=x").status, 200);
    assert_eq!(http.get("/ping?verbose=true&verbose=false").status, 200);
    let point = br#"{"metric":"m","timestamp":5,"value":1,"tags":{"a":"b"}}"#;
    let answer = http.post("/api/put?summary&summary", point);
    assert_eq!(answer.status, 200, "{}", answer.text());
}
