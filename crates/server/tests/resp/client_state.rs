//! What a connection remembers: HELLO, AUTH, CLIENT, SELECT, QUIT, RESET.

use crate::harness::{Server, encoded, text};

#[test]
fn ping_echo_select() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("PING", "+PONG\r\n"),
        ("ping hi", "$2\r\nhi\r\n"),
        ("ECHO hi", "$2\r\nhi\r\n"),
        ("SELECT 0", "+OK\r\n"),
    ]);
    client.expect_errors(&[
        (
            "PING a b",
            "ERR wrong number of arguments for 'ping' command",
        ),
        ("ECHO", "ERR wrong number of arguments for 'echo' command"),
        ("SELECT x", "ERR value is not an integer or out of range"),
        ("SELECT 1", "ERR DB index is out of range"),
        ("SELECT -1", "ERR DB index is out of range"),
        (
            "GET k",
            "ERR unknown command 'GET', with args beginning with: 'k' (Latewood keeps time series only: docs/compatibility.md)",
        ),
        (
            "foo a b",
            "ERR unknown command 'foo', with args beginning with: 'a' 'b' ",
        ),
        (
            "foo",
            "ERR unknown command 'foo', with args beginning with: ",
        ),
    ]);
    let long = "a".repeat(200);
    let cut = "a".repeat(128);
    client.expect_errors(&[(
        &format!("foo {long} b"),
        &format!("ERR unknown command 'foo', with args beginning with: '{cut}' "),
    )]);
}

#[test]
fn hello_chooses_the_protocol() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "HELLO x",
            "ERR Protocol version is not an integer or out of range",
        ),
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("HELLO 3 foo", "ERR Syntax error in HELLO option 'foo'"),
        ("HELLO 3 AUTH a", "ERR Syntax error in HELLO option 'AUTH'"),
        (
            "HELLO 3 SETNAME",
            "ERR Syntax error in HELLO option 'SETNAME'",
        ),
        (
            "HELLO 3 AUTH nobody b",
            "WRONGPASS invalid username-password pair or user is disabled.",
        ),
    ]);
    let hello = |size: &str, proto: u8, map: &str| {
        format!(
            "{size}\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n8.10.0\r\n$5\r\nproto\
             \r\n:{proto}\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\
             \r\nmaster\r\n$7\r\nmodules\r\n*1\r\n{map}\r\n$4\r\nname\r\n$10\r\ntimeseries\r\n$3\
             \r\nver\r\n:81000\r\n$4\r\npath\r\n$8\r\nlatewood\r\n$4\r\nargs\r\n*0\r\n"
        )
    };
    client.expect(&[
        ("CLIENT GETNAME", "$-1\r\n"),
        ("HELLO", &hello("*14", 2, "*8")),
        ("HELLO 3 SETNAME me", &hello("%7", 3, "%4")),
        ("CLIENT GETNAME", "$2\r\nme\r\n"),
        ("CONFIG GET nosuch", "%0\r\n"),
        ("RESET", "+RESET\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
    ]);
}

#[test]
fn a_password_guards_everything() {
    let server = Server::with(&["--wal", "off", "--requirepass", "sesame"]);
    let mut client = server.client();
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    client.expect_errors(&[
        ("PING", "NOAUTH Authentication required."),
        ("TS.ADD k 1 1", "NOAUTH Authentication required."),
        ("CLIENT ID", "NOAUTH Authentication required."),
        (
            "TS.ADD k 1",
            "ERR wrong number of arguments for 'ts.add' command",
        ),
        ("AUTH a b c", "ERR syntax error"),
        ("AUTH guess", wrong),
        ("AUTH default sesam", wrong),
        ("AUTH root sesame", wrong),
        ("HELLO 3 AUTH default guess", wrong),
    ]);
    assert!(
        client
            .ask("HELLO 3")
            .starts_with("-NOAUTH HELLO must be called")
    );
    client.expect(&[
        ("AUTH sesame", "+OK\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
        ("RESET", "+RESET\r\n"),
        ("PING", "-NOAUTH Authentication required.\r\n"),
    ]);
    assert!(
        client
            .ask("HELLO 3 AUTH default sesame")
            .starts_with("%7\r\n")
    );
    client.expect(&[
        ("TS.GET k", "*2\r\n:1\r\n,1\r\n"),
        ("CONFIG SET requirepass other", "+OK\r\n"),
    ]);
    server
        .client()
        .expect(&[("AUTH other", "+OK\r\n"), ("PING", "+PONG\r\n")]);
}

#[test]
fn without_a_password_auth_says_so() {
    let server = Server::start();
    let mut client = server.client();
    assert!(
        client
            .ask("AUTH x")
            .starts_with("-ERR AUTH <password> called without any password")
    );
    client.expect(&[("AUTH default x", "+OK\r\n")]);
}

#[test]
fn a_client_describes_itself() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("CLIENT ID", ":1\r\n"),
        ("CLIENT SETNAME abc", "+OK\r\n"),
        ("CLIENT GETNAME", "$3\r\nabc\r\n"),
        ("CLIENT SETINFO lib-name redis-py", "+OK\r\n"),
        ("CLIENT SETINFO LIB-VER 5.1", "+OK\r\n"),
        ("CLIENT NO-EVICT on", "+OK\r\n"),
        ("CLIENT NO-TOUCH off", "+OK\r\n"),
    ]);
    let info = client.ask("CLIENT INFO");
    for part in [
        "id=1 ",
        " name=abc ",
        " resp=2 ",
        " lib-name=redis-py ",
        " lib-ver=5.1\n",
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
    let mut other = server.client3();
    let list = other.ask("CLIENT LIST");
    assert!(list.starts_with('=') && list.contains("txt:id=1 ") && list.contains("\nid=2 "));
    assert!(!other.ask("CLIENT LIST ID 2").contains("id=1 "));
    client.expect_errors(&[
        (
            "CLIENT",
            "ERR wrong number of arguments for 'client' command",
        ),
        (
            "CLIENT foo",
            "ERR unknown subcommand 'foo'. Try CLIENT HELP.",
        ),
        (
            "CLIENT ID x",
            "ERR wrong number of arguments for 'client|id' command",
        ),
        (
            "CLIENT SETNAME",
            "ERR wrong number of arguments for 'client|setname' command",
        ),
        (
            "CLIENT SETNAME a\nb",
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ),
        ("CLIENT SETINFO foo bar", "ERR Unrecognized option 'foo'"),
        (
            "CLIENT SETINFO LIB-NAME a\nb",
            "ERR LIB-NAME cannot contain spaces, newlines or special characters.",
        ),
        ("CLIENT REPLY foo", "ERR syntax error"),
        ("CLIENT NO-EVICT x", "ERR syntax error"),
        ("CLIENT LIST foo", "ERR syntax error"),
        ("CLIENT LIST TYPE foo", "ERR Unknown client type 'foo'"),
        ("CLIENT LIST ID x", "ERR Invalid client ID"),
    ]);
}

#[test]
fn replies_can_be_turned_off() {
    let server = Server::start();
    let mut client = server.client();
    for line in [
        "CLIENT REPLY SKIP",
        "PING skipped",
        "PING one",
        "CLIENT REPLY OFF",
        "TS.ADD k 1 1",
        "nonsense",
        "CLIENT REPLY SKIP",
        "CLIENT REPLY ON",
        "TS.GET k",
    ] {
        client.send(&encoded(line));
    }
    let replies: Vec<String> = (0..3).map(|_| text(&client.reply())).collect();
    assert_eq!(replies, ["$3\r\none\r\n", "+OK\r\n", "*2\r\n:1\r\n+1\r\n"]);
}

#[test]
fn quit_answers_what_came_before_and_nothing_after() {
    let server = Server::start();
    let mut client = server.client();
    client.send(b"TS.ADD k 1 1\r\nQUIT\r\nTS.ADD k 2 2\r\n");
    assert_eq!(text(&client.rest()), ":1\r\n+OK\r\n");
    server
        .client()
        .expect(&[("TS.GET k", "*2\r\n:1\r\n+1\r\n")]);
}
