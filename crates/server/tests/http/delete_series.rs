//! Deletion by selectors.

use crate::harness::Server;
use crate::http::client::Http;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/admin/tsdb/delete_series";

const OPTIONS: [&str; 2] = ["--http", "127.0.0.1:0"];

fn filled() -> Server {
    let server = Server::with(&OPTIONS);
    let mut client = server.client();
    for key in ["a", "b", "other"] {
        client.ask(&format!("TS.CREATE {key} LABELS job x key {key}"));
        for at in [1000, 1001, 2000, 3000] {
            client.ask(&format!("TS.ADD {key} {at} {at}"));
        }
    }
    server
}

fn export(http: &mut Http, selector: &str) -> String {
    http.get(&format!("/api/v1/export?match[]={selector}&format=csv"))
        .text()
}

fn ok(http: &mut Http, parameters: &str) {
    let answer = http.post(&format!("{PATH}?{parameters}"), b"");
    assert_eq!((answer.status, answer.text()), (204, String::new()));
}

#[test]
fn samples_of_matching_series_are_deleted_to_the_millisecond() {
    let server = filled();
    let mut http = Http::to(server.http());
    let span = "match[]=a&match[]={key=%22b%22}&start=1.001&end=2";
    let counted = http.post(&format!("{PATH}?{span}&dry_run=true"), b"");
    let counted: Value = serde_json::from_str(&counted.text()).unwrap();
    let wanted = json!({"series": 2, "seriesWithSamples": 2, "samples": 4});
    assert_eq!(counted["data"], wanted);
    assert_eq!(export(&mut http, "{job=%22x%22}").lines().count(), 13);
    ok(&mut http, span);
    let mut client = server.client();
    let left = "*2\r\n*2\r\n:1000\r\n+1000\r\n*2\r\n:3000\r\n+3000\r\n";
    for key in ["a", "b"] {
        assert_eq!(client.ask(&format!("TS.RANGE {key} - +")), left);
    }
    assert_eq!(export(&mut http, "other").lines().count(), 5);
    // What is deleted stays so.
    let server = Server::over(server.kill(), &OPTIONS);
    let mut client = server.client();
    assert_eq!(client.ask("TS.RANGE a - +"), left);

    let mut http = Http::to(server.http());
    ok(&mut http, "match[]=b&start=2");
    ok(&mut http, "match[]=nothing");
    assert_eq!(client.ask("EXISTS a b other"), ":3\r\n");
    ok(&mut http, "match[]={job=%22x%22,key!=%22other%22}");
    assert_eq!(client.ask("EXISTS a b other"), ":1\r\n");
}

#[test]
fn what_may_not_be_deleted_is_refused_before_anything_is() {
    let server = filled();
    let mut client = server.client();
    client.ask("ACL SETUSER some on >some +ts.del +del ~a %R~b");
    client.ask("ACL SETUSER part on >part +ts.del ~*");
    let mut http = Http::to(server.http());
    let as_user = |name: &str| format!("Authorization: Token {name}:{name}\r\n");
    for (user, parameters, status) in [
        ("some", "match[]={job=%22x%22}", 403),
        ("some", "match[]=a&match[]=b", 403),
        ("part", "match[]=a", 403),
        ("some", "match[]=a&start=3", 204),
        ("part", "match[]=b&start=3", 204),
        ("part", "", 400),
        ("part", "match[]={}", 400),
        ("part", "match[]=a&start=x", 400),
        ("part", "match[]=a&start=2&end=1", 400),
        ("part", "match[]=a&stop=1", 400),
        ("part", "match[]=a&dry_run=maybe", 400),
    ] {
        let answer = http.post_with(&format!("{PATH}?{parameters}"), &as_user(user), b"");
        assert_eq!(answer.status, status, "{parameters}: {}", answer.text());
    }
    let count = |client: &mut crate::harness::Client, key: &str| {
        let reply = client.ask(&format!("TS.RANGE {key} - +"));
        reply.lines().next().unwrap().to_owned()
    };
    let left = ["a", "b", "other"].map(|key| count(&mut client, key));
    assert_eq!(left, ["*3", "*3", "*4"]);
    assert_eq!(http.get(PATH).status, 405);
}

/// The server syncs only what an answer waits for.
#[test]
fn what_is_done_is_on_disk_also_where_a_later_series_refuses() {
    let server = Server::with(&[OPTIONS[0], OPTIONS[1], "--durability", "sync"]);
    let (mut client, mut http) = (server.client(), Http::to(server.http()));
    // So many that one of them comes first, whichever shards they are in.
    for key in 0..200 {
        client.ask(&format!("TS.CREATE {key} LABELS job x"));
    }
    // Samples beyond its retention would be missing in its compaction.
    client.ask("TS.CREATE refuses RETENTION 1000 LABELS job x");
    client.ask("TS.CREATE sums");
    client.ask("TS.CREATERULE refuses sums AGGREGATION sum 10");
    let mut fill = |key: &str| {
        for at in [1000, 5000] {
            client.ask(&format!("TS.ADD {key} {at} 1"));
        }
    };
    fill("refuses");
    (0..200).for_each(|key| fill(&key.to_string()));
    let is_told = |text: &str| {
        assert!(
            text.contains("beyond the series retention period"),
            "{text}"
        );
        assert!(text.contains("of 201 series ") && text.contains(" are done, 'refuses' is not"));
    };
    let unsynced = |http: &mut Http| {
        let figures = http.get("/metrics").text();
        let line = figures
            .lines()
            .find(|line| line.starts_with("latewood_wal_unsynced_groups "));
        line.unwrap().to_owned()
    };
    let answer = http.post(
        &format!("{PATH}?match[]={{job=%22x%22}}&start=1&end=2"),
        b"",
    );
    assert_eq!(answer.status, 400);
    is_told(&answer.text());
    assert_eq!(unsynced(&mut http), "latewood_wal_unsynced_groups 0");
    is_told(&client.ask("LATEWOOD DELETE 1000 5000 FILTER job=x"));
    assert_eq!(unsynced(&mut http), "latewood_wal_unsynced_groups 0");
}
