//! What is counted of refusals, and what a loss of permissions ends at once.

use crate::harness::{Client, Server};
use std::os::unix::fs::PermissionsExt;

/// A client that is logged in as `u`.
fn user_of(server: &Server) -> Client {
    let mut client = server.client();
    client.expect(&[("AUTH u pw", "+OK\r\n")]);
    client
}

#[test]
fn refusals_are_counted_and_know_of_transactions() {
    let server = Server::start();
    let mut admin = server.client();
    admin.expect(&[("ACL SETUSER u on >pw ~a +@all -keys", "+OK\r\n")]);
    let mut user = user_of(&server);
    user.ask("MULTI");
    assert!(user.ask("TS.GET c").starts_with("-NOPERM"));
    let log = admin.ask("ACL LOG 1");
    assert!(log.contains("context\r\n$5\r\nmulti\r\n"), "{log}");
    user.ask("DISCARD");
    for line in ["TS.GET b", "TS.GET b", "KEYS *", "PUBLISH a b"] {
        assert!(user.ask(line).starts_with("-NOPERM"));
    }
    assert!(user.ask("AUTH u nosuch").starts_with("-WRONGPASS"));
    let fields = ["key", "cmd", "channel", "auth"].map(|what| format!("acl_access_denied_{what}"));
    let counts = fields.each_ref().map(|field| admin.info(field));
    assert_eq!(counts, [3, 1, 1, 1]);
    admin.ask("CONFIG RESETSTAT");
    assert_eq!(fields.map(|field| admin.info(&field)), [0; 4]);
    assert!(admin.ask("ACL LOG").starts_with("*5\r\n"));
}

#[test]
fn a_subscriber_ends_that_may_no_longer_listen() {
    let server = Server::start();
    let mut admin = server.client();
    admin.expect(&[("ACL SETUSER u on >pw &a &b* +@all ~*", "+OK\r\n")]);
    for line in ["SUBSCRIBE a", "PSUBSCRIBE b*", "SSUBSCRIBE bcd"] {
        admin.expect(&[("ACL SETUSER u resetchannels &a &b*", "+OK\r\n")]);
        let mut listener = user_of(&server);
        listener.ask(line);
        admin.expect(&[("ACL SETUSER u &c", "+OK\r\n")]);
        listener.expect(&[("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n")]);
        admin.expect(&[("ACL SETUSER u resetchannels &c", "+OK\r\n")]);
        assert!(listener.rest().is_empty());
    }
    assert_eq!(admin.info("pubsub_clients"), 0);
}

/// LATEWOOD ADD and the others need what the commands of TS need.
#[test]
fn the_exact_commands_need_the_rights_of_those_they_stand_for() {
    let server = Server::start();
    let mut admin = server.client();
    admin.expect(&[
        ("TS.ADD a 1 1", ":1\r\n"),
        ("TS.ADD b 1 1", ":1\r\n"),
        ("ACL SETUSER none on >pw ~* +@all -@timeseries", "+OK\r\n"),
        (
            "ACL SETUSER reader on >pw %R~a* +latewood -@write",
            "+OK\r\n",
        ),
        ("ACL SETUSER writer on >pw ~a* +latewood", "+OK\r\n"),
    ]);
    let run = |user, sub: &str| {
        format!("NOPERM User {user} has no permissions to run the 'latewood|{sub}' command")
    };
    let client_of = |user: &str| {
        let mut client = server.client();
        client.expect(&[(&format!("AUTH {user} pw"), "+OK\r\n")]);
        client
    };
    let mut none = client_of("none");
    for (sub, rest) in [
        ("add", "a 2 2"),
        ("create", "a2"),
        ("alter", "a"),
        ("range", "a 0 9"),
    ] {
        none.expect_errors(&[(&format!("LATEWOOD {sub} {rest}"), &run("none", sub))]);
    }
    let (row, key) = (
        "*1\r\n*2\r\n:1\r\n+1\r\n",
        "NOPERM No permissions to access a key",
    );
    let mut reader = client_of("reader");
    reader.expect(&[("LATEWOOD RANGE a 0 9", row)]);
    reader.expect_errors(&[
        ("LATEWOOD ADD a 2 2", &run("reader", "add")),
        ("LATEWOOD RANGE b 0 9", key),
    ]);
    let mut writer = client_of("writer");
    writer.expect(&[("LATEWOOD ADD a 2 2", ":2\r\n")]);
    writer.expect_errors(&[
        ("LATEWOOD ADD b 2 2", key),
        ("LATEWOOD CREATE c", key),
        ("LATEWOOD ALTER b", key),
    ]);
}

#[test]
fn what_one_selector_lets_read_does_not_count_for_the_commands_of_another() {
    let server = Server::start();
    let mut admin = server.client();
    admin.expect(&[
        (
            "ACL SETUSER u on >pw +ts.get ~a* (+ts.mget +ts.queryindex %R~b*)",
            "+OK\r\n",
        ),
        ("TS.CREATE a1 LABELS x a", "+OK\r\n"),
        ("TS.CREATE b1 LABELS x b", "+OK\r\n"),
    ]);
    let mut user = user_of(&server);
    assert!(user.ask("TS.MGET FILTER x=a").starts_with("-NOPERM"));
    assert!(user.ask("TS.QUERYINDEX x=a").starts_with("-NOPERM"));
    assert!(user.ask("TS.MGET FILTER x=b").contains("b1"));
}

#[test]
fn the_password_is_shown_to_those_who_may_set_it() {
    let server = Server::with(&["--requirepass", "sesame"]);
    let mut admin = server.client();
    admin.expect(&[
        ("AUTH sesame", "+OK\r\n"),
        ("ACL SETUSER u on >pw +config|get", "+OK\r\n"),
    ]);
    assert!(admin.ask("CONFIG GET requirepass").contains("sesame"));
    let mut user = user_of(&server);
    user.expect(&[("CONFIG GET requirepass", "*0\r\n")]);
    assert!(!user.ask("CONFIG GET *").contains("sesame"));
    assert!(user.ask("CONFIG GET dir").starts_with("*2\r\n"));
}

#[test]
fn files_are_for_the_user_of_the_server_alone() {
    fn check(dir: &std::path::Path, found: &mut usize) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
            *found += 1;
            if entry.file_type().unwrap().is_dir() {
                check(&entry.path(), found);
            }
        }
    }
    let server = Server::start();
    server
        .client()
        .expect(&[("TS.ADD k 1 1", ":1\r\n"), ("SAVE", "+OK\r\n")]);
    let mut found = 0;
    check(server.dir(), &mut found);
    assert!(found > 5, "{found} files");
}
