//! The fast path of TS.ADD and TS.MADD gives what one command at a time gives.

use crate::harness::{Client, Numbers, Server, encoded, text};
use latewood_engine::io::sim::seed;
use std::io::Write;

/// One random command; most are of the kind that is grouped.
fn command(numbers: &mut Numbers, prefix: &str) -> String {
    let key = |numbers: &mut Numbers| format!("{prefix}:{}", numbers.below(4));
    let timestamp = |numbers: &mut Numbers| match numbers.below(20) {
        0 => "-5".to_owned(),
        1 => "x".to_owned(),
        2 => "01".to_owned(),
        _ => numbers.below(60).to_string(),
    };
    let value = |numbers: &mut Numbers| match numbers.below(20) {
        0 => "inf".to_owned(),
        1 => "-".to_owned(),
        2 => "1e3".to_owned(),
        3 => "NaN".to_owned(),
        _ => format!("{}.{}", numbers.below(50), numbers.below(100)),
    };
    match numbers.below(38) {
        0 => format!("TS.RANGE {} - +", key(numbers)),
        1 => format!("TS.GET {}", key(numbers)),
        2 => format!("DEL {}", key(numbers)),
        3 => format!("TS.DEL {} {} 40", key(numbers), timestamp(numbers)),
        4 => format!("TS.CREATE {} RETENTION 30", key(numbers)),
        5 => "TS.ADD".to_owned(),
        6 => format!("TS.MADD {} 1", key(numbers)),
        7 => format!("TS.ADD {} 3 4 ON_DUPLICATE what", key(numbers)),
        8 => format!(
            "TS.ADD {} 3 4 DUPLICATE_POLICY max LABELS a b",
            key(numbers)
        ),
        9..12 => {
            let policies = ["first", "LAST", "min", "max", "sum", "block"];
            let policy = policies[numbers.below(6) as usize];
            let sample = format!("{} {} {}", key(numbers), timestamp(numbers), value(numbers));
            format!("TS.ADD {sample} ON_DUPLICATE {policy}")
        }
        12..16 => {
            let mut line = "ts.madd".to_owned();
            for _ in 0..1 + numbers.below(6) {
                line += &format!(
                    " {} {} {}",
                    key(numbers),
                    timestamp(numbers),
                    value(numbers)
                );
            }
            line
        }
        30..38 => {
            let sample = format!("{} {} {}", key(numbers), timestamp(numbers), value(numbers));
            let ends = [
                "a 1",
                "a 1 b 2",
                "a 1 c 3",
                "a",
                "a 1 b x,y",
                "a RETENTION 30 b",
                "on_duplicate max",
                "a 1 ON_DUPLICATE max",
            ];
            let end = ends[numbers.below(8) as usize];
            format!("TS.ADD {sample} LABELS {end}")
        }
        _ => {
            let sample = format!("{} {} {}", key(numbers), timestamp(numbers), value(numbers));
            format!("TS.ADD {sample}")
        }
    }
}

#[test]
fn grouped_commands_equal_single_ones() {
    let server = Server::start();
    let (mut grouped, mut single) = (server.client(), server.client());
    let seed = seed();
    for round in 0..40 {
        let commands = |prefix: &str| {
            let mut numbers = Numbers(seed.wrapping_add(round));
            (0..200)
                .map(|_| command(&mut numbers, prefix))
                .collect::<Vec<_>>()
        };
        // Inline commands take the general way, one at a time.
        let expected: Vec<String> = commands("s")
            .iter()
            .map(|line| {
                single.send(format!("{line}\r\n").as_bytes());
                text(&single.reply())
            })
            .collect();
        let commands = commands("g");
        let bytes: Vec<u8> = commands.iter().flat_map(|line| encoded(line)).collect();
        grouped.send(&bytes);
        for (line, expected) in commands.iter().zip(expected) {
            assert_eq!(text(&grouped.reply()), expected, "round {round}: {line}");
        }
        for filter in ["a=1", "b=2", "c=3", "RETENTION=30"] {
            let found = grouped.ask(&format!("TS.QUERYINDEX {filter}"));
            let has = |prefix, number| found.contains(&format!("{prefix}:{number}\r"));
            let differs = (0..4).find(|&number| has("g", number) != has("s", number));
            assert_eq!(differs, None, "round {round}: {filter}");
        }
    }
}

#[test]
fn pipelines_may_be_cut_anywhere() {
    let server = Server::start();
    let seed = seed();
    let mut numbers = Numbers(seed);
    let commands: Vec<String> = (0..300).map(|_| command(&mut numbers, "k")).collect();
    let bytes: Vec<u8> = commands.iter().flat_map(|line| encoded(line)).collect();
    let mut whole = server.client();
    whole.send(&bytes);
    let expected: Vec<String> = commands.iter().map(|_| text(&whole.reply())).collect();
    assert_eq!(whole.ask("FLUSHALL"), "+OK\r\n");

    let mut pieces = server.client();
    let mut rest = &bytes[..];
    let mut got = Vec::new();
    while !rest.is_empty() {
        let size = 1 + numbers.below(60).min(rest.len() as u64 - 1) as usize;
        let (piece, after) = rest.split_at(size);
        pieces.stream.write_all(piece).unwrap();
        pieces.stream.flush().unwrap();
        if numbers.below(8) == 0 {
            std::thread::yield_now();
        }
        rest = after;
    }
    for _ in &commands {
        got.push(text(&pieces.reply()));
    }
    assert_eq!(got, expected);
}

/// What a pipeline of a user `u` left behind: who was refused what, counts by
/// outcome, samples.
fn traces(admin: &mut Client) -> Vec<String> {
    let log = admin.ask("ACL LOG 128");
    let lines: Vec<&str> = log.lines().collect();
    let refusals = lines.windows(3).filter_map(|lines| match lines {
        ["count", count, _] => Some(*count),
        ["reason" | "context" | "object" | "username", _, value] => Some(*value),
        _ => None,
    });
    let mut traces: Vec<String> = refusals.map(str::to_owned).collect();
    for section in ["commandstats", "errorstats"] {
        let info = admin.ask(&format!("INFO {section}"));
        let counts = info.lines().filter(|line| {
            let name = line.split(':').next().unwrap();
            name.starts_with("errorstat_") || ["cmdstat_ts.add", "cmdstat_ts.madd"].contains(&name)
        });
        let untimed = |line: &str| {
            let parts = line.split(',').filter(|part| !part.starts_with("usec"));
            parts.collect::<Vec<_>>().join(",")
        };
        traces.extend(counts.map(untimed));
    }
    traces.extend((0..4).map(|number| admin.ask(&format!("TS.RANGE k:{number} - +"))));
    traces
}

#[test]
fn a_user_with_key_patterns_is_refused_the_same_as_with_single_commands() {
    const RULES: [&str; 8] = [
        "resetkeys ~k:[01]",
        "resetkeys ~k:2 %W~k:3",
        "%R~k:3",
        "-ts.madd",
        "-ts.add",
        "+ts.add +ts.madd",
        "(~k:[23] +ts.add) (~k:[123] +ts.madd)",
        "clearselectors",
    ];
    let servers = [Server::start(), Server::start()];
    let mut admins = servers.each_ref().map(Server::client);
    let mut numbers = Numbers(seed());
    for round in 0..30 {
        let [mut grouped, mut single] = servers.each_ref().map(Server::client);
        for admin in &mut admins {
            admin.expect(&[
                ("FLUSHALL", "+OK\r\n"),
                ("ACL LOG RESET", "+OK\r\n"),
                ("CONFIG RESETSTAT", "+OK\r\n"),
                ("ACL SETUSER u reset on >pw ~k:[12] +@all", "+OK\r\n"),
            ]);
        }
        let mut commands = vec!["AUTH u pw".to_owned()];
        commands.extend((0..200).map(|_| match numbers.below(15) {
            0 => format!("ACL SETUSER u {}", RULES[numbers.below(8) as usize]),
            _ => command(&mut numbers, "k"),
        }));
        let bytes: Vec<u8> = commands.iter().flat_map(|line| encoded(line)).collect();
        grouped.send(&bytes);
        for line in &commands {
            // Inline commands take the general way, one at a time.
            single.send(format!("{line}\r\n").as_bytes());
            let (grouped, single) = (grouped.reply(), single.reply());
            assert_eq!(text(&grouped), text(&single), "round {round}: {line}");
        }
        let [grouped, single] = admins.each_mut().map(traces);
        assert_eq!(grouped, single, "round {round}");
    }
}

#[test]
fn commands_of_a_user_with_key_patterns_are_applied_together() {
    let server = Server::start();
    let (mut admin, mut user) = (server.client(), server.client());
    admin.expect(&[
        ("ACL SETUSER u on >pw ~room:* +ts.add +ts.madd", "+OK\r\n"),
        ("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n"),
    ]);
    user.expect(&[("AUTH u pw", "+OK\r\n")]);
    let mut pipeline = |expected: fn(usize) -> String| {
        let commands = (0..50).map(|i| format!("TS.ADD room:{} {i} 1", i % 3));
        let bytes: Vec<u8> = commands.flat_map(|line| encoded(&line)).collect();
        user.send(&bytes);
        for i in 0..50 {
            assert_eq!(text(&user.reply()), expected(i));
        }
    };
    pipeline(|i| format!(":{i}\r\n"));
    let slow = admin.ask("SLOWLOG GET -1");
    assert!(slow.contains("of the pipeline, applied together"), "{slow}");
    // What is taken away in between is missing from the next pipeline on.
    admin.expect(&[("ACL SETUSER u resetkeys ~hall:*", "+OK\r\n")]);
    pipeline(|_| "-NOPERM No permissions to access a key\r\n".to_owned());
    assert_eq!(admin.info("acl_access_denied_key"), 50);
}

#[test]
fn groups_larger_than_a_batch_are_answered_in_order() {
    let server = Server::start();
    let mut client = server.client();
    let samples = 10_000;
    let mut bytes = Vec::new();
    for i in 0..samples {
        bytes.extend(encoded(&format!("TS.ADD k {i} 1")));
    }
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || sender.write_all(&bytes).unwrap());
    for i in 0..samples {
        assert_eq!(text(&client.reply()), format!(":{i}\r\n"));
    }
    sending.join().unwrap();
    let mut line = "TS.MADD".to_owned();
    for i in 0..samples {
        line += &format!(" k {} 2", samples + i);
    }
    let reply = client.ask(&line);
    assert!(reply.starts_with("*10000\r\n:10000\r\n") && reply.ends_with(":19999\r\n"));
}
