//! Bodies that do not come: they keep no place and no memory from those that do.

use crate::harness::eventually;
use crate::http::client::Http;
use crate::http::server;

/// Begins a body of which nothing comes.
fn idle(address: &str, head: &str) -> Http {
    let mut http = Http::to(address);
    http.send(
        format!("POST /write HTTP/1.1\r\nHost: x\r\n{head}Content-Length: 67108864\r\n\r\n")
            .as_bytes(),
    );
    http
}

#[test]
fn idle_bodies_take_no_memory() {
    let server = server(&[]);
    let before = server.client().info("used_memory_rss");
    let _idle: Vec<_> = (0..20).map(|_| idle(server.http(), "")).collect();
    let mut sender = Http::to(server.http());
    let line = "m v=1 1\n".repeat(1_000_000);
    assert_eq!(sender.post("/write", line.as_bytes()).status, 204);
    let grown = server
        .client()
        .info("used_memory_rss")
        .saturating_sub(before);
    assert!(grown < 200 << 20, "{grown} bytes");
}

#[test]
fn idle_bodies_give_way_to_those_that_come() {
    let server = server(&[]);
    let places = 17
        * std::thread::available_parallelism()
            .map_or(2, usize::from)
            .max(2);
    let mut idle: Vec<_> = (0..places).map(|_| idle(server.http(), "")).collect();
    // A byte now and then does not help.
    idle.iter_mut().for_each(|http| http.send(b"m"));
    // The server may not have met all of them when the first of these comes.
    for _ in 0..3 {
        eventually("a place", || {
            let answer = Http::to(server.http()).post("/write", b"m v=1 1\n");
            assert!([204, 503].contains(&answer.status), "{}", answer.text());
            answer.status == 204
        });
    }
    // Those that came when all places of their user were taken are refused, too.
    let mut told = idle.iter_mut().map(Http::answer);
    let told = told.find(|answer| answer.text().contains("gave way to other requests"));
    let told = told.expect("one that gave way");
    assert_eq!(told.status, 503);
    assert!(told.field("retry-after").is_some());
}

#[test]
fn one_user_does_not_take_the_places_of_others() {
    let server = server(&[]);
    let mut client = server.client();
    for user in ["greedy", "modest"] {
        client.ask(&format!("ACL SETUSER {user} on >p +@all ~*"));
    }
    let greedy = "Authorization: Bearer greedy:p\r\n";
    let mut refused = None;
    let mut waiting = Vec::new();
    for _ in 0..2000 {
        let mut http = Http::to(server.http());
        let answer = http.post_with("/write", greedy, b"m v=1 1\n");
        if answer.status != 204 {
            refused = Some(answer);
            break;
        }
        waiting.push(idle(server.http(), greedy));
    }
    let refused = refused.unwrap();
    assert_eq!(refused.status, 503);
    assert!(
        refused.text().contains("all that one user may"),
        "{}",
        refused.text()
    );
    let mut http = Http::to(server.http());
    let modest = "Authorization: Bearer modest:p\r\n";
    assert_eq!(http.post_with("/write", modest, b"m v=1 1\n").status, 204);
}
