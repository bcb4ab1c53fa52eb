//! Certificates that change, and those that must not be put in force.

use crate::harness::{Server, command};
use crate::tls::certificates::{Authority, Valid, shown, words};
use crate::tls::peer::{Peer, tls_address};

#[test]
fn sighup_and_config_set_reload_and_open_connections_stay() {
    let (authority, options) = Authority::with_server();
    let server = Server::with(&words(&options));
    let mut open = Peer::to(&server, &authority.client(None));
    let next = Authority::new();
    next.give("server", Valid::Now);
    for end in ["crt", "key"] {
        let name = format!("server.{end}");
        std::fs::copy(next.path(&name), authority.path(&name)).unwrap();
    }
    server.hang_up();
    server.wait_for_log("SIGHUP: reloaded the TLS files");
    assert_eq!(open.ask("PING"), "+PONG\r\n");
    assert!(Peer::try_to(&tls_address(&server, "tls"), &authority.client(None)).is_err());
    let mut new = Peer::to(&server, &next.client(None));
    assert_eq!(new.ask("PING"), "+PONG\r\n");

    authority.give("other", Valid::Now);
    let (certificate, key) = (authority.text("other.crt"), authority.text("other.key"));
    let set = format!("CONFIG SET tls-cert-file {certificate} tls-key-file {key}");
    assert_eq!(new.ask(&set), "+OK\r\n");
    assert_eq!(
        Peer::to(&server, &authority.client(None)).ask("PING"),
        "+PONG\r\n"
    );
    assert_eq!(new.ask("PING"), "+PONG\r\n");
    assert!(new.ask("CONFIG GET tls-cert-file").contains(&certificate));
}

#[test]
fn what_is_wrong_with_a_file_is_said_and_what_was_in_force_stays() {
    let (authority, options) = Authority::with_server();
    let server = Server::with(&words(&options));
    let mut client = server.client();
    authority.give("old", Valid::UntilLongAgo);
    std::fs::write(authority.path("text"), "no certificate").unwrap();
    let (old, text) = (authority.text("old.crt"), authority.text("text"));
    authority.give("other", Valid::Now);
    let other = authority.text("other.key");
    for (set, reason) in [
        (
            "tls-cert-file /nowhere".to_owned(),
            "cannot read /nowhere: No such file",
        ),
        (format!("tls-cert-file {text}"), "no certificate in PEM"),
        (format!("tls-key-file {text}"), "no private key"),
        (format!("tls-cert-file {old}"), "CN=old expired on Feb  3"),
        (format!("tls-key-file {other}"), "KeyMismatch"),
        (
            "tls-ca-cert-file /nowhere".to_owned(),
            "cannot read /nowhere",
        ),
        ("tls-auth-clients yes".to_owned(), "needs tls-ca-cert-file"),
        (
            "tls-auth-clients-user CN".to_owned(),
            "needs tls-ca-cert-file",
        ),
        (
            "tls-auth-clients maybe".to_owned(),
            "expected yes, no or optional",
        ),
        (
            "tls-protocols TLSv1.1".to_owned(),
            "TLSv1.1 is not supported",
        ),
        (
            "tls-listen 127.0.0.1:1".to_owned(),
            "can't set immutable config",
        ),
    ] {
        let reply = client.ask(&format!("CONFIG SET {set}"));
        assert!(reply.contains(reason), "{set}: {reply}");
    }
    // Of several parameters, none is changed where one is wrong.
    let reply = client.ask("CONFIG SET maxclients 77 tls-cert-file /nowhere");
    assert!(reply.contains("cannot read /nowhere"), "{reply}");
    assert!(!client.ask("CONFIG GET maxclients").contains("77"));
    authority.replace("old.crt", "server.crt");
    server.hang_up();
    let line = server.wait_for_log("in force before stay");
    assert!(
        line.contains(&shown(&authority.path("server.crt"))),
        "{line}"
    );
    assert_eq!(
        Peer::to(&server, &authority.client(None)).ask("PING"),
        "+PONG\r\n"
    );
    assert!(
        client
            .ask("CONFIG GET tls-cert-file")
            .contains("server.crt")
    );
}

#[test]
fn versions_of_the_protocol_are_those_of_the_option() {
    let (authority, mut options) = Authority::with_server();
    options.extend(["--tls-protocols".to_owned(), "TLSv1.2".to_owned()]);
    let server = Server::with(&words(&options));
    let mut peer = Peer::to(&server, &authority.client(None));
    assert_eq!(peer.ask("PING"), "+PONG\r\n");
    assert!(peer.ask("CONFIG GET tls-protocols").contains("TLSv1.2\r\n"));
}

#[test]
fn a_server_with_a_wrong_certificate_does_not_start_and_says_why() {
    let authority = Authority::new();
    authority.give("old", Valid::UntilLongAgo);
    let (old, key) = (authority.text("old.crt"), authority.text("old.key"));
    for (options, reason) in [
        (vec![], "tls-listen needs tls-cert-file and tls-key-file"),
        (
            vec!["--tls-cert-file", &old],
            "tls-cert-file needs tls-key-file",
        ),
        (
            vec!["--tls-cert-file", &old, "--tls-key-file", &key],
            "expired on Feb  3",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let run = command(dir.path())
            .args(["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0"])
            .args(&options)
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(!run.status.success() && said.contains(reason), "{said}");
    }
}

#[test]
fn a_port_for_reads_with_tls_needs_a_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let run = command(dir.path())
        .args([
            "--listen",
            "127.0.0.1:0",
            "--tls-read-listen",
            "127.0.0.1:0",
        ])
        .args(["--cluster", "on", "--log", "kafka://127.0.0.1:1/main"])
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    let reason = "tls-read-listen needs tls-cert-file and tls-key-file";
    assert!(!run.status.success() && said.contains(reason), "{said}");
}
