//! What is counted of refusals, and what a loss of permissions ends at once.

use crate::harness::{Client, Server};

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
