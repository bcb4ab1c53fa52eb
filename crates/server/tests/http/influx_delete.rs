//! Deletion as InfluxDB 2 has it.

use crate::harness::Server;
use crate::http::client::{Answer, Http};
use serde_json::{Value, json};

const LABELLED: [&str; 4] = ["--http", "127.0.0.1:0", "--influx-db-label", "db"];

/// Four samples each of two hosts in two buckets, around a second, and of a longer measurement.
fn filled(options: &[&str]) -> Server {
    let server = Server::with(options);
    let mut http = Http::to(server.http());
    for bucket in ["one", "two"] {
        let mut lines = String::new();
        for at in [999, 1000, 1001, 2000] {
            lines += &format!("cpu,host=a user={at},sys={at}i {at}\ncpu,host=b user={at} {at}\n");
            lines += &format!("cpu_load,host=a one_min={at} {at}\n");
        }
        let path = format!("/api/v2/write?bucket={bucket}&precision=ms");
        assert_eq!(http.post(&path, lines.as_bytes()).status, 204);
    }
    server
}

fn delete(http: &mut Http, bucket: &str, start: &str, stop: &str, predicate: &str) -> Answer {
    let at = |time: &str| format!("1970-01-01T00:00:{time}Z");
    let body = json!({"start": at(start), "stop": at(stop), "predicate": predicate});
    http.post(
        &format!("/api/v2/delete?org=o&bucket={bucket}"),
        body.to_string().as_bytes(),
    )
}

fn deleted(http: &mut Http, bucket: &str, start: &str, stop: &str, predicate: &str) {
    let answer = delete(http, bucket, start, stop, predicate);
    assert_eq!((answer.status, answer.text()), (204, String::new()));
}

/// The timestamps that are left of the series of a selector.
fn left(http: &mut Http, selector: &str) -> Vec<i64> {
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let body = format!("match[]={selector}");
    let text = http
        .post_with("/api/v1/export", form, body.as_bytes())
        .text();
    let times = text.lines().flat_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let times = line["timestamps"].as_array().unwrap().clone();
        times.into_iter().map(|time| time.as_i64().unwrap())
    });
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times
}

#[test]
fn samples_of_a_bucket_are_deleted_by_measurement_field_and_tag_to_the_millisecond() {
    let server = filled(&LABELLED);
    let mut http = Http::to(server.http());
    // Both ends are included; what is within a millisecond leaves it out.
    let predicate = "_measurement=\"cpu\" AND _field=\"user\" AND host=\"a\"";
    deleted(&mut http, "one", "01", "01.001", predicate);
    let user = "cpu_user{db=\"one\",host=\"a\"}";
    assert_eq!(left(&mut http, user), [999, 2000]);
    deleted(&mut http, "one", "00.999000001", "01.999999999", predicate);
    deleted(&mut http, "one", "00.9981", "00.9989", predicate);
    assert_eq!(left(&mut http, user), [999, 2000]);
    for other in [
        "cpu_sys{db=\"one\"}",
        "cpu_user{db=\"one\",host=\"b\"}",
        "cpu_user{db=\"two\",host=\"a\"}",
    ] {
        assert_eq!(left(&mut http, other).len(), 4, "{other}");
    }
    // A tag, whatever the measurement.
    deleted(&mut http, "one", "02", "03", "host=a");
    assert_eq!(
        left(
            &mut http,
            "{db=\"one\",host=\"a\",__name__=~\"cpu_sys|cpu_load_one_min\"}"
        )
        .len(),
        6
    );
    assert_eq!(left(&mut http, "cpu_user{db=\"one\",host=\"b\"}").len(), 4);
    // All of the bucket, with a predicate that is empty or missing.
    deleted(&mut http, "one", "01.001", "09", "");
    assert_eq!(left(&mut http, "{db=\"one\",host=\"b\"}"), [999, 1000]);
    let body = br#"{"start":"1970-01-01T00:00:00Z","stop":"2100-01-01T00:00:00Z"}"#;
    assert_eq!(http.post("/api/v2/delete?bucket=one", body).status, 204);
    assert_eq!(left(&mut http, "{db=\"one\"}"), [0i64; 0]);
    assert_eq!(left(&mut http, "{db=\"two\"}").len(), 16);
    // What is deleted stays so.
    let server = Server::over(server.kill(), &LABELLED);
    let mut http = Http::to(server.http());
    assert_eq!(left(&mut http, "{db=~\"one|two\"}").len(), 16);
}

#[test]
fn a_measurement_deletes_nothing_of_one_with_a_shorter_name() {
    let server = filled(&LABELLED[..2]);
    let mut http = Http::to(server.http());
    let lines = b"room,host=a temp_avg=1 1000\nroom_temp,host=b min=1 1000\n";
    let written = http.post("/api/v2/write?bucket=one&precision=ms", lines);
    assert_eq!(written.status, 204);
    let answer = delete(&mut http, "one", "00", "09", "_measurement=room_temp");
    assert_eq!(answer.status, 400, "{}", answer.text());
    let both = "{__name__=~\"room_temp_(avg|min)\"}";
    assert_eq!(left(&mut http, both).len(), 2);
    let exact = "_measurement=room_temp AND _field=min";
    deleted(&mut http, "one", "00", "09", exact);
    assert_eq!(left(&mut http, both), [1000]);
}

#[test]
fn a_measurement_deletes_nothing_of_one_with_a_longer_name() {
    let server = filled(&LABELLED[..2]);
    let mut http = Http::to(server.http());
    let answer = delete(&mut http, "one", "00", "09", "_measurement=\"cpu\"");
    assert_eq!(answer.status, 400);
    let told: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(told["code"], "invalid");
    let message = told["message"].as_str().unwrap();
    assert!(
        message.starts_with("the metric 'cpu_load_one_min' may be of another measurement"),
        "{message}"
    );
    assert_eq!(left(&mut http, "{host=~\"a|b\"}").len(), 16);
    deleted(&mut http, "one", "00", "09", "_measurement=cpu AND host=b");
    let one = "_measurement=cpu_load AND _field=one_min";
    deleted(&mut http, "one", "00", "09", one);
    deleted(&mut http, "one", "00", "09", "_measurement=cpu");
    assert_eq!(left(&mut http, "{host=~\"a|b\"}"), [0i64; 0]);
}

#[test]
fn what_may_not_be_deleted_is_refused_in_the_form_of_influxdb() {
    let server = filled(&LABELLED[..2]);
    let mut client = server.client();
    client.ask("ACL SETUSER some on >some +ts.del ~cpu_user*");
    client.ask("ACL SETUSER none on >none +ts.add ~*");
    let mut http = Http::to(server.http());
    let path = "/api/v2/delete?bucket=one";
    let body = |predicate: &str| {
        let (start, stop) = ("1970-01-01T00:00:00Z", "1970-01-01T00:00:09Z");
        json!({"start": start, "stop": stop, "predicate": predicate}).to_string()
    };
    let user = "_measurement=cpu AND _field=user";
    for (path, user, body, status, code) in [
        (path, "none", body(user), 403, "forbidden"),
        (path, "some", body("host=a"), 403, "forbidden"),
        (path, "wrong", body(user), 401, "unauthorized"),
        (path, "some", body(""), 400, "invalid"),
        (path, "some", body("host=\"\""), 400, "invalid"),
        (path, "some", body("host!=a"), 400, "invalid"),
        (path, "some", "{}".to_owned(), 400, "invalid"),
        ("/api/v2/delete?org=o", "some", body(user), 400, "invalid"),
    ] {
        let user =
            format!("Authorization: Token some:{user}\r\n").replace("some:none", "none:none");
        let answer = http.post_with(path, &user, body.as_bytes());
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        let told: Value = serde_json::from_str(&answer.text()).unwrap();
        assert_eq!(told["code"], code, "{body}");
        assert!(told["message"].is_string(), "{body}");
    }
    assert_eq!(left(&mut http, "{host=~\"a|b\"}").len(), 16);
    let token = "Authorization: Token some:some\r\n";
    assert_eq!(
        http.post_with(path, token, body(user).as_bytes()).status,
        204
    );
    assert_eq!(left(&mut http, "{host=~\"a|b\"}").len(), 8);
    assert_eq!(http.get(path).status, 405);
}
