//! Series, labels and values.

use crate::harness::Server;
use crate::http::client::{Answer, Http};
use crate::http::server;
use serde_json::{Value, json};

/// Three series by line protocol and two through Redis.
fn filled(options: &[&str]) -> Server {
    let server = server(options);
    let lines = b"cpu,host=a,az=x v=1 1000\ncpu,host=b v=2 2000\nmem,host=a v=3 3000\n";
    let written = Http::to(server.http()).post("/write?precision=ms", lines);
    assert_eq!(written.status, 204);
    let mut redis = server.client();
    redis.ask("TS.ADD sensor:1 4000 4 LABELS host a");
    redis.ask("TS.CREATE sensor:2");
    server
}

fn json(answer: &Answer) -> Value {
    assert_eq!(answer.field("content-type"), Some("application/json"));
    serde_json::from_slice(&answer.body).unwrap()
}

fn data(http: &mut Http, path: &str) -> Value {
    let answer = http.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let mut value = json(&answer);
    assert_eq!(value["status"], "success");
    value["data"].take()
}

#[test]
fn series_are_found_by_selectors() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let one = data(&mut http, "/api/v1/series?match[]=cpu_v{host=%22a%22}");
    assert_eq!(one, json!([{"__name__": "cpu_v", "az": "x", "host": "a"}]));
    let two = data(
        &mut http,
        "/api/v1/series?match%5B%5D=mem_v&match[]={host=~%22a|c%22,az=%22%22}",
    );
    assert_eq!(
        two,
        json!([
            {"__name__": "mem_v", "host": "a"},
            {"__name__": "sensor:1", "host": "a"},
        ])
    );
    let by_key = data(&mut http, "/api/v1/series?match[]=sensor:2");
    assert_eq!(by_key, json!([{"__name__": "sensor:2"}]));
    assert_eq!(data(&mut http, "/api/v1/series?match[]=nothing"), json!([]));
    let form = http.post_with(
        "/api/v1/series",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        b"match[]=%7B__name__%3D~%22.%2B%22%7D&limit=2",
    );
    assert_eq!(
        json(&form),
        json!({
            "status": "success",
            "data": [
                {"__name__": "cpu_v", "az": "x", "host": "a"},
                {"__name__": "cpu_v", "host": "b"},
            ],
            "warnings": ["results truncated due to limit"],
        })
    );
}

#[test]
fn a_form_is_read_in_parts_as_well() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    // As `curl -F 'match[]=cpu_v{az="x"}'` sends it.
    let head = "Content-Type: multipart/form-data; boundary=------------------------d74496d6\r\n";
    let part = |name: &str, value: &str| {
        format!(
            "--------------------------d74496d6\r\nContent-Disposition: form-data; \
             name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let end = "--------------------------d74496d6--\r\n";
    let body = part("match[]", "cpu_v{az=\"x\"}") + end;
    let series = http.post_with("/api/v1/series", head, body.as_bytes());
    let expected = json!([{"__name__": "cpu_v", "az": "x", "host": "a"}]);
    assert_eq!(json(&series)["data"], expected);
    let body = part("query", "1+1") + &part("time", "5") + end;
    let answer = http.post_with("/api/v1/query", head, body.as_bytes());
    assert_eq!(json(&answer)["data"]["result"], json!([5, "2"]));
    let body = part("q", "CREATE DATABASE x") + end;
    let created = http.post_with("/query", head, body.as_bytes());
    assert_eq!(created.status, 200, "{}", created.text());
    let broken = http.post_with("/api/v1/query", head, b"query=1");
    assert_eq!(broken.status, 400);
    assert!(
        broken.text().contains("not valid multipart/form-data"),
        "{}",
        broken.text()
    );
}

#[test]
fn a_span_leaves_series_with_samples_in_it() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    let all = "/api/v1/series?match[]={__name__!=%22%22}";
    assert_eq!(data(&mut http, all).as_array().unwrap().len(), 5);
    let some = data(
        &mut http,
        &format!("{all}&start=2&end=1970-01-01T00:00:03Z"),
    );
    assert_eq!(
        some,
        json!([{"__name__": "cpu_v", "host": "b"}, {"__name__": "mem_v", "host": "a"}])
    );
    let names = data(&mut http, "/api/v1/labels?start=1&end=1");
    assert_eq!(names, json!(["__name__", "az", "host"]));
    assert_eq!(
        data(&mut http, "/api/v1/label/host/values?end=2.5"),
        json!(["a", "b"])
    );
    assert_eq!(
        data(&mut http, "/api/v1/label/__name__/values?start=2&end=3"),
        json!(["cpu_v", "mem_v"])
    );
    assert_eq!(
        data(&mut http, "/api/v1/label/host/values?start=4e9"),
        json!([])
    );
    // Two that look the same are told apart by it, whether or not there is a span.
    let mut client = server.client();
    for key in ["one", "two"] {
        let line = format!("TS.ADD {key} 9000 1 LABELS __name__ same host c");
        assert_eq!(client.ask(&line), ":9000\r\n");
    }
    for span in ["", "?start=9&end=9"] {
        let path = format!("/api/v1/label/__key__/values{span}");
        let keys = if span.is_empty() {
            json!([])
        } else {
            json!(["one", "two"])
        };
        assert_eq!(data(&mut http, &path), keys, "{span}");
    }
    let path = "/api/v1/labels?start=9&end=9";
    assert_eq!(data(&mut http, path), json!(["__name__", "host"]));
}

#[test]
fn names_and_values_are_listed() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    assert_eq!(
        data(&mut http, "/api/v1/labels"),
        json!(["__name__", "az", "host"])
    );
    assert_eq!(
        data(&mut http, "/api/v1/labels?match[]=mem_v"),
        json!(["__name__", "host"])
    );
    assert_eq!(
        data(&mut http, "/api/v1/label/__name__/values"),
        json!(["cpu_v", "mem_v", "sensor:1", "sensor:2"])
    );
    assert_eq!(
        data(&mut http, "/api/v1/label/host/values"),
        json!(["a", "b"])
    );
    assert_eq!(
        data(&mut http, "/api/v1/label/host/values?match[]={az!=%22%22}"),
        json!(["a"])
    );
    assert_eq!(
        data(&mut http, "/api/v1/label/U______name____/values?limit=1"),
        json!(["cpu_v"])
    );
    assert_eq!(data(&mut http, "/api/v1/label/nothing/values"), json!([]));
    let empty = crate::http::server(&[]);
    let mut http = Http::to(empty.http());
    assert_eq!(data(&mut http, "/api/v1/labels"), json!([]));
}

#[test]
fn bytes_that_are_no_text_are_listed_as_they_are_selected() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let mut client = server.client();
    for (key, value) in [(&b"one"[..], &b"a\xff"[..]), (b"two", b"a\xfe")] {
        let words = [b"TS.ADD", key, b"1", b"1", b"LABELS", b"v", value];
        assert_eq!(client.ask_words(&words), ":1\r\n");
    }
    let values = json!(["a\\xfe", "a\\xff"]);
    assert_eq!(data(&mut http, "/api/v1/label/v/values"), values);
    let path = "/api/v1/label/v/values?match[]=%7Bv!=%22%22%7D";
    assert_eq!(data(&mut http, path), values);
    let path = "/api/v1/series?match[]=%7Bv=%22a%5C%5Cxff%22%7D";
    let found = json!([{"__name__": "one", "v": "a\\xff"}]);
    assert_eq!(data(&mut http, path), found);
}

#[test]
fn series_are_found_by_lists_of_values() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    for (selector, wanted) in [
        ("{host=~%22b|c%22}", &["cpu_v"][..]),
        (
            "{host=~%22(a|b)%22,__name__=~%22cpu_v|mem_w%22}",
            &["cpu_v", "cpu_v"],
        ),
        (
            "{host!~%22b|c%22,__name__!=%22%22}",
            &["cpu_v", "mem_v", "sensor:1", "sensor:2"],
        ),
        ("{host!~%22a|b%22,__name__!=%22%22}", &["sensor:2"]),
        ("{host=~%22b|%22,__name__!=%22%22}", &["cpu_v", "sensor:2"]),
        ("{host!~%22b|%22}", &["cpu_v", "mem_v", "sensor:1"]),
        (
            "{__name__=~%22sensor:(1|2|3)|mem_v%22}",
            &["mem_v", "sensor:1", "sensor:2"],
        ),
        (
            "{__name__=~%22sensor:1|sensor:2%22,host=~%22a?b?%22}",
            &["sensor:1", "sensor:2"],
        ),
        (
            "{__name__=~%22sensor:1|sensor:2%22,host!~%22a|b%22}",
            &["sensor:2"],
        ),
        (
            "{__name__!~%22sensor:1|cpu_v%22,host=~%22a|b%22}",
            &["mem_v"],
        ),
        ("{host=~%22c|d%22}", &[]),
    ] {
        let path = format!("/api/v1/series?match[]={}", selector.replace('|', "%7C"));
        let found = data(&mut http, &path);
        let names: Vec<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["__name__"].as_str().unwrap())
            .collect();
        assert_eq!(names, wanted, "{selector}");
    }
}

#[test]
fn a_wrong_parameter_is_named_wherever_it_is_given() {
    let server = filled(&[]);
    let mut http = Http::to(server.http());
    for (path, wanted) in [
        (
            "/api/v1/labels?match[]=up{",
            "invalid parameter \"match[]\": 1:4: parse error",
        ),
        (
            "/api/v1/label/a/values?match[]={}",
            "invalid parameter \"match[]\": match[] must contain",
        ),
        (
            "/api/v1/status/tsdb?match[]={",
            "invalid parameter \"match[]\": ",
        ),
        (
            "/api/v1/status/series?match[]={",
            "invalid parameter \"match[]\": ",
        ),
        (
            "/api/v1/status/server?x=1",
            "unknown parameter \"x\"; expected none",
        ),
    ] {
        let answer = http.get(path);
        assert_eq!(answer.status, 400, "{path}");
        let body = json(&answer);
        let error = body["error"].as_str().unwrap();
        assert!(error.starts_with(wanted), "{path}: {error}");
    }
}

#[test]
fn mistakes_are_told_in_the_envelope() {
    let server = filled(&["--max-query-series", "2"]);
    let mut http = Http::to(server.http());
    let long = format!(
        "/api/v1/series?match[]={{a=~%22{}%22}}",
        "(a|b){500}".repeat(20)
    );
    let many = (0..65).map(|at| format!("match[]={{a=~%22b.*{at}%22}}&"));
    let many = format!("/api/v1/series?{}", many.collect::<String>());
    for (path, wanted) in [
        (&*many, "more than 64 regular expressions"),
        ("/api/v1/series", "no match[] parameter provided"),
        ("/api/v1/series?match=up", "no match[] parameter provided"),
        (
            "/api/v1/series?match[]=up{",
            "invalid parameter \"match[]\": 1:4: parse error: unexpected end of input inside braces",
        ),
        (
            "/api/v1/series?match[]={}",
            "match[] must contain at least one non-empty matcher",
        ),
        (
            "/api/v1/series?match[]=up{a=~%22(%22}",
            "error parsing regexp: missing closing ): `(`",
        ),
        (&long, "too large"),
        (
            "/api/v1/series?match[]=up&start=yesterday",
            "invalid parameter \"start\": invalid time value for 'start': cannot parse \"yesterday\" to a valid timestamp",
        ),
        (
            "/api/v1/labels?limit=-1",
            "invalid parameter \"limit\": limit must be non-negative",
        ),
        (
            "/api/v1/series?match[]={__name__!=%22%22}",
            "more than the 2 that max-query-series",
        ),
    ] {
        let answer = http.get(path);
        assert_eq!(answer.status, 400, "{path}");
        let body = json(&answer);
        assert_eq!(
            (&body["status"], &body["errorType"]),
            (&json!("error"), &json!("bad_data"))
        );
        let error = body["error"].as_str().unwrap();
        assert!(error.contains(wanted), "{path}: {error}");
    }
    for path in ["/api/v1/label/U__/values", "/api/v1/label//values"] {
        let answer = http.get(path);
        let error = json(&answer)["error"].clone();
        assert_eq!(
            (answer.status, error),
            (400, json!("invalid label name: \"\""))
        );
    }
    let unknown = http.post("/api/v1/series", b"match[]=up");
    assert_eq!(unknown.status, 415, "{}", unknown.text());
    assert_eq!(http.post("/api/v1/label/a/values", b"").status, 405);
    // Names are not limited, as with TS.QUERYLABELS.
    assert_eq!(
        http.get("/api/v1/labels?match[]={__name__!=%22%22}").status,
        200
    );
}

#[test]
fn users_read_what_they_may_read() {
    let server = filled(&[]);
    let mut redis = server.client();
    redis.ask("CONFIG SET requirepass sesame");
    redis.ask("ACL SETUSER reader on >secret +@read %R~cpu_* %R~sensor:1");
    redis.ask("ACL SETUSER sender on >secret +ts.add ~*");
    let mut http = Http::to(server.http());
    let mut get = |path: &str, user: &str| {
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {user}\r\n\r\n");
        http.send(head.as_bytes());
        http.answer()
    };
    let all = "/api/v1/series?match[]={__name__!=%22%22}";
    assert_eq!(get(all, "reader:wrong").status, 401);
    assert_eq!(get(all, "reader:secret").status, 403);
    assert_eq!(get(all, "sender:secret").status, 403);
    assert_eq!(get(all, "sesame").status, 200);
    let refused = json(&get(all, "reader:secret"));
    assert_eq!(refused["errorType"], "forbidden");
    assert_eq!(
        get("/api/v1/series?match[]=cpu_v", "reader:secret").status,
        200
    );
    let names = json(&get("/api/v1/label/__name__/values", "reader:secret"));
    assert_eq!(names["data"], json!(["cpu_v", "sensor:1"]));
    for path in [
        "/api/v1/export?match[]=mem_v",
        "/api/v1/labels?match[]=mem_v",
    ] {
        let answer = get(path, "reader:secret");
        if path.contains("export") {
            assert_eq!(answer.status, 403)
        } else {
            assert_eq!(json(&answer)["data"], json!([]))
        }
    }
}

#[test]
fn a_long_list_comes_in_pieces() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let mut lines = String::new();
    for number in 0..20_000 {
        lines.push_str(&format!(
            "m,host=host-with-a-long-name-{number:05} v=1 1000\n"
        ));
    }
    assert_eq!(
        http.post("/write?precision=ms", lines.as_bytes()).status,
        204
    );
    let answer = http.get("/api/v1/series?match[]=m_v");
    assert_eq!(answer.field("transfer-encoding"), Some("chunked"));
    let found = json(&answer);
    let found = found["data"].as_array().unwrap();
    assert_eq!(found.len(), 20_000);
    assert_eq!(found[19_999]["host"], "host-with-a-long-name-19999");
    assert_eq!(server.client().info("read_series_items"), 20_000);
    assert_eq!(server.client().info("read_series_requests"), 1);
}
