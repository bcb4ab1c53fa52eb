//! What is shown of damage until an operator accepts it.

use crate::harness::Server;
use crate::http::client::Http;
use crate::http::promql::ask;
use serde_json::json;

/// A server whose start left out a late block, in which a sample of `room:1` was deleted.
fn over_a_damaged_late_block() -> Server {
    let server = Server::with(&[]);
    let mut redis = server.client();
    for at in 1..=8 {
        redis.ask(&format!("TS.ADD room:1 {at}000 {at}"));
    }
    redis.expect(&[
        ("SAVE", "+OK\r\n"),
        ("TS.DEL room:1 3000 3000", ":1\r\n"),
        ("SAVE", "+OK\r\n"),
    ]);
    let (_, dir) = server.terminate();
    let blocks = std::fs::read_dir(dir.path().join("blocks")).unwrap();
    let late = blocks.map(|block| block.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&late).unwrap();
    // The footer ends the file.
    let at = bytes.len() - 20;
    bytes[at] ^= 4;
    std::fs::write(&late, bytes).unwrap();
    Server::over(dir, &["--http", "127.0.0.1:0"])
}

fn warnings(http: &mut Http, endpoint: &str, at: &str) -> Vec<String> {
    let parameters = [("query", "room:1"), ("time", at)];
    let (status, body) = ask(http, endpoint, &parameters);
    assert_eq!(status, 200, "{body}");
    let warnings = body["warnings"].as_array().cloned().unwrap_or_default();
    let texts = warnings
        .iter()
        .map(|text| text.as_str().unwrap().to_owned());
    texts.collect()
}

fn is_shown(server: &Server, is_shown: bool) {
    let mut http = Http::to(server.http());
    let health = http.get("/health");
    let text = health.text();
    assert_eq!(health.status, 200, "{text}");
    assert!(text.contains("\"pass\""), "{text}");
    assert_eq!(text.contains("1 damaged files"), is_shown, "{text}");
    let ready = http.get("/-/ready");
    assert_eq!(ready.status, 200);
    assert_eq!(ready.text().contains("Warning: "), is_shown);
    let metrics = http.get("/metrics").text();
    let figure = format!("latewood_quarantine_unaccepted {}\n", u8::from(is_shown));
    assert!(metrics.contains(&figure));
    let mut redis = server.client();
    let unaccepted = redis.info("quarantine_unaccepted");
    assert_eq!(unaccepted, u64::from(is_shown));
    for endpoint in ["query", "explain"] {
        let warnings = warnings(&mut http, endpoint, "8");
        let names_it =
            |text: &String| text.contains("from 3000 to 3000") && text.contains("visible again");
        assert_eq!(warnings.iter().any(names_it), is_shown, "{warnings:?}");
        assert_eq!(warnings.len(), usize::from(is_shown), "{warnings:?}");
    }
}

#[test]
fn what_a_damaged_late_block_deleted_is_served_with_a_warning_until_it_is_accepted() {
    let server = over_a_damaged_late_block();
    let mut http = Http::to(server.http());
    let (_, body) = ask(&mut http, "query", &[("query", "room:1"), ("time", "3")]);
    assert_eq!(body["data"]["result"][0]["value"], json!([3, "3"]));
    is_shown(&server, true);
    // No sample of the answer lies where the block was.
    assert_eq!(warnings(&mut http, "query", "400"), [""; 0]);
    let server = Server::over(server.terminate().1, &["--http", "127.0.0.1:0"]);
    is_shown(&server, true);
    server.client().expect(&[
        (
            "LATEWOOD QUARANTINE",
            "-ERR wrong number of arguments for 'latewood|quarantine' command\r\n",
        ),
        (
            "LATEWOOD QUARANTINE REFUSE",
            "-ERR unknown word 'REFUSE' after LATEWOOD QUARANTINE: expected ACCEPT. Try LATEWOOD HELP.\r\n",
        ),
        ("LATEWOOD QUARANTINE ACCEPT", ":1\r\n"),
        ("LATEWOOD QUARANTINE ACCEPT", ":0\r\n"),
        ("LATEWOOD CLOCK ACCEPT", "+OK\r\n"),
    ]);
    // Nothing is logged where nothing was accepted.
    for told in ["what damaged files have lost", "the clock"] {
        let line = server.wait_for_log("was accepted");
        assert!(line.contains(told), "{line}");
    }
    is_shown(&server, false);
    let server = Server::over(server.terminate().1, &["--http", "127.0.0.1:0"]);
    is_shown(&server, false);
}

#[test]
fn a_query_that_finds_nothing_warns_that_the_log_may_have_lost_it() {
    let server = Server::with(&[]);
    let mut redis = server.client();
    for room in ["room:1", "room:2", "room:3"] {
        redis.expect(&[(&format!("TS.ADD {room} 8000 1"), ":8000\r\n")]);
    }
    let (_, dir) = server.terminate();
    let path = dir.path().join("wal/segment-0000000000000001.wal");
    let mut bytes = std::fs::read(&path).unwrap();
    // In the second group, behind the headers of the segment and of two groups.
    let first = u32::from_le_bytes(bytes[8192..8196].try_into().unwrap()) as usize;
    bytes[8192 + 24 + first + 24] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let server = Server::over(dir, &["--http", "127.0.0.1:0"]);
    let mut http = Http::to(server.http());
    let lost = |http: &mut Http| {
        let parameters = [("query", "room:2"), ("time", "8")];
        let (status, body) = ask(http, "query", &parameters);
        assert_eq!(status, 200, "{body}");
        assert_eq!(body["data"]["result"], json!([]));
        body["warnings"].to_string()
    };
    let said = lost(&mut http);
    assert!(
        said.contains("writes and deletions may be missing"),
        "{said}"
    );
    let accepted = server.client().ask("LATEWOOD QUARANTINE ACCEPT");
    assert_eq!(accepted, ":1\r\n");
    assert_eq!(lost(&mut http), "null");
}
