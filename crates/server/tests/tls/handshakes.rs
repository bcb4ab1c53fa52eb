//! Peers that do not speak TLS, stop in the middle of it, or come in thousands.

use crate::harness::{PATIENCE, Server};
use crate::tls::certificates::{Authority, words};
use crate::tls::peer::{Peer, tls_address};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};

/// Servers on every kind of port, and the addresses of those with TLS.
fn served() -> (Authority, Server, [String; 3]) {
    let (authority, mut options) = Authority::with_server();
    let ports = [
        "--https",
        "127.0.0.1:0",
        "--listen-lines",
        "opentsdb=127.0.0.1:0,tls",
    ];
    options.extend(ports.map(str::to_owned));
    let server = Server::with(&words(&options));
    let addresses = ["tls", "https", "opentsdb-tls"].map(|name| tls_address(&server, name));
    (authority, server, addresses)
}

/// Reads until the peer ends it; whether it did.
fn is_ended(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn garbage_ends_the_connection_and_nobody_else_notices() {
    let (authority, server, addresses) = served();
    let mut open = Peer::to(&server, &authority.client(None));
    for address in &addresses {
        for garbage in [
            &b"*1\r\n$4\r\nPING\r\n"[..],
            b"GET / HTTP/1.1\r\n\r\n",
            &[0x16, 3, 1, 0xff, 0xff, 1, 0, 0],
            &[0x16, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff],
            &[0; 20_000],
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            // It may be closed before all is sent.
            let _ = stream.write_all(garbage);
            let _ = stream.shutdown(Shutdown::Write);
            assert!(is_ended(stream), "{address} {garbage:?}");
        }
    }
    assert_eq!(open.ask("PING"), "+PONG\r\n");
    let mut client = server.client();
    assert!(client.info("tls_handshakes_failed") >= 9);
}

#[test]
fn a_handshake_that_stalls_is_ended() {
    let (authority, server, addresses) = served();
    let stalled = addresses.map(|address| {
        let mut stream = TcpStream::connect(address).unwrap();
        // The head of a message that never comes.
        stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).unwrap();
        stream
    });
    assert_eq!(
        Peer::to(&server, &authority.client(None)).ask("PING"),
        "+PONG\r\n"
    );
    for stream in stalled {
        assert!(is_ended(stream));
    }
}

#[test]
fn a_slow_handshake_is_no_stalled_one() {
    let (authority, server, _) = served();
    let options = authority.client(None);
    let connector = options.connector(true).unwrap();
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = between.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        let agrees = scope.spawn(|| {
            let mut tcp = TcpStream::connect(&address).unwrap();
            connector.agree(&mut tcp, &address).unwrap().is_some()
        });
        let (mut client, _) = between.accept().unwrap();
        let mut slow = TcpStream::connect(tls_address(&server, "tls")).unwrap();
        let mut hello = [0; 4096];
        let length = client.read(&mut hello).unwrap();
        let (first, second) = hello[..length].split_at(length / 2);
        slow.write_all(first).unwrap();
        assert_eq!(Peer::to(&server, &options).ask("PING"), "+PONG\r\n");
        slow.write_all(second).unwrap();
        let (mut back, mut to) = (slow.try_clone().unwrap(), client.try_clone().unwrap());
        scope.spawn(move || std::io::copy(&mut back, &mut to));
        let _ = std::io::copy(&mut client, &mut slow);
        let _ = slow.shutdown(Shutdown::Both);
        assert!(agrees.join().unwrap());
    });
}

#[test]
fn what_came_before_a_half_closed_end_is_answered() {
    let (authority, server, _) = served();
    let options = authority.client(None);
    let connector = options.connector(true).unwrap();
    let address = tls_address(&server, "tls");
    let mut tcp = TcpStream::connect(&address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut session = connector.agree(&mut tcp, &address).unwrap().unwrap();
    session.writer().write_all(b"PING\r\nPING\r\n").unwrap();
    session.send_close_notify();
    while session.wants_write() {
        session.write_tls(&mut tcp).unwrap();
    }
    // The socket stays open: only TLS says that nothing follows.
    let mut answer = Vec::new();
    let mut stream = latewood_tls::rustls::Stream::new(&mut session, &mut tcp);
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"+PONG\r\n+PONG\r\n");
}

#[test]
fn a_connection_that_is_half_closed_ends_on_every_port() {
    let (authority, server, addresses) = served();
    let options = authority.client(None);
    let connector = options.connector(true).unwrap();
    for (address, sent) in addresses.iter().zip([
        &b"TS.ADD redis 1 1\r\n"[..],
        b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"put lines 1 1 host=a\n",
    ]) {
        let mut tcp = TcpStream::connect(address).unwrap();
        let mut session = connector.agree(&mut tcp, address).unwrap().unwrap();
        session.writer().write_all(sent).unwrap();
        session.send_close_notify();
        while session.wants_write() {
            session.write_tls(&mut tcp).unwrap();
        }
        assert!(is_ended(tcp), "{address}");
    }
    assert_eq!(
        server.client().ask("EXISTS redis lines{host=\"a\"}"),
        ":2\r\n"
    );
}

/// TLS 1.2 lets a client ask for new keys. Nothing is agreed on anew, and nobody else notices.
#[test]
fn renegotiation_is_refused() {
    let (authority, server, addresses) = served();
    let mut open = Peer::to(&server, &authority.client(None));
    for address in &addresses {
        let mut client = Command::new("openssl")
            .args(["s_client", "-tls1_2", "-connect", address])
            .args(["-CAfile", &authority.text("ca.crt")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl is missing");
        let mut input = client.stdin.take().unwrap();
        // A line that begins so is a command to it; it may end at the first.
        for _ in 0..100 {
            let _ = input.write_all(b"R\n");
        }
        drop(input);
        let output = client.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("RENEGOTIATING"), "{address}: {said}");
        assert!(said.contains("no renegotiation"), "{address}: {said}");
    }
    assert_eq!(open.ask("PING"), "+PONG\r\n");
}

#[test]
fn thousands_that_begin_a_handshake_take_little_and_go() {
    const PEERS: usize = 9000;
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    // Half of what there may be, where that is few: the server has as many.
    let allowed = limit.maximum.map_or(PEERS, |most| most as usize / 2);
    let (authority, server, [address, ..]) = served();
    let mut client = server.client();
    let before = client.info("used_memory_rss");
    let mut stalled = Vec::new();
    for _ in 0..PEERS.min(allowed) {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).unwrap();
        stalled.push(stream);
    }
    let mut peer = Peer::to(&server, &authority.client(None));
    assert_eq!(peer.ask("PING"), "+PONG\r\n");
    let grown = client.info("used_memory_rss").saturating_sub(before);
    assert!(grown < 256 << 20, "{grown} bytes");
    assert!(stalled.into_iter().all(is_ended));
    assert_eq!(peer.ask("PING"), "+PONG\r\n");
}

#[test]
fn hundreds_of_connections_are_served_at_a_time() {
    let (authority, server, _) = served();
    let options = authority.client(None);
    let mut peers: Vec<Peer> = (0..400).map(|_| Peer::to(&server, &options)).collect();
    for (number, peer) in peers.iter_mut().enumerate() {
        assert_eq!(peer.ask(&format!("TS.ADD k{number} 1 2")), ":1\r\n");
    }
    assert_eq!(server.client().ask("DBSIZE"), ":400\r\n");
}
