//! Reads under `--read-lease`: of a node that was deposed while it was suspended, and of one whose
//! brokers hang.

use crate::{BROKERS, World, all_brokers, send};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::PoisonError;

const LEASED: [&str; 2] = ["--read-lease", "on"];
const REFUSED: &str = "the read was not answered, because Kafka did not confirm in time";

#[test]
fn a_node_that_was_deposed_while_it_was_suspended_answers_nothing_old() {
    let world = World::new("suspended");
    assert!(world.init().status.success());
    let options = [&LEASED[..], &["--http", "off"]].concat();
    let old = world.serve_with("a", &options);
    assert_eq!(old.ask("TS.ADD k 1 1"), ":1");
    assert_eq!(old.ask("TS.GET k"), "*2:1+1");
    old.signal("STOP");
    let new = world.serve_with("b", &options);
    assert_eq!(new.ask("TS.ADD k 2 2"), ":2");
    // From then on the old one may not answer.
    assert_eq!(new.ask("TS.GET k"), "*2:2+2");
    let asking = TcpStream::connect(&old.address).unwrap();
    let asking = std::thread::spawn(|| send(asking, "TS.GET k"));
    old.signal("CONT");
    let reply = asking.join().unwrap();
    assert!(reply.is_empty() || reply.contains(REFUSED), "{reply}");
    let (status, said) = old.end();
    assert_eq!(status.code(), Some(4), "{said}");
    new.kill();
}

/// The answer to GET of a path.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn reads_are_refused_while_brokers_hang_and_answered_afterwards() {
    let _alone = BROKERS.write().unwrap_or_else(PoisonError::into_inner);
    let world = World::alone("unproven");
    assert!(world.init().status.success());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = listener.local_addr().unwrap().to_string();
    drop(listener);
    let node = world.serve_with("a", &[&LEASED[..], &["--http", &http]].concat());
    assert_eq!(node.ask("TS.ADD k 1 1 LABELS __name__ k"), ":1");
    assert_eq!(node.ask("TS.GET k"), "*2:1+1");
    all_brokers("pause");
    // The lease holds a moment more.
    let mut replies = (0..).map(|_| node.ask("TS.GET k"));
    let refused = replies.find(|reply| reply.starts_with('-'));
    let paths = [
        "/api/v1/labels",
        "/api/v1/query?query=k",
        "/api/v1/query_range?query=k&start=0&end=9&step=1",
        "/api/v1/export?match[]=k",
        "/api/v1/status/series/samples?key=k",
    ];
    let answers = paths.map(|path| get(&http, path));
    let [server, figures] = ["/api/v1/status/server", "/metrics"].map(|path| get(&http, path));
    let waits = node.figure("wal_remote_reads_wait");
    let written = TcpStream::connect(&node.address).unwrap();
    let written = std::thread::spawn(|| send(written, "TS.ADD k 2 2"));
    all_brokers("resume");
    let refused = refused.unwrap();
    assert!(
        refused.starts_with(&format!("-TRYAGAIN {REFUSED}")),
        "{refused}"
    );
    for (path, answer) in paths.iter().zip(answers) {
        let is_refused = answer.starts_with("HTTP/1.1 503 ") && answer.contains(REFUSED);
        assert!(is_refused, "{path}: {answer}");
    }
    assert!(server.starts_with("HTTP/1.1 200 ") && figures.starts_with("HTTP/1.1 200 "));
    assert_eq!((waits, written.join().unwrap().as_str()), (1, ":2"));
    let mut replies = (0..).map(|_| node.ask("TS.GET k"));
    assert!(replies.any(|reply| reply == "*2:2+2"));
    assert!(get(&http, "/api/v1/labels").starts_with("HTTP/1.1 200 "));
    node.kill();
}
