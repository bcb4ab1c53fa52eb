//! LATEWOOD DELETE.

use crate::harness::{Server, encoded, text};
use crate::resp::long_reads::{server, take_all_threads, wait_for_running};

fn filled() -> Server {
    let server = Server::with(&[]);
    let mut client = server.client();
    for key in ["a", "b", "other"] {
        client.ask(&format!("TS.CREATE {key} LABELS job x key {key}"));
        for at in [1000, 1001, 2000, 3000] {
            client.ask(&format!("TS.ADD {key} {at} {at}"));
        }
    }
    server
}

const NOT_ALL: &str = "NOPERM this user has no permission to change one or more keys that match the \
                       filter; nothing was deleted";

const LEFT: &str = "*2\r\n*2\r\n:1000\r\n+1000\r\n*2\r\n:3000\r\n+3000\r\n";

#[test]
fn samples_of_matching_series_are_deleted_to_the_millisecond() {
    let server = filled();
    let mut client = server.client();
    let of_two = "1001 2000 DRYRUN FILTER job=x key!=other";
    client.expect(&[
        (&format!("LATEWOOD DELETE {of_two}"), ":4\r\n"),
        ("TS.RANGE a 1001 1001", "*1\r\n*2\r\n:1001\r\n+1001\r\n"),
        (
            &format!("LATEWOOD DELETE {}", of_two.replace("DRYRUN ", "")),
            ":4\r\n",
        ),
        ("TS.RANGE a - +", LEFT),
        ("TS.RANGE b - +", LEFT),
        (
            "LATEWOOD DELETE 1001 2000 FILTER job=x key!=other",
            ":0\r\n",
        ),
        ("LATEWOOD DELETE - + FILTER job=nothing", ":0\r\n"),
        ("MULTI", "+OK\r\n"),
        ("LATEWOOD DELETE 3000 + FILTER key=other", "+QUEUED\r\n"),
        ("LATEWOOD DELETE - 1000 DRYRUN FILTER job=x", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n:1\r\n:3\r\n"),
    ]);
    // What is deleted stays so.
    let server = Server::over(server.kill(), &[]);
    let mut client = server.client();
    client.expect(&[
        ("TS.RANGE b - +", LEFT),
        ("TS.GET other", "*2\r\n:2000\r\n+2000\r\n"),
        // The series stay.
        ("LATEWOOD DELETE - + FILTER job=x", ":7\r\n"),
        ("EXISTS a b other", ":3\r\n"),
    ]);
}

#[test]
fn what_may_not_be_deleted_is_refused_before_anything_is() {
    let server = filled();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "LATEWOOD DELETE - +",
            "ERR wrong number of arguments for 'latewood|delete' command",
        ),
        ("LATEWOOD DELETE - + DRYRUN job=x", "ERR syntax error"),
        (
            "LATEWOOD DELETE - + FILTER key!=a",
            "ERR TSDB: please provide at least one matcher",
        ),
        (
            "LATEWOOD DELETE - + FILTER job",
            "ERR TSDB: failed parsing labels",
        ),
        (
            "LATEWOOD DELETE x + FILTER job=x",
            "ERR TSDB: wrong fromTimestamp",
        ),
    ]);
    client.ask("ACL SETUSER some on nopass +latewood|delete ~a %R~b");
    client.ask("ACL SETUSER none on nopass +@all -@timeseries ~*");
    client.expect(&[("AUTH some some", "+OK\r\n")]);
    client.expect_errors(&[
        ("LATEWOOD DELETE - + FILTER job=x", NOT_ALL),
        ("LATEWOOD DELETE - + DRYRUN FILTER key=(a,b)", NOT_ALL),
    ]);
    client.expect(&[
        ("LATEWOOD DELETE 2000 + FILTER key=a", ":2\r\n"),
        ("AUTH none none", "+OK\r\n"),
    ]);
    client.expect_errors(&[(
        "LATEWOOD DELETE - + FILTER key=a",
        "NOPERM User none has no permissions to run the 'latewood|delete' command",
    )]);
    let left = "LATEWOOD DELETE - + DRYRUN FILTER job=x";
    assert_eq!(server.client().ask(left), ":10\r\n");
}

#[test]
fn it_leaves_the_loop_and_appears_in_no_pause() {
    let server = server();
    let (mut deleter, mut other) = (server.client(), server.client());
    let mut watcher = server.client();
    let readers = take_all_threads(&server, &mut other);
    watcher.expect(&[("WATCH k", "+OK\r\n")]);
    deleter.send(
        &[
            encoded("LATEWOOD DELETE 1 9 FILTER all=1"),
            encoded("TS.RANGE k - 9"),
        ]
        .concat(),
    );
    while other.info("long_reads_waiting") == 0 {}
    other.expect(&[("CLIENT PAUSE 3600000 WRITE", "+OK\r\n")]);
    drop(readers);
    wait_for_running(&mut other, 1);
    other.expect(&[
        ("TS.RANGE k 9 9", "*1\r\n*2\r\n:9\r\n+9\r\n"),
        ("CLIENT UNPAUSE", "+OK\r\n"),
    ]);
    assert_eq!(text(&deleter.reply()), ":9\r\n");
    assert_eq!(text(&deleter.reply()), "*1\r\n*2\r\n:0\r\n+0\r\n");
    watcher.expect(&[("MULTI", "+OK\r\n"), ("EXEC", "*-1\r\n")]);
}
