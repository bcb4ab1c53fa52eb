//! Ends that are not what they should be.

use crate::harness::Server;
use crate::migrate::peer::Peer;
use crate::migrate::{copying, run};
use std::io::Write;
use std::net::TcpListener;

#[test]
fn a_source_that_is_no_server_is_named() {
    let target = Server::start();
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = unused.local_addr().unwrap().to_string();
    drop(unused);
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let web_address = web.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = web.accept().unwrap();
        // The other end may hang up first.
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        stream
    });
    for from in [
        nobody.as_str(),
        &web_address,
        "127.0.0.1:port",
        "/nowhere/redis.sock",
    ] {
        let (status, _, errors) =
            run(&["import", "redis", "--from", from, "--to", target.address()]);
        assert_eq!(status, Some(1), "{from}: {errors}");
        let words = format!("cannot connect to the source {from}: ");
        assert!(errors.contains(&words), "{errors}");
    }
    drop(answers.join().unwrap());
    assert_eq!(target.client().ask("DBSIZE"), ":0\r\n");
}

#[test]
fn passwords_open_both_ends_and_wrong_ones_do_not() {
    let peer = Peer::with(&["--requirepass", "from-secret"]);
    let target = Server::with(&["--wal", "off", "--requirepass", "to-secret"]);
    let import = |from: &str, to: &str| {
        let ends = copying(&peer, &target);
        run(&[&ends[..], &["--password", from, "--to-password", to]].concat())
    };
    for (from, to, at) in [
        ("wrong", "to-secret", "the source"),
        ("from-secret", "wrong", "the target"),
    ] {
        let (status, _, errors) = import(from, to);
        assert_eq!(status, Some(1));
        assert!(
            errors.contains(&format!("cannot connect to {at}")),
            "{errors}"
        );
        assert!(errors.contains("WRONGPASS"), "{errors}");
        assert!(!errors.contains("secret"), "{errors}");
    }
    let (status, summary, errors) = import("from-secret", "to-secret");
    assert_eq!(status, Some(0), "{summary}{errors}");
    let ends = copying(&peer, &target);
    let (status, _, errors) = run(&ends);
    assert_eq!(status, Some(1));
    assert!(errors.contains("NOAUTH"), "{errors}");
}

#[test]
fn the_port_of_the_other_protocol_is_named_as_that() {
    let server = Server::with(&["--wal", "off", "--http", "127.0.0.1:0"]);
    let (redis, http) = (server.address(), server.http());
    let as_http = "the server speaks HTTP, not RESP: is this its --http address?";
    let as_redis = "the server speaks RESP, not HTTP: is this a --listen address?";
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("backup");
    let to = to.to_str().unwrap();
    for (words, expected) in [
        (&["import", "csv", "--to", http][..], as_http),
        (&["export", "csv", "--from", http], as_http),
        (&["import", "redis", "--from", http, "--to", redis], as_http),
        (&["backup", "--to", to, "--server", http], as_http),
        (&["import", "influx", "--to", redis], as_redis),
    ] {
        let (status, _, errors) = run(words);
        assert_eq!(status, Some(1), "{words:?}: {errors}");
        assert!(errors.contains(expected), "{words:?}: {errors}");
    }
}
