//! Clients with certificates, and the users they name.

use crate::harness::Server;
use crate::tls::certificates::{Authority, Valid, words};
use crate::tls::peer::{Peer, tls_address};

/// A server that asks for certificates, with these further options.
fn server(further: &[&str]) -> (Authority, Server) {
    let (authority, mut options) = Authority::with_server();
    for name in ["ann", "gone"] {
        authority.give(name, Valid::Now);
    }
    options.extend(["--tls-ca-cert-file".to_owned(), authority.text("ca.crt")]);
    options.extend(further.iter().map(|word| (*word).to_owned()));
    let server = Server::with(&words(&options));
    (authority, server)
}

const ANN: [&str; 4] = [
    "--user",
    "ann on nopass ~own:* ~own_* +ts.add +ts.get +acl|whoami",
    "--tls-auth-clients-user",
    "CN",
];

#[test]
fn without_a_certificate_nobody_is_served_where_one_is_needed() {
    let (authority, server) = server(&[]);
    let without = Peer::try_to(&tls_address(&server, "tls"), &authority.client(None));
    // In TLS 1.3 a client learns of it with its first reply.
    let refused = without.and_then(|mut peer| peer.try_ask("PING"));
    assert!(refused.is_err(), "{refused:?}");
    let mut ann = Peer::to(&server, &authority.client(Some("ann")));
    assert_eq!(ann.ask("PING"), "+PONG\r\n");

    let stranger = Authority::new();
    stranger.give("ann", Valid::Now);
    let mut strange = stranger.client(Some("ann"));
    strange.cacert = authority.client(None).cacert;
    let refused = Peer::try_to(&tls_address(&server, "tls"), &strange);
    assert!(refused.and_then(|mut peer| peer.try_ask("PING")).is_err());
}

#[test]
fn a_certificate_is_optional_where_the_option_says_so() {
    let (authority, server) = server(&["--tls-auth-clients", "optional"]);
    for name in [None, Some("ann")] {
        let mut peer = Peer::to(&server, &authority.client(name));
        assert_eq!(peer.ask("ACL WHOAMI"), "$7\r\ndefault\r\n");
    }
}

#[test]
fn a_certificate_names_nobody_where_names_were_not_users_when_it_connected() {
    let (authority, server) = server(&ANN[..2]);
    let mut before = Peer::to(&server, &authority.client(Some("ann")));
    assert_eq!(
        server.client().ask("CONFIG SET tls-auth-clients-user CN"),
        "+OK\r\n"
    );
    assert_eq!(before.ask("ACL WHOAMI"), "$7\r\ndefault\r\n");
    let mut after = Peer::to(&server, &authority.client(Some("ann")));
    assert_eq!(after.ask("ACL WHOAMI"), "$3\r\nann\r\n");
    assert_eq!(
        server.client().ask("CONFIG SET tls-auth-clients-user off"),
        "+OK\r\n"
    );
    assert_eq!(after.ask("ACL WHOAMI"), "$3\r\nann\r\n");
}

#[test]
fn the_name_in_a_certificate_is_a_login() {
    let (authority, server) = server(&ANN);
    let mut ann = Peer::to(&server, &authority.client(Some("ann")));
    assert_eq!(ann.ask("ACL WHOAMI"), "$3\r\nann\r\n");
    assert_eq!(ann.ask("TS.ADD own:a 1 2"), ":1\r\n");
    assert!(ann.ask("TS.ADD other 1 2").starts_with("-NOPERM"));
    // Who names nobody is whoever comes without a certificate.
    let mut gone = Peer::to(&server, &authority.client(Some("gone")));
    assert_eq!(gone.ask("ACL WHOAMI"), "$7\r\ndefault\r\n");
    server.client().ask("ACL SETUSER ann off");
    let mut late = Peer::to(&server, &authority.client(Some("ann")));
    assert_eq!(late.ask("ACL WHOAMI"), "$7\r\ndefault\r\n");
}

#[test]
fn lines_and_http_are_written_by_the_user_of_the_certificate() {
    let mut options = ANN.to_vec();
    options.extend(["--listen-lines", "opentsdb=127.0.0.1:0,tls"]);
    options.extend(["--https", "127.0.0.1:0"]);
    options.extend(["--requirepass", "sesame"]);
    let (authority, server) = server(&options);
    let lines = tls_address(&server, "opentsdb-tls");
    let mut plain = server.client();
    plain.ask("AUTH sesame");

    let mut ann = Peer::try_to(&lines, &authority.client(Some("ann"))).unwrap();
    ann.send(b"put own:cpu 1700000000 5 host=a\nput other 1700000000 5 host=a\n");
    plain.wait_until("EXISTS own:cpu{host=\"a\"}", ":1\r\n");
    // She is removed while connected: her lines are taken no more.
    plain.ask("ACL DELUSER ann");
    ann.send(b"put own:late 1700000000 5 host=a\n");
    assert!(ann.rest().contains("no permission to write to other"));
    assert_eq!(
        plain.ask("EXISTS own:late{host=\"a\"} other{host=\"a\"}"),
        ":0\r\n"
    );

    // Who names nobody may not write lines at all, and ACL LOG says who it was.
    let gone = Peer::try_to(&lines, &authority.client(Some("gone"))).unwrap();
    assert_eq!(gone.rest(), "");
    assert!(plain.ask("ACL LOG").contains("gone"));

    plain.ask("ACL SETUSER ann on nopass ~own_* +ts.add");
    let write = |name: &str, body: &str| {
        let client = authority.client(Some(name));
        let mut peer = Peer::try_to(&tls_address(&server, "https"), &client).unwrap();
        let length = body.len();
        peer.send(
            format!(
                "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        let answer = peer.rest();
        answer.split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(write("ann", "own t=20").as_deref(), Some("204"));
    assert_ne!(write("ann", "other t=20").as_deref(), Some("204"));
    assert_eq!(write("gone", "own t=20").as_deref(), Some("401"));
}
