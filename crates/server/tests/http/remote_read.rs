//! Remote read: both answers, and what is refused.

use crate::harness::{Server, eventually};
use crate::http::client::{Answer, Http};
use crate::http::protobuf::{append_varint, field};
use crate::http::server;

const HEAD: &str = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
const STREAMED: &[u8] = &[0x10, 1];
/// The type of a matcher.
const EQUAL: u64 = 0;
const MATCH: u64 = 2;

fn int(number: u8, value: u64) -> Vec<u8> {
    let mut out = vec![number << 3];
    append_varint(&mut out, value);
    out
}

fn query(from_ms: u64, to_ms: u64, matchers: &[(u64, &str, &str)]) -> Vec<u8> {
    let mut out = [int(1, from_ms), int(2, to_ms)].concat();
    for (kind, name, value) in matchers {
        let parts = [
            int(1, *kind),
            field(2, name.as_bytes()),
            field(3, value.as_bytes()),
        ];
        out.extend(field(3, &parts.concat()));
    }
    field(1, &out)
}

fn ask(http: &mut Http, message: &[u8]) -> Answer {
    let body = snap::raw::Encoder::new().compress_vec(message).unwrap();
    http.post_with("/api/v1/read", HEAD, &body)
}

/// Asks without waiting for the answer.
fn send(http: &mut Http, message: &[u8]) {
    let body = snap::raw::Encoder::new().compress_vec(message).unwrap();
    let length = body.len();
    let head =
        format!("POST /api/v1/read HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{HEAD}\r\n");
    http.send(&[head.as_bytes(), &body].concat());
}

/// What stands in the fields `wanted` of a message: bytes, or a number.
fn parts(mut message: &[u8], wanted: u8) -> Vec<(Vec<u8>, u64)> {
    let mut found = Vec::new();
    while let Some((&key, rest)) = message.split_first() {
        message = rest;
        let (bytes, number) = match key & 7 {
            0 => (Vec::new(), varint(&mut message)),
            1 => {
                let (bytes, rest) = message.split_first_chunk().unwrap();
                message = rest;
                (Vec::new(), u64::from_le_bytes(*bytes))
            }
            _ => {
                let length = varint(&mut message) as usize;
                let (bytes, rest) = message.split_at(length);
                message = rest;
                (bytes.to_vec(), 0)
            }
        };
        if key >> 3 == wanted {
            found.push((bytes, number));
        }
    }
    found
}

fn varint(rest: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = rest[0];
        *rest = &rest[1..];
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

/// `name=value,...` of a series.
fn labels(series: &[u8]) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let label = |(label, _): &(Vec<u8>, u64)| {
        format!(
            "{}={}",
            text(&parts(label, 1)[0].0),
            text(&parts(label, 2)[0].0)
        )
    };
    let labels: Vec<_> = parts(series, 1).iter().map(label).collect();
    labels.join(",")
}

/// `(labels, [(time, value)])` of each series of each query.
type Results = Vec<Vec<(String, Vec<(u64, f64)>)>>;

fn results(answer: &Answer) -> Results {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.field("content-type"), Some("application/x-protobuf"));
    assert_eq!(answer.field("content-encoding"), Some("snappy"));
    let message = snap::raw::Decoder::new()
        .decompress_vec(&answer.body)
        .unwrap();
    let sample = |(sample, _): &(Vec<u8>, u64)| {
        (parts(sample, 2)[0].1, f64::from_bits(parts(sample, 1)[0].1))
    };
    let series = |(series, _): &(Vec<u8>, u64)| {
        (
            labels(series),
            parts(series, 2).iter().map(sample).collect(),
        )
    };
    let result = |(result, _): &(Vec<u8>, u64)| parts(result, 1).iter().map(series).collect();
    parts(&message, 1).iter().map(result).collect()
}

/// The messages of frames.
fn frames(answer: &Answer) -> Vec<Vec<u8>> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.field("content-type"),
        Some("application/x-streamed-protobuf; proto=prometheus.chunkedreadresponse")
    );
    let (mut rest, mut messages) = (&answer.body[..], Vec::new());
    while !rest.is_empty() {
        let length = varint(&mut rest) as usize;
        let (crc, after) = rest.split_first_chunk().unwrap();
        let (message, after) = after.split_at(length);
        assert_eq!(u32::from_be_bytes(*crc), crc_fast::crc32_iscsi(message));
        messages.push(message.to_vec());
        rest = after;
    }
    messages
}

fn filled() -> Server {
    let server = server(&[]);
    let lines = b"cpu,host=b v=1 1000\ncpu,host=b v=2 2000\ncpu,host=a v=3 1500\nmem v=4 1000\n";
    let written = Http::to(server.http()).post("/write?precision=ms", lines);
    assert_eq!(written.status, 204);
    server.client().ask("TS.ADD sensor:1 1000 5");
    server
}

#[test]
fn samples_come_by_query_and_in_the_order_of_labels() {
    let server = filled();
    let mut http = Http::to(server.http());
    let message = [
        query(0, 1999, &[(EQUAL, "__name__", "cpu_v")]),
        query(0, 10, &[(EQUAL, "__name__", "cpu_v")]),
        query(
            1000,
            1000,
            &[(MATCH, "__name__", "mem.*|sensor:1"), (EQUAL, "host", "")],
        ),
        query(5, 1, &[(EQUAL, "__name__", "mem_v")]),
    ];
    let expected = vec![
        vec![
            ("__name__=cpu_v,host=a".to_owned(), vec![(1500, 3.0)]),
            ("__name__=cpu_v,host=b".to_owned(), vec![(1000, 1.0)]),
        ],
        vec![],
        vec![
            ("__name__=mem_v".to_owned(), vec![(1000, 4.0)]),
            ("__name__=sensor:1".to_owned(), vec![(1000, 5.0)]),
        ],
        vec![],
    ];
    assert_eq!(results(&ask(&mut http, &message.concat())), expected);
    assert_eq!(results(&ask(&mut http, b"")), Results::new());
    let mut redis = server.client();
    assert_eq!(redis.info("read_remote_read_requests"), 2);
    assert_eq!(redis.info("read_remote_read_samples"), 4);
}

#[test]
fn chunks_are_streamed_and_a_long_series_goes_on_in_the_next_frame() {
    let server = filled();
    let mut http = Http::to(server.http());
    let mut body = String::new();
    let count = 300_000u64;
    for at in 0..count {
        body.push_str(&format!(
            "long v={}.{} {}\n",
            at * 7919 % 100_003,
            at * at,
            at * 1000
        ));
    }
    assert_eq!(
        http.post("/write?precision=ms", body.as_bytes()).status,
        204
    );
    let message = [
        query(0, 1999, &[(EQUAL, "__name__", "cpu_v")]),
        query(0, u64::MAX >> 1, &[(EQUAL, "__name__", "long_v")]),
        STREAMED.to_vec(),
    ];
    let frames = frames(&ask(&mut http, &message.concat()));
    let mut seen = Vec::new();
    for message in &frames {
        assert!(message.len() < (1 << 20) + 4096, "{}", message.len());
        let series = parts(message, 1);
        assert_eq!(series.len(), 1);
        let query = parts(message, 2)[0].1;
        for (chunk, _) in parts(&series[0].0, 2) {
            let bounds = (parts(&chunk, 1)[0].1, parts(&chunk, 2)[0].1);
            let data = &parts(&chunk, 4)[0].0;
            let samples = u16::from_be_bytes([data[0], data[1]]);
            assert_eq!(parts(&chunk, 3)[0].1, 1);
            seen.push((query, labels(&series[0].0), bounds, samples));
        }
    }
    assert_eq!(
        seen[0],
        (0, "__name__=cpu_v,host=a".to_owned(), (1500, 1500), 1)
    );
    assert_eq!(
        seen[1],
        (0, "__name__=cpu_v,host=b".to_owned(), (1000, 1000), 1)
    );
    assert_eq!(seen.len() as u64, 2 + count / 120);
    for (at, chunk) in seen[2..].iter().enumerate() {
        let first = at as u64 * 120_000;
        let expected = (
            1,
            "__name__=long_v".to_owned(),
            (first, first + 119_000),
            120,
        );
        assert_eq!(*chunk, expected);
    }
    assert!(frames.len() > 3, "{}", frames.len());
    assert!(frames.len() < 20, "{}", frames.len());
    let empty = ask(
        &mut http,
        &[query(0, 1, &[(EQUAL, "a", "b")]), STREAMED.to_vec()].concat(),
    );
    assert_eq!((empty.status, empty.body.len()), (200, 0));
}

#[test]
fn what_is_no_request_to_read_is_refused() {
    let server = filled();
    let mut http = Http::to(server.http());
    let bad_type = query(0, 1, &[(9, "a", "b")]);
    let bad_pattern = query(0, 1, &[(MATCH, "a", "(")]);
    for (message, wanted) in [
        (&b"\x0a\x09x"[..], "not a valid protobuf message"),
        (&bad_type, "unknown matcher type 9"),
        (&bad_pattern, "error parsing regexp: missing closing ): `(`"),
        (&[0x10, 5], "none of the accepted response types"),
    ] {
        let answer = ask(&mut http, message);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(wanted), "{}", answer.text());
    }
    for head in [
        "",
        "Content-Encoding: snappy\r\nContent-Type: text/plain\r\n",
    ] {
        assert_eq!(
            http.post_with("/api/v1/read", head, b"\0").status,
            415,
            "{head}"
        );
    }
    assert_eq!(http.post_with("/api/v1/read", HEAD, b"\xff").status, 400);
    assert_eq!(http.get("/api/v1/read").status, 405);
    let mut redis = server.client();
    assert_eq!(redis.info("read_remote_read_failed"), 7);
    redis.ask("ACL SETUSER default resetkeys %R~mem*");
    let message = query(0, 5000, &[(MATCH, "__name__", ".+")]);
    assert_eq!(ask(&mut http, &message).status, 403);
    let message = query(0, 5000, &[(MATCH, "__name__", "mem_v")]);
    assert_eq!(results(&ask(&mut http, &message))[0].len(), 1);
}

#[test]
fn a_message_that_waits_for_its_reader_counts_and_keeps_no_writer_out() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let (mut body, mut random) = (String::new(), 1u64);
    for at in 0..100_000 {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        body.push_str(&format!("m v={:?} {at}\n", random as f64 / u64::MAX as f64));
    }
    let written = http.post("/write?precision=ms", body.as_bytes());
    assert_eq!(written.status, 204);
    // Some 50 MB that hardly compress, of 256 MiB for all readers.
    let message = query(0, 1 << 40, &[(EQUAL, "__name__", "m_v")]).repeat(40);
    let mut slow = Vec::new();
    let refused = loop {
        assert!(slow.len() < 8, "what waits for its reader does not count");
        let mut reader = Http::to(server.http());
        send(&mut reader, &message);
        let head = reader.head();
        if head.status != 200 {
            break head;
        }
        assert!(head.field("content-length").is_some(), "{}", head.head);
        slow.push(reader);
    };
    assert_eq!((refused.status, slow.is_empty()), (503, false));
    assert!(refused.field("retry-after").is_some());
    assert_eq!(http.post("/write", b"n v=1 1\n").status, 204);
    drop(slow);
    let mut answer = refused;
    eventually("room for the answer", || {
        answer = ask(&mut http, &message);
        answer.status == 200
    });
    let results = results(&answer);
    assert_eq!(results.len(), 40);
    assert!(results.iter().all(|series| series[0].1.len() == 100_000));
}

#[test]
fn a_reader_who_leaves_is_noticed_among_series_without_samples() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let lines: String = (0..5_000).map(|at| format!("m,n={at} v=1 1\n")).collect();
    let written = http.post("/write?precision=ms", lines.as_bytes());
    assert_eq!(written.status, 204);
    assert_eq!(
        http.post("/write?precision=ms", b"f v=1 1500\n").status,
        204
    );
    let first = query(1000, 2000, &[(EQUAL, "__name__", "f_v")]);
    let others = query(1000, 2000, &[(EQUAL, "__name__", "m_v")]).repeat(63);
    assert_eq!(ask(&mut http, &first).status, 200);
    let message = [first, others].concat();
    let mut redis = server.client();
    // Each leaves when the first series was read, and the others are left.
    eventually("the end of work for nobody", || {
        let read = redis.info("read_remote_read_items");
        let mut reader = Http::to(server.http());
        send(&mut reader, &message);
        eventually("the first series", || {
            redis.info("read_remote_read_items") > read
        });
        drop(reader);
        assert_eq!(http.get("/api/v1/labels").status, 200);
        redis.info("read_remote_read_cancelled") > 0
    });
}
