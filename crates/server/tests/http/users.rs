//! Who may send what.

use crate::http::client::Http;
use crate::http::server;

#[test]
fn a_password_is_asked_for_and_keys_are_guarded() {
    let server = server(&["--requirepass", "sesame"]);
    let mut redis = server.client();
    redis.ask("AUTH sesame");
    assert_eq!(
        redis.ask("ACL SETUSER sender on >secret +ts.add %W~cpu_*"),
        "+OK\r\n"
    );
    assert_eq!(
        redis.ask("ACL SETUSER reader on >secret +@read ~*"),
        "+OK\r\n"
    );
    let mut http = Http::to(server.http());
    let refused = http.post("/write", b"cpu v=1 1\n");
    assert_eq!(refused.status, 401);
    assert!(
        refused
            .field("www-authenticate")
            .unwrap()
            .starts_with("basic")
    );
    assert_eq!(http.get("/ping").status, 204);
    for (path, head, status) in [
        ("/write", "Authorization: Bearer sesame\r\n", 204),
        ("/write", "Authorization: Token sender:secret\r\n", 204),
        (
            "/write",
            "Authorization: Basic c2VuZGVyOnNlY3JldA==\r\n",
            204,
        ),
        ("/write?u=sender&p=secret", "", 204),
        ("/write?u=sender&p=wrong", "", 401),
        (
            "/api/v2/write",
            "Authorization: Token reader:secret\r\n",
            403,
        ),
    ] {
        let answer = http.post_with(path, head, b"cpu v=1 1000000\n");
        assert_eq!(answer.status, status, "{path} {head}: {}", answer.text());
    }
    let partly = http.post(
        "/write?u=sender&p=secret",
        b"cpu v=1 2000000\nmem v=1 2000000\n",
    );
    assert_eq!(partly.status, 400);
    assert!(
        partly
            .text()
            .contains("line 2: no permission to write to mem_v"),
        "{}",
        partly.text()
    );
    assert_eq!(redis.ask("EXISTS mem_v"), ":0\r\n");
    shows_refusals(&redis.ask("ACL LOG"));
    assert_eq!(redis.ask("TS.GET cpu_v"), "*2\r\n:2\r\n+1\r\n");
}

/// ACL LOG says who was refused what over HTTP.
fn shows_refusals(log: &str) {
    for (reason, object, user) in [
        ("key", "mem_v", "sender"),
        ("key", "cpu_v", "reader"),
        ("auth", "HTTP", "sender"),
        ("auth", "HTTP", "default"),
    ] {
        let entry = format!(
            "{reason}\r\n$7\r\ncontext\r\n$8\r\ntoplevel\r\n$6\r\nobject\r\n${}\r\n{object}\r\n\
             $8\r\nusername\r\n${}\r\n{user}\r\n",
            object.len(),
            user.len()
        );
        assert!(log.contains(&entry), "{entry}: {log}");
    }
    assert!(log.contains("proto=http"), "{log}");
}
