//! Akumuli's native protocol.

use super::{Lines, samples, serve};

#[test]
fn messages_rows_and_dictionaries_are_stored() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("akumuli"));
    sender.send("+mem host=m1 region=NW\r\n+20141210T074343\r\n+22.0\r\n");
    sender.send("+cpu.real|cpu.user host=m1\r\n:1418224205000000000\r\n*2\r\n+3.12\r\n:8\r\n");
    sender.send("*2\r\n+mem region=NW host=m1\r\n:1\r\n:1\r\n:1418224205000999999\r\n:31\r\n");
    assert_eq!(sender.finish(), "");
    let memory = samples(&server.server, "mem{host=\"m1\",region=\"NW\"}");
    assert_eq!(memory, ["1418197423000 22", "1418224205000 31"]);
    assert_eq!(
        samples(&server.server, "cpu.real{host=\"m1\"}"),
        ["1418224205000 3.12"]
    );
    assert_eq!(
        samples(&server.server, "cpu.user{host=\"m1\"}"),
        ["1418224205000 8"]
    );
}

#[test]
fn bad_and_late_messages_leave_the_connection_open() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("akumuli"));
    sender.send("+m h=a\r\n:5000000000\r\n+5\r\n+m h=a\r\n:x\r\n+6\r\n");
    assert_eq!(
        sender.answer(),
        "-PARSER unexpected parameter timestamp format (line 5)"
    );
    sender.send("\r\n");
    assert_eq!(
        sender.answer(),
        "-PARSER unexpected parameter id format (line 7)"
    );
    // Late, later and in the future of the server's clock.
    sender.send("+m h=a\r\n:4000000000\r\n+4\r\n+m h=a\r\n:1000000\r\n:1\r\n");
    sender.send("+m h=a\r\n:18000000000000000000\r\n:1\r\n");
    let refused = sender.answer();
    assert!(
        refused.starts_with("-DB m{h=\"a\"} at 18000000000000: "),
        "{refused}"
    );
    sender.finish();
    assert_eq!(
        samples(&server.server, "m{h=\"a\"}"),
        ["1 1", "4000 4", "5000 5"]
    );
}

#[test]
fn thousands_of_errors_are_answered_without_a_line_for_each() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("akumuli"));
    let bad = "+m h=a\r\n:x\r\n:1\r\n".repeat(20_000);
    sender.send(&bad);
    let mut refused = 0;
    for line in sender.finish().lines() {
        match line
            .strip_prefix("-PARSER ")
            .and_then(|rest| rest.split_once(" more were"))
        {
            Some((more, _)) => refused += more.parse::<u64>().unwrap(),
            None => refused += 1,
        }
    }
    assert_eq!(refused, 20_000);
}

#[test]
fn a_long_key_is_cut_in_the_answers() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("akumuli"));
    let tag = "k".repeat(60_000);
    sender.send(&format!("*2\r\n+m h={tag}\r\n:1\r\n"));
    sender.send(&":1\r\n:9000000000000000000\r\n:1\r\n".repeat(1000));
    let answers = sender.finish();
    assert_eq!(answers.lines().count(), 1000);
    for line in answers.lines() {
        assert!(
            line.starts_with("-DB m{h=\"kkk") && line.len() < 500,
            "{line}"
        );
        assert!(line.contains("kkk... at 9000000000000: "), "{line}");
    }
}

#[test]
fn a_dictionary_is_bounded_by_the_memory_budget() {
    let server = super::serve_with(&["--memory", "16mb"]);
    let mut sender = Lines::connect(server.address_of("akumuli"));
    let filler = "x".repeat(1000);
    for id in 0..1500 {
        sender.send(&format!("*2\r\n+m tag={id}{filler}\r\n:{id}\r\n"));
    }
    // A sixteenth of the budget.
    let refused = sender.answer();
    assert!(
        refused.starts_with("-DB the dictionary takes more than 1048576 bytes (line "),
        "{refused}"
    );
    // What was in it before goes on standing for its series.
    sender.send(":7\r\n:5000000000\r\n+1\r\n");
    sender.finish();
    let key = format!("m{{tag=\"7{filler}\"}}");
    assert_eq!(samples(&server.server, &key), ["5000 1"]);
}
