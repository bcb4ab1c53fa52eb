//! What other protocols write and RedisTimeSeries has no word for: infinities, NaN of every kind,
//! labels with brackets and commas.

use crate::harness::Server;
use crate::migrate::peer::Peer;
use crate::migrate::{assert_same, contents, run};

/// Prometheus' mark of a series that ended.
const STALE: &str = "nan:7ff0000000000002";

fn filled() -> Server {
    let server = Server::start();
    let mut client = server.client();
    let ok = "+OK\r\n";
    client.expect(&[
        ("LATEWOOD CREATE k LABELS path f(a,b) site north", ok),
        ("LATEWOOD ADD k 1 inf", ":1\r\n"),
        ("LATEWOOD ADD k 2 -inf", ":2\r\n"),
        ("LATEWOOD ADD k 3 nan:7ff0000000000002", ":3\r\n"),
        ("LATEWOOD ADD k 4 nan", ":4\r\n"),
        ("LATEWOOD ADD k 5 1.5 ON_DUPLICATE LAST", ":5\r\n"),
        ("LATEWOOD ADD k 6 nan:fff8000000000001", ":6\r\n"),
        ("TS.CREATE hour", ok),
        ("TS.CREATERULE k hour AGGREGATION last 3600000", ok),
    ]);
    server
}

fn holds_everything(all: &str) {
    for line in [
        "k,,,\"path=f(a,b)\",site=north,",
        "k,1,inf\n",
        "k,2,-inf\n",
        &format!("k,3,{STALE}\n"),
        "k,4,nan\n",
        "k,6,nan:fff8000000000001\n",
    ] {
        assert!(all.contains(line), "{line}: {all}");
    }
}

#[test]
fn a_file_brings_every_value_and_label_back() {
    let (server, other) = (filled(), Server::start());
    let all = contents(server.address());
    holds_everything(&all);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    std::fs::write(&file, &all).unwrap();
    let file = file.to_str().unwrap();
    let (status, _, errors) = run(&["import", "csv", "--to", other.address(), file]);
    assert_eq!(status, Some(0), "{errors}");
    assert_same(&all, &contents(other.address()));
}

#[test]
fn a_copy_of_a_server_has_every_value_and_label() {
    let (server, other) = (filled(), Server::start());
    let (from, to) = (server.address(), other.address());
    let words = ["import", "redis", "--from", from, "--to", to];
    let (status, said, errors) = run(&words);
    assert_eq!(status, Some(0), "{said} {errors}");
    assert_same(&contents(from), &contents(to));
    // One NaN for another is a difference.
    other
        .client()
        .expect(&[("TS.DEL k 3 3", ":1\r\n"), ("TS.ADD k 3 nan", ":3\r\n")]);
    let (status, said, errors) = run(&[&words[..], &["--overwrite"]].concat());
    assert_eq!(status, Some(0), "{said} {errors}");
    holds_everything(&contents(to));
}

#[test]
fn the_commands_of_redis_take_no_more_than_they_do_there() {
    let server = filled();
    let mut client = server.client();
    client.expect_errors(&[
        ("TS.ADD k 9 inf", "ERR TSDB: invalid value"),
        ("TS.ADD k 9 nan:7ff0000000000002", "ERR TSDB: invalid value"),
        ("LATEWOOD ADD k 9 nan:1", "ERR TSDB: invalid value"),
        ("LATEWOOD ADD k 9 one", "ERR TSDB: invalid value"),
        ("TS.ALTER k LABELS a (", "ERR TSDB: Couldn't parse LABELS"),
        (
            "LATEWOOD ADD k 9",
            "ERR wrong number of arguments for 'latewood|add' command",
        ),
    ]);
    client.expect(&[
        ("LATEWOOD ALTER k LABELS a (", "+OK\r\n"),
        ("TS.RANGE k 3 3", "*1\r\n*2\r\n:3\r\n+NaN\r\n"),
        (
            "LATEWOOD RANGE k 3 3",
            "*1\r\n*2\r\n:3\r\n+nan:7ff0000000000002\r\n",
        ),
    ]);
}

/// A user without these commands moves what the others say.
#[test]
fn who_may_send_no_other_commands_moves_plain_series() {
    let (server, other) = (Server::start(), Server::start());
    server.client().ask("TS.ADD k 1 1.5 LABELS a b");
    other
        .client()
        .expect(&[("ACL SETUSER mover on >pass ~* +@all -latewood", "+OK\r\n")]);
    let (from, to) = (server.address(), other.address());
    let login = ["--to-user", "mover", "--to-password", "pass"];
    let words = [&["import", "redis", "--from", from, "--to", to][..], &login].concat();
    let (status, said, errors) = run(&words);
    assert_eq!(status, Some(0), "{said} {errors}");
    let server = filled();
    let (status, said, errors) = run(&words_of(&server, to, &login));
    assert_eq!(status, Some(3), "{said} {errors}");
    for words in ["k: ", "refused its options", "path=f(a,b)"] {
        assert!(said.contains(words), "{said}");
    }
    server.client().ask("TS.ALTER k LABELS a b");
    let (status, said, errors) = run(&words_of(&server, to, &login));
    assert_eq!(status, Some(3), "{said} {errors}");
    assert!(said.contains("k: the target refused inf at 1: "), "{said}");
    assert!(!said.contains("still changing"), "{said}");
}

/// Where one side cannot say which NaN it holds, marks differ from no other NaN: neither is a
/// mark refused nor one that is there lost.
#[test]
fn marks_are_nothing_but_nan_where_one_user_may_not_tell_them() {
    let (marked, plain) = (Server::start(), Server::start());
    let mark = format!("LATEWOOD ADD k 3 {STALE}");
    let mover = "ACL SETUSER mover on >pass ~* +@all -latewood";
    marked.client().expect(&[
        ("TS.ADD k 1 1.5", ":1\r\n"),
        (&mark, ":3\r\n"),
        (mover, "+OK\r\n"),
    ]);
    plain.client().expect(&[(mover, "+OK\r\n")]);
    let words = words_of(
        &marked,
        plain.address(),
        &["--to-user", "mover", "--to-password", "pass"],
    );
    let (status, said, errors) = run(&words);
    assert_eq!(status, Some(0), "{said} {errors}");
    let nan = "*1\r\n*2\r\n:3\r\n+NaN\r\n";
    plain.client().expect(&[("LATEWOOD RANGE k 3 3", nan)]);
    // And back, read by one who may not.
    let words = words_of(
        &plain,
        marked.address(),
        &["--user", "mover", "--password", "pass"],
    );
    let (status, said, errors) = run(&words);
    assert_eq!(status, Some(0), "{said} {errors}");
    let kept = format!("*1\r\n*2\r\n:3\r\n+{STALE}\r\n");
    marked.client().expect(&[("LATEWOOD RANGE k 3 3", &kept)]);
}

#[test]
fn who_may_touch_some_keys_only_moves_every_value_of_theirs() {
    let (server, other) = (filled(), Server::start());
    server.client().ask("DEL hour");
    other
        .client()
        .expect(&[("ACL SETUSER mover on >pass ~k* +@all", "+OK\r\n")]);
    let login = ["--to-user", "mover", "--to-password", "pass"];
    let (status, said, errors) = run(&words_of(&server, other.address(), &login));
    assert_eq!(status, Some(0), "{said} {errors}");
    holds_everything(&contents(other.address()));
}

fn words_of<'a>(server: &'a Server, to: &'a str, login: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["import", "redis", "--from", server.address(), "--to", to];
    words.push("--overwrite");
    words.extend(login);
    words
}

#[test]
fn a_redis_is_told_what_it_cannot_hold() {
    let peer = Peer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    std::fs::write(&file, "k,5,inf\nl,,,path=f(a)\n").unwrap();
    let words = [
        "import",
        "csv",
        "--skip-bad",
        "--to",
        peer.address(),
        file.to_str().unwrap(),
    ];
    let (status, _, errors) = run(&words);
    assert_eq!(status, Some(3), "{errors}");
    for words in [
        "key k: ERR TSDB: invalid value, at 5",
        "line 2, key l: ",
        "such as path=f(a)",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
}
