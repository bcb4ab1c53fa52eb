//! SLOWLOG, LATENCY, MEMORY and the sections of INFO about commands.

use crate::harness::{Client, Server, encoded};

/// The value of a line of an INFO section.
fn line(client: &mut Client, section: &str, name: &str) -> Option<String> {
    let info = client.ask(&format!("INFO {section}"));
    let mut lines = info.lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.map(str::to_owned)
}

/// A number among `name=number,...`.
fn part(line: &str, name: &str) -> f64 {
    let mut parts = line.split(',');
    let found = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    found.unwrap().parse().unwrap()
}

#[test]
fn every_command_is_counted_by_outcome() {
    let server = Server::start();
    let mut client = server.client();
    client.send(&[encoded("TS.ADD k 1 1"), encoded("TS.ADD k 2 1")].concat());
    assert_eq!(
        (client.reply(), client.reply()),
        (b":1\r\n".to_vec(), b":2\r\n".to_vec())
    );
    client.ask("TS.ADD k 1 9");
    client.ask("TS.ADD k x 9");
    client.ask("TS.MADD k 3 3 nosuch 4 4");
    client.ask("TS.GET k");
    client.ask("TS.GET nosuch");
    client.ask("TS.GET");
    client.ask("CONFIG GET port");
    client.ask("nosuch");
    let outcomes = |line: &str| ["calls", "rejected_calls", "failed_calls"].map(|n| part(line, n));
    let mut of = |name: &str| {
        let line = line(&mut client, "commandstats", &format!("cmdstat_{name}"));
        let line = line.unwrap_or_else(|| panic!("no line for {name}"));
        let calls = part(&line, "calls");
        let each = part(&line, "usec") / calls;
        assert!((part(&line, "usec_per_call") - each).abs() < 1.0, "{line}");
        outcomes(&line)
    };
    assert_eq!(of("ts.add"), [4.0, 0.0, 2.0]);
    assert_eq!(of("ts.madd"), [1.0, 0.0, 0.0]);
    assert_eq!(of("ts.get"), [2.0, 1.0, 1.0]);
    assert_eq!(of("config|get"), [1.0, 0.0, 0.0]);
    assert_eq!(line(&mut client, "commandstats", "cmdstat_ts.range"), None);
    let errors = line(&mut client, "errorstats", "errorstat_ERR").unwrap();
    assert_eq!(errors, "count=6");
    assert_eq!(client.info("total_error_replies"), 6);
    client.expect(&[("CONFIG RESETSTAT", "+OK\r\n")]);
    assert_eq!(line(&mut client, "commandstats", "cmdstat_ts.add"), None);
    assert_eq!(line(&mut client, "errorstats", "errorstat_ERR"), None);
    assert_eq!(client.info("total_error_replies"), 0);
}

#[test]
fn durations_are_shown_as_percentiles_and_histograms() {
    let server = Server::start();
    let mut client = server.client();
    for _ in 0..10 {
        client.ask("PING");
    }
    let name = "latency_percentiles_usec_ping";
    let percentiles = line(&mut client, "latencystats", name).unwrap();
    let of = |name| part(&percentiles, name);
    assert!(of("p50") > 0.0 && of("p50") <= of("p99") && of("p99") <= of("p99.9"));
    client.expect(&[
        ("CONFIG SET latency-tracking-info-percentiles ''", "+OK\r\n"),
        (
            "CONFIG SET latency-tracking-info-percentiles 12.5",
            "+OK\r\n",
        ),
    ]);
    let percentiles = line(&mut client, "latencystats", name).unwrap();
    assert!(percentiles.starts_with("p12.5=") && !percentiles.contains(','));
    let histogram = client.ask("LATENCY HISTOGRAM ping nosuch ts.get");
    let head = "*2\r\n$4\r\nping\r\n*4\r\n$5\r\ncalls\r\n:10\r\n$14\r\nhistogram_usec\r\n*";
    assert!(histogram.starts_with(head), "{histogram}");
    assert!(
        histogram.ends_with(":10\r\n"),
        "all calls end up: {histogram}"
    );
    assert!(
        client
            .ask("LATENCY HISTOGRAM config")
            .contains("$10\r\nconfig|set\r\n")
    );
    assert!(
        server
            .client3()
            .ask("LATENCY HISTOGRAM ping")
            .starts_with("%1\r\n$4\r\nping\r\n%2\r\n")
    );
    client.expect(&[
        ("CONFIG SET latency-tracking no", "+OK\r\n"),
        ("CONFIG RESETSTAT", "+OK\r\n"),
        ("LATENCY HISTOGRAM", "*0\r\n"),
    ]);
}

/// The count of a stage that INFO shows.
fn stage(client: &mut Client, name: &str) -> f64 {
    let line = line(client, "stages", &format!("stage_{name}")).unwrap();
    assert!(part(&line, "p50_ns") <= part(&line, "p99_ns"), "{line}");
    assert!((0.0..=100.0).contains(&part(&line, "share")), "{line}");
    part(&line, "count")
}

#[test]
fn the_stages_of_a_write_are_timed_where_they_occur() {
    let server = Server::with(&[]);
    let mut client = server.client();
    assert!(!client.ask("INFO").contains("# Stages"));
    assert_eq!(
        line(&mut client, "stages", "stage_sampling").unwrap(),
        "256"
    );
    client.expect(&[
        ("CONFIG SET stage-sampling 1", "+OK\r\n"),
        ("CONFIG RESETSTAT", "+OK\r\n"),
    ]);
    // A plain pipeline is one batch, a creation with labels one of its own.
    client.send(&[encoded("TS.ADD k 1 1"), encoded("TS.ADD k 2 1")].concat());
    client.reply();
    client.reply();
    client.ask("TS.ADD n 1 1 LABELS a b");
    client.ask("TS.GET k");
    for (name, count) in [
        ("parse", 3.0),
        ("series_id", 3.0),
        ("series_creation", 2.0),
        ("table_insert", 2.0),
        ("sample_append", 3.0),
        ("log_write", 2.0),
        ("reply", 3.0),
        ("late_staging", 0.0),
        ("sync_wait", 0.0),
    ] {
        assert_eq!(stage(&mut client, name), count, "{name}");
    }
    assert!(stage(&mut client, "receive") > 0.0 && stage(&mut client, "send") > 0.0);
    client.ask("CLIENT DURABILITY sync");
    client.ask("TS.ADD k 3 1");
    assert_eq!(stage(&mut client, "sync_wait"), 1.0);
    client.expect(&[
        ("CONFIG SET stage-sampling 0", "+OK\r\n"),
        ("CONFIG RESETSTAT", "+OK\r\n"),
    ]);
    client.ask("TS.ADD k 4 1");
    for name in ["receive", "parse", "sample_append", "reply", "sync_wait"] {
        assert_eq!(stage(&mut client, name), 0.0, "{name}");
    }
    let refused = client.ask("CONFIG SET stage-sampling 1000001");
    assert!(refused.starts_with("-ERR CONFIG SET failed"), "{refused}");
}

/// Such samples come off the wire one command at a time.
#[test]
fn samples_beside_the_fast_path_are_timed_from_word_to_reply() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE k", "+OK\r\n"),
        ("CONFIG SET stage-sampling 1", "+OK\r\n"),
        ("CONFIG SET notify-keyspace-events AKn", "+OK\r\n"),
        ("CONFIG RESETSTAT", "+OK\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
        ("TS.MADD k 2 2 k 3 3", "*2\r\n:2\r\n:3\r\n"),
        ("MULTI", "+OK\r\n"),
        ("TS.MADD k 4 4 k 5 5", "+QUEUED\r\n"),
        ("TS.ADD k 6 6", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n*2\r\n:4\r\n:5\r\n:6\r\n"),
    ]);
    for name in ["parse", "series_id", "sample_append", "reply"] {
        assert_eq!(stage(&mut client, name), 6.0, "{name}");
    }
}

#[test]
fn slow_commands_are_kept_without_secrets() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("SLOWLOG LEN", ":0\r\n"),
        ("SLOWLOG GET", "*0\r\n"),
        ("CLIENT SETNAME probe", "+OK\r\n"),
        (
            "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3",
            "+OK\r\n",
        ),
    ]);
    client.ask("AUTH someone secret");
    client.ask("CONFIG SET timeout 9 requirepass geheim");
    client.ask("CONFIG SET requirepass ''");
    client.send(&[encoded("TS.ADD k 1 1"), encoded("TS.ADD k 2 1")].concat());
    client.reply();
    client.reply();
    let all = client.ask("SLOWLOG GET -1");
    assert!(all.starts_with("*3\r\n*6\r\n:"), "{all}");
    assert!(!all.contains("secret") && !all.contains("geheim"), "{all}");
    assert!(all.contains("$6\r\nTS.ADD\r\n$1\r\nk\r\n"), "{all}");
    let address = client.stream.local_addr().unwrap().to_string();
    let end = format!("${}\r\n{address}\r\n$5\r\nprobe\r\n", address.len());
    assert!(all.ends_with(&end), "{all}");
    assert!(client.ask("SLOWLOG GET 1").starts_with("*1\r\n"));
    client.expect(&[
        ("CONFIG SET slowlog-log-slower-than -1", "+OK\r\n"),
        ("SLOWLOG RESET", "+OK\r\n"),
        ("SLOWLOG LEN", ":0\r\n"),
        ("PING", "+PONG\r\n"),
        ("SLOWLOG GET 0", "*0\r\n"),
    ]);
}

#[test]
fn delays_are_kept_from_the_threshold_on() {
    let server = Server::with(&[]);
    let mut client = server.client();
    client.expect(&[
        ("LATENCY LATEST", "*0\r\n"),
        ("LATENCY RESET", ":0\r\n"),
        ("LATENCY HISTORY command", "*0\r\n"),
        ("LATENCY HISTORY nosuch", "*0\r\n"),
    ]);
    assert!(
        client
            .ask("LATENCY DOCTOR")
            .contains("latency-monitor-threshold")
    );
    client.ask("CONFIG SET latency-monitor-threshold 1");
    // A hundred thousand samples in one command take more than a millisecond.
    client.ask("TS.CREATE k");
    let mut words = vec!["TS.MADD".to_owned()];
    for at in 0..100_000 {
        words.extend(["k".to_owned(), at.to_string(), "1".to_owned()]);
    }
    client.ask_words(&words);
    let latest = client.ask("LATENCY LATEST");
    assert!(latest.contains("*4\r\n$7\r\ncommand\r\n:1"), "{latest}");
    assert!(client.ask("LATENCY HISTORY command").contains("*2\r\n:1"));
    assert!(
        client
            .ask("LATENCY GRAPH command")
            .contains("command - high ")
    );
    assert!(client.ask("LATENCY DOCTOR").contains("command: "));
    client.expect(&[("LATENCY RESET nosuch", ":0\r\n")]);
    assert_ne!(client.ask("LATENCY RESET"), ":0\r\n");
    client.expect_errors(&[(
        "LATENCY GRAPH wal-sync2",
        "ERR No samples available for event 'wal-sync2'",
    )]);
}

#[test]
fn memory_says_what_series_take() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("MEMORY USAGE k", "$-1\r\n"),
        ("TS.CREATE k LABELS a b", "+OK\r\n"),
    ]);
    let usage = |client: &mut Client| -> i64 {
        let reply = client.ask("MEMORY USAGE k SAMPLES 0");
        reply.trim_start_matches(':').trim().parse().unwrap()
    };
    let empty = usage(&mut client);
    for at in 0..1000 {
        client.ask(&format!("TS.ADD k {at} {}", f64::from(at) * 1.37));
    }
    let filled = usage(&mut client);
    assert!(empty > 100 && filled > empty + 1000, "{empty} {filled}");
    let stats = client.ask("MEMORY STATS");
    for name in [
        "peak.allocated",
        "keys.count",
        "db.0",
        "dataset.percentage",
        "fragmentation",
    ] {
        assert!(
            stats.contains(&format!("\r\n{name}\r\n")),
            "{name} in {stats}"
        );
    }
    assert!(stats.contains("keys.count\r\n:1\r\n"), "{stats}");
    assert!(
        server
            .client3()
            .ask("MEMORY STATS")
            .contains("dataset.percentage\r\n,")
    );
    assert!(client.ask("MEMORY DOCTOR").contains("1 series hold"));
    assert!(client.info("used_memory") >= filled.unsigned_abs());
    client.expect_errors(&[
        (
            "MEMORY USAGE",
            "ERR wrong number of arguments for 'memory|usage' command",
        ),
        ("MEMORY USAGE k SAMPLES", "ERR syntax error"),
        ("MEMORY USAGE k SAMPLES -1", "ERR syntax error"),
        (
            "MEMORY USAGE k SAMPLES x",
            "ERR value is not an integer or out of range",
        ),
        ("MEMORY USAGE k SAMPLES 5 6", "ERR syntax error"),
        (
            "MEMORY FOO",
            "ERR unknown subcommand 'FOO'. Try MEMORY HELP.",
        ),
    ]);
}

#[test]
fn wrong_arguments_are_refused_as_redis_does() {
    let server = Server::start();
    let mut client = server.client();
    let failed = |name: &str, reason: &str| {
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
    };
    let between = |min: i64| format!("argument must be between {min} and {} inclusive", i64::MAX);
    let slowlog_len = "argument must be between 0 and 10000 inclusive";
    let count = "ERR count should be greater than or equal to -1";
    let percentiles = "latency-tracking-info-percentiles";
    client.expect_errors(&[
        ("SLOWLOG GET -2", count),
        ("SLOWLOG GET x", count),
        (
            "SLOWLOG GET 1 2",
            "ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.",
        ),
        (
            "SLOWLOG FOO",
            "ERR unknown subcommand 'FOO'. Try SLOWLOG HELP.",
        ),
        (
            "SLOWLOG RESET x",
            "ERR wrong number of arguments for 'slowlog|reset' command",
        ),
        (
            "LATENCY FOO",
            "ERR unknown subcommand 'FOO'. Try LATENCY HELP.",
        ),
        (
            "LATENCY GRAPH",
            "ERR wrong number of arguments for 'latency|graph' command",
        ),
        (
            "CONFIG SET slowlog-max-len -1",
            &failed("slowlog-max-len", slowlog_len),
        ),
        (
            "CONFIG SET slowlog-max-len 10001",
            &failed("slowlog-max-len", slowlog_len),
        ),
        (
            "CONFIG SET slowlog-log-slower-than -2",
            &failed("slowlog-log-slower-than", &between(-1)),
        ),
        (
            "CONFIG SET latency-monitor-threshold -1",
            &failed("latency-monitor-threshold", &between(0)),
        ),
        (
            "CONFIG SET latency-tracking x",
            &failed("latency-tracking", "argument must be 'yes' or 'no'"),
        ),
        (
            "CONFIG SET latency-tracking-info-percentiles x",
            &failed(
                percentiles,
                "Invalid latency-tracking-info-percentiles parameters",
            ),
        ),
        (
            "CONFIG SET latency-tracking-info-percentiles 200",
            &failed(
                percentiles,
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
            ),
        ),
    ]);
}

#[test]
fn info_gives_the_sections_that_are_asked_for() {
    let server = Server::start();
    let mut client = server.client();
    client.ask("TS.GET nosuch");
    let titles = |info: &str| -> Vec<String> {
        let titles = info.lines().filter_map(|line| line.strip_prefix("# "));
        titles.map(str::to_owned).collect()
    };
    let default = titles(&client.ask("INFO"));
    assert_eq!(titles(&client.ask("INFO default")), default);
    assert!(!default.contains(&"Commandstats".to_owned()));
    let all = titles(&client.ask("INFO everything"));
    assert_eq!(titles(&client.ask("INFO ALL")), all);
    for title in [
        "Replication",
        "Modules",
        "Commandstats",
        "Errorstats",
        "Latencystats",
        "Cluster",
    ] {
        assert!(all.contains(&title.to_owned()), "{title}");
    }
    assert_eq!(titles(&client.ask("INFO cpu Memory")), ["Memory", "CPU"]);
    assert_eq!(client.info("keyspace_misses"), 1);
    assert_eq!(client.info("keyspace_hits"), 0);
    assert_eq!(
        line(&mut client, "replication", "role").as_deref(),
        Some("master")
    );
    let run_id = line(&mut client, "server", "run_id").unwrap();
    assert!(run_id.len() == 40 && run_id.chars().all(|c| c.is_ascii_hexdigit()));
}

#[test]
fn rates_are_measured() {
    let server = Server::start();
    let mut client = server.client();
    let mut rate = 0;
    for _ in 0..100_000 {
        client.ask("PING");
        rate = client.info("instantaneous_ops_per_sec");
        if rate > 0 {
            break;
        }
    }
    assert!(rate > 0, "commands came all the time");
    assert!(
        client
            .ask("INFO stats")
            .contains("instantaneous_input_kbps:")
    );
}

#[test]
fn the_memory_of_clients_is_measured() {
    let server = Server::start();
    let (mut client, mut half) = (server.client(), server.client());
    half.send(b"*2\r\n$4\r\nPING\r\n$8000000\r\n");
    half.send(&[b'x'; 4_000_000]);
    while client.info("mem_clients_normal") < 4_000_000 {}
    let stats = client.ask("MEMORY STATS");
    let clients = stats.split("clients.normal\r\n:").nth(1).unwrap();
    assert!(clients.split("\r\n").next().unwrap().len() >= "4000000".len());
    half.send(&[b'x'; 4_000_002]);
    assert!(half.reply().len() > 8_000_000);
    while client.info("mem_clients_normal") > 4_000_000 {}
}
