//! Every port speaks TLS.

use crate::harness::{Server, command, encoded, eventually};
use crate::tls::certificates::{Authority, words};
use crate::tls::peer::{Peer, tls_address};
use latewood_tls::ClientOptions;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

#[test]
fn commands_replies_and_long_pipelines_are_the_same_with_tls() {
    let (authority, options) = Authority::with_server();
    let server = Server::with(&words(&options));
    let mut peer = Peer::to(&server, &authority.client(None));
    assert_eq!(peer.ask("PING"), "+PONG\r\n");
    // More than a record, a buffer and the room of a socket: both sides must wait for each other.
    let command = |at: usize| format!("*4\r\n$6\r\nTS.ADD\r\n$1\r\nk\r\n$6\r\n{at}\r\n$1\r\n1\r\n");
    let samples = 100_000..200_000;
    let pipeline: String = samples.clone().map(command).collect();
    peer.send(pipeline.as_bytes());
    for at in samples {
        assert_eq!(peer.reply().unwrap(), format!(":{at}\r\n"));
    }
    let mut plain = server.client();
    let range = plain.ask("TS.RANGE k - +");
    assert_eq!(peer.ask("TS.RANGE k - +"), range);
    assert!(range.len() > 1_500_000);
    // More than all buffers on the way hold, and nobody reads before they are full.
    assert_eq!(peer.ask("CLIENT SETNAME late"), "+OK\r\n");
    peer.send(&encoded("TS.RANGE k - +").repeat(12));
    eventually("a reply that does not fit", || {
        let clients = plain.ask("CLIENT LIST");
        let late = clients.lines().find(|line| line.contains(" name=late "));
        !late.unwrap().contains(" omem=0 ")
    });
    for _ in 0..12 {
        assert!(peer.reply().unwrap() == range);
    }
}

#[test]
fn a_port_for_reads_speaks_tls_with_the_certificates_of_the_others() {
    let (authority, options) = Authority::with_server();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = address.unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    // No broker is there: the server loads, and answers what needs no database.
    let mut process = command(dir.path())
        .args(["--cluster", "on", "--log", "kafka://127.0.0.1:1/main"])
        .args(["--objects", "file:///nowhere", "--advertise", "127.0.0.1:2"])
        .args(["--listen", "127.0.0.1:0", "--tls-read-listen", &address])
        // All but that there is no log.
        .args(&options[2..])
        .spawn()
        .unwrap();
    eventually("the port is served", || {
        let ended = process.try_wait().unwrap();
        assert!(ended.is_none(), "the server ended: {ended:?}");
        TcpStream::connect(&address).is_ok()
    });
    let mut peer = Peer::try_to(&address, &authority.client(None)).unwrap();
    assert!(peer.ask("CLIENT INFO").contains(" flags=r "));
    assert!(peer.ask("TS.ADD k 1 1").starts_with("-LOADING"));
    let mut plain = Peer::try_to(&address, &ClientOptions::default()).unwrap();
    plain.send(b"PING\r\n");
    assert!(plain.rest().starts_with('\u{15}'), "the answer is an alert");
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_message_reaches_a_subscriber_with_tls() {
    let (authority, options) = Authority::with_server();
    let server = Server::with(&words(&options));
    let mut peer = Peer::to(&server, &authority.client(None));
    assert!(peer.ask("SUBSCRIBE news").contains("subscribe"));
    let big = "x".repeat(300_000);
    server.client().ask(&format!("PUBLISH news {big}"));
    assert!(peer.reply().unwrap().contains(&big));
}

#[test]
fn http_is_served_with_tls() {
    let (authority, mut options) = Authority::with_server();
    options.extend(["--https".to_owned(), "127.0.0.1:0".to_owned()]);
    let server = Server::with(&words(&options));
    let address = tls_address(&server, "https");
    let request = "POST /write?precision=ms HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\
                   Connection: close\r\n\r\nroom t=20";
    let mut peer = Peer::try_to(&address, &authority.client(None)).unwrap();
    peer.send(request.as_bytes());
    assert!(peer.rest().starts_with("HTTP/1.1 204"), "{address}");
    assert!(server.client().ask("TS.GET room_t").contains("+20\r\n"));
}

#[test]
fn a_server_ends_well_with_open_connections_on_both_ports_of_a_protocol() {
    let (authority, mut options) = Authority::with_server();
    for port in ["opentsdb=127.0.0.1:0", "opentsdb=127.0.0.1:0,tls"] {
        options.extend(["--listen-lines".to_owned(), port.to_owned()]);
    }
    let server = Server::with(&words(&options));
    let mut plain = TcpStream::connect(server.told("opentsdb")).unwrap();
    plain.write_all(b"put a 1 1 host=a\n").unwrap();
    let address = tls_address(&server, "opentsdb-tls");
    let mut peer = Peer::try_to(&address, &authority.client(None)).unwrap();
    peer.send(b"put b 1 1 host=a\n");
    let mut client = server.client();
    client.wait_until("DBSIZE", ":2\r\n");
    drop(plain);
    // The server has seen the end of one of them, and is still connected with the other.
    peer.send(b"put c 1 1 host=a\n");
    client.wait_until("DBSIZE", ":3\r\n");
    assert!(server.terminate().0);
}

/// A sender that never reads, not even tickets: all that it sent arrives.
#[test]
fn lines_of_a_sender_that_only_writes_arrive_to_the_last() {
    let (authority, mut options) = Authority::with_server();
    options.extend(["--listen-lines", "influx-tcp=127.0.0.1:0,tls"].map(str::to_owned));
    let server = Server::with(&words(&options));
    let mut peer = Peer::try_to(
        &tls_address(&server, "influx-tcp-tls"),
        &authority.client(None),
    )
    .unwrap();
    let lines: String = (1..=100_000)
        .map(|at| format!("m v={at} {at}000000\n"))
        .collect();
    peer.send(lines.as_bytes());
    drop(peer);
    server
        .client()
        .wait_until("TS.GET m_v", "*2\r\n:100000\r\n+100000\r\n");
}

#[test]
fn lines_are_taken_with_tls_and_plain_ones_are_not() {
    let (authority, mut options) = Authority::with_server();
    for name in ["opentsdb", "akumuli", "influx-tcp"] {
        options.extend([
            "--listen-lines".to_owned(),
            format!("{name}=127.0.0.1:0,tls"),
        ]);
    }
    let server = Server::with(&words(&options));
    let client = authority.client(None);
    for (name, line, key) in [
        (
            "opentsdb-tls",
            "put cpu 1700000000 5 host=a\n",
            "cpu{host=\"a\"}",
        ),
        (
            "akumuli-tls",
            "+mem host=a\r\n:1700000000000000000\r\n:5\r\n",
            "mem{host=\"a\"}",
        ),
        (
            "influx-tcp-tls",
            "disk,host=a v=5 1700000000000000000\n",
            "disk_v{host=\"a\"}",
        ),
    ] {
        let address = tls_address(&server, name);
        let mut peer = Peer::try_to(&address, &client).unwrap();
        peer.send(line.as_bytes());
        drop(peer);
        server
            .client()
            .wait_until(&format!("EXISTS {key}"), ":1\r\n");
        let mut plain = Peer::try_to(&address, &ClientOptions::default()).unwrap();
        plain.send(line.as_bytes());
        // The answer is an alert.
        assert!(plain.rest().starts_with('\u{15}'), "{name}");
    }
}
