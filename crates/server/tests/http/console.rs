//! The console's files: who gets them, how they are coded, and what they may do.

use crate::http::client::{Answer, Http};
use crate::http::server;
use std::io::Read;

const BROWSER: &str = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n";
const ASSETS: [(&str, &str); 4] = [
    ("/", "text/html"),
    ("/console/console.js", "text/javascript"),
    ("/console/console.css", "text/css"),
    ("/console/notices.txt", "text/plain"),
];

fn asked(address: &str, line: &str, head: &str) -> Answer {
    let mut http = Http::to(address);
    http.send(format!("{line} HTTP/1.1\r\nHost: x\r\n{head}\r\n").as_bytes());
    if line.starts_with("HEAD") || head.contains("If-None-Match") {
        http.head()
    } else {
        http.answer()
    }
}

#[test]
fn browsers_get_the_console_and_programs_a_text() {
    let server = server(&[]);
    let page = asked(server.http(), "GET /", BROWSER);
    assert_eq!(page.status, 200);
    assert!(page.text().contains("src=\"console/console.js\""));
    for head in ["", "Accept: */*\r\n", "Accept: text/plain\r\n"] {
        let text = asked(server.http(), "GET /", head);
        assert_eq!(
            text.field("content-type"),
            Some("text/plain; charset=utf-8")
        );
        assert!(text.text().starts_with("Latewood "), "{}", text.text());
        assert_eq!(text.field("vary"), Some("accept, accept-encoding"));
    }
}

#[test]
fn every_file_is_the_same_in_every_coding() {
    let server = server(&[]);
    for (path, kind) in ASSETS {
        let get = |coding: &str| {
            let head = format!("{BROWSER}Accept-Encoding: {coding}\r\n");
            asked(server.http(), &format!("GET {path}"), &head)
        };
        let plain = get("identity");
        let kind = format!("{kind}; charset=utf-8");
        assert_eq!(plain.field("content-type"), Some(kind.as_str()), "{path}");
        assert_eq!(plain.field("content-encoding"), None, "{path}");
        let packed = get("br;q=0, gzip");
        assert_eq!(packed.field("content-encoding"), Some("gzip"), "{path}");
        let mut unpacked = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&packed.body[..]);
        decoder.read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == plain.body, "{path}");
        let best = get("gzip, deflate, br, zstd");
        assert_eq!(best.field("content-encoding"), Some("br"), "{path}");
        assert!(best.body.len() < packed.body.len(), "{path}");
        let tags = [&plain, &packed, &best].map(|answer| answer.field("etag"));
        assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2]);
    }
}

#[test]
fn a_reader_that_has_a_file_is_told_so_and_head_has_no_body() {
    let server = server(&[]);
    for (path, _) in ASSETS {
        let get = format!("GET {path}");
        let first = asked(server.http(), &get, BROWSER);
        let tag = first.field("etag").unwrap().to_owned();
        let head = format!("{BROWSER}If-None-Match: \"other\", {tag}\r\n");
        let again = asked(server.http(), &get, &head);
        assert_eq!(
            (again.status, again.field("etag")),
            (304, Some(tag.as_str()))
        );
        let head = asked(server.http(), &format!("HEAD {path}"), BROWSER);
        let length = first.body.len().to_string();
        assert_eq!(head.status, 200);
        assert_eq!(head.field("content-length"), Some(length.as_str()));
        assert_eq!(head.field("etag"), Some(tag.as_str()));
    }
}

#[test]
fn pages_may_load_and_ask_this_server_only() {
    let server = server(&[]);
    for (path, _) in ASSETS {
        let answer = asked(server.http(), &format!("GET {path}"), BROWSER);
        let policy = answer.field("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self' data:",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.split("; ").any(|has| has == part), "{policy}");
        }
        assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.field("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.field("cache-control"), Some("no-cache"));
    }
}

#[test]
fn files_need_no_login_and_the_console_asks_for_it_itself() {
    let server = server(&["--requirepass", "sesame"]);
    for (path, _) in ASSETS {
        assert_eq!(
            asked(server.http(), &format!("GET {path}"), BROWSER).status,
            200
        );
    }
    let ask = |path: &str, head: &str| asked(server.http(), &format!("GET {path}"), head);
    for path in ["/api/v1/labels", "/api/v1/query?query=1", "/metrics"] {
        let others = ask(path, "");
        assert_eq!(others.status, 401, "{path}");
        assert!(others.field("www-authenticate").is_some(), "{path}");
        let console = ask(path, "X-Latewood-Console: 1\r\n");
        assert_eq!(console.status, 401, "{path}");
        assert_eq!(console.field("www-authenticate"), None, "{path}");
    }
}

#[test]
fn the_console_can_be_switched_off() {
    let server = server(&["--console", "off"]);
    let home = asked(server.http(), "GET /", BROWSER);
    assert!(home.text().starts_with("Latewood "), "{}", home.text());
    for (path, _) in &ASSETS[1..] {
        let answer = asked(server.http(), &format!("GET {path}"), BROWSER);
        assert_eq!(answer.status, 404, "{path}");
    }
    assert_eq!(asked(server.http(), "GET /api/v1/labels", "").status, 200);
}

#[test]
fn no_other_file_is_there() {
    let server = server(&[]);
    for path in [
        "/console/",
        "/console/index.html.br",
        "/console/..%2fCargo.toml",
        "/console",
    ] {
        let answer = asked(server.http(), &format!("GET {path}"), BROWSER);
        assert_eq!(answer.status, 404, "{path}");
    }
}
