//! The memory budget of a real process, measured by the operating system.

use crate::harness::{Client, Server, encoded, eventually};

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
const BUDGET: u64 = 64 << 20;

/// What the process may hold at most while it is being filled.
const MOST: u64 = BUDGET + BUDGET / 5;

/// The answers to a pipeline.
pub(crate) fn pipeline(client: &mut Client, lines: &[String]) -> Vec<String> {
    let bytes: Vec<u8> = lines.iter().flat_map(|line| encoded(line)).collect();
    client.send(&bytes);
    let replies = lines.iter().map(|_| client.reply());
    replies
        .map(|reply| String::from_utf8_lossy(&reply).into_owned())
        .collect()
}

fn new_series(from: u64) -> Vec<String> {
    let each = |n| {
        format!(
            "TS.ADD churn:{n}:a-key-of-some-length 1 1 LABELS host host-{n} room {}",
            n % 50
        )
    };
    (from..from + 500).map(each).collect()
}

/// New series are what no flush makes room for: they are refused, while those there
/// are go on taking samples.
#[test]
fn a_spent_budget_is_said_in_words_and_goes_away_with_the_data() {
    let budget = BUDGET.to_string();
    let server = Server::with(&["--wal", "off", "--memory", &budget]);
    let mut client = server.client();
    client.expect(&[
        (
            "CONFIG GET maxmemory",
            "*2\r\n$9\r\nmaxmemory\r\n$8\r\n67108864\r\n",
        ),
        ("TS.ADD kept 1 1", ":1\r\n"),
    ]);
    let mut made = 0;
    while pipeline(&mut client, &new_series(made))
        .iter()
        .all(|reply| reply == ":1\r\n")
    {
        made += 500;
        assert!(made < 2_000_000, "the budget was never spent");
    }
    client.expect(&[
        ("TS.ADD other 1 1", OOM),
        ("TS.ADD other 1 1 LABELS a b", OOM),
        ("TS.CREATE other", OOM),
        ("COPY kept other", OOM),
        ("TS.MADD kept 2 2", "*1\r\n:2\r\n"),
        ("TS.GET kept", "*2\r\n:2\r\n+2\r\n"),
        ("TS.DEL kept 1 1", ":1\r\n"),
        ("DEL churn:7:a-key-of-some-length", ":1\r\n"),
    ]);
    assert!(client.info("memory_refused") > 0);
    server.wait_for_log("new series are refused");
    let peak = client.info("memory_anonymous_peak_bytes");
    assert!((BUDGET / 2..MOST).contains(&peak), "{peak} bytes");

    client.expect(&[("FLUSHALL", "+OK\r\n")]);
    eventually("free memory", || client.ask("TS.ADD other 1 1") != OOM);
    client.expect(&[("TS.GET other", "*2\r\n:1\r\n+1\r\n")]);
}

#[test]
fn the_budget_is_changed_by_config() {
    let server = Server::with(&["--wal", "off"]);
    let mut client = server.client();
    // More than the smallest budget, whatever an empty server takes.
    for from in (0..80_000).step_by(500) {
        pipeline(&mut client, &new_series(from));
    }
    client.expect(&[
        ("CONFIG SET maxmemory 16mb", "+OK\r\n"),
        ("TS.ADD k 1 1", OOM),
        ("MULTI", "+OK\r\n"),
        ("TS.ADD k 1 1", OOM),
        ("PING", "+QUEUED\r\n"),
        (
            "EXEC",
            "-EXECABORT Transaction discarded because of previous errors.\r\n",
        ),
    ]);
    // A write waited before one was refused.
    assert!(client.info("memory_stalls") > 0);
    client.expect(&[
        ("CONFIG SET maxmemory 0", "+OK\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
    ]);
    for (value, reason) in [
        ("lots", "argument must be a memory value"),
        (
            "1kb",
            "1024 is out of range: 0 (no limit), or 16777216 (16mb)",
        ),
    ] {
        let refused = client.ask(&format!("CONFIG SET maxmemory {value}"));
        assert!(refused.contains(reason), "{refused}");
    }
}

/// What was set is what is answered, and in force at once.
#[test]
fn retention_and_disk_budget_are_changed_by_config() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.ADD old 1 1", ":1\r\n"),
        // The clock alone takes nothing: a series must have samples of now.
        ("CONFIG SET retention 1h", "+OK\r\n"),
        ("TS.GET old", "*2\r\n:1\r\n+1\r\n"),
        ("CONFIG SET retention 0", "+OK\r\n"),
    ]);
    client.ask("TS.ADD now * 1");
    client.expect(&[
        ("CONFIG SET retention 1h", "+OK\r\n"),
        ("TS.GET old", "*0\r\n"),
        (
            "CONFIG GET retention",
            "*2\r\n$9\r\nretention\r\n$7\r\n3600000\r\n",
        ),
    ]);
    // Nor does it make a series.
    for line in [
        "TS.ADD old 2 1",
        "TS.ADD new 2 1",
        "TS.INCRBY new 1 TIMESTAMP 2",
    ] {
        let refused = client.ask(line);
        let told =
            refused.contains(" older than what this database still keeps, which begins at 1");
        assert!(told, "{refused}");
    }
    client.expect(&[
        ("EXISTS new", ":0\r\n"),
        ("TS.DEL old 0 10", ":0\r\n"),
        ("CONFIG SET disk-budget 2gb", "+OK\r\n"),
        (
            "CONFIG GET disk-budget",
            "*2\r\n$11\r\ndisk-budget\r\n$10\r\n2147483648\r\n",
        ),
    ]);
    for (setting, reason) in [
        ("retention 1", "1 is out of range: 0 (for ever), or 1000 to"),
        ("disk-budget 1mb", "1048576 is out of range: 0 (no limit)"),
        (
            "disk-budget 16mb",
            "CONFIG SET failed (possibly related to argument 'disk-budget') - 16777216 bytes are \
             less than the 1073741824 bytes that the open log needs",
        ),
        ("flush-age 0", "0 is out of range: 1 to 4294967295 seconds"),
        ("log-max 1kb", "1024 is out of range: 1048576 (1mb) to"),
    ] {
        let refused = client.ask(&format!("CONFIG SET {setting}"));
        assert!(
            refused.starts_with("-ERR") && refused.contains(reason),
            "{refused}"
        );
    }
}

/// Bytes of anonymous memory that a process has in RAM.
pub(crate) fn anonymous_bytes(process: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kibibytes * 1024
}

/// Sends a line again until there is memory for it.
pub(crate) fn insist(client: &mut Client, line: &str) {
    eventually("memory for it", || !client.ask(line).contains("OOM"));
}

/// Many times more than memory holds, while series come and go.
#[test]
fn twenty_million_samples_and_passing_series_fit_into_64_mib() {
    const SERIES: u64 = 10_000;
    const ROUNDS: u64 = 2000;
    let budget = BUDGET.to_string();
    let server = Server::with(&["--memory", &budget]);
    let mut client = server.client();
    let process = client.info("process_id");
    let create: Vec<String> = (0..SERIES).map(|n| format!("TS.CREATE k:{n}")).collect();
    for some in create.chunks(500) {
        assert!(
            pipeline(&mut client, some)
                .iter()
                .all(|reply| reply == "+OK\r\n")
        );
    }
    let mut most = 0;
    for round in 0..ROUNDS {
        for start in (0..SERIES).step_by(5000) {
            let mut line = "TS.MADD".to_owned();
            for n in start..start + 5000 {
                let value = (n * 7 + round * 13) % 997;
                line.push_str(&format!(" k:{n} {} 0.{value}", round * 1000));
            }
            insist(&mut client, &line);
        }
        if round % 10 == 0 {
            insist(
                &mut client,
                &format!("TS.ADD passing:{round} 1 1 LABELS round {round}"),
            );
            client.ask(&format!("DEL passing:{}", round.saturating_sub(100)));
        }
        most = most.max(anonymous_bytes(process));
    }
    assert!(most < MOST, "{most} bytes");
    assert!(client.info("flushes") > 3);
    for key in ["k:0", "k:4999", "k:9999"] {
        let count = client.ask(&format!("TS.RANGE {key} - + AGGREGATION count 1000000000"));
        assert_eq!(count, format!("*1\r\n*2\r\n:0\r\n+{ROUNDS}\r\n"), "{key}");
    }
}

/// The limit that a retention has reached outlives it, says so, and goes with
/// everything else.
#[test]
fn what_a_retention_took_is_said_until_everything_is_removed() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(client.info("kept_from"), 0);
    client.ask("TS.ADD now * 1");
    client.expect(&[
        ("CONFIG SET retention 1h", "+OK\r\n"),
        ("CONFIG SET retention 0", "+OK\r\n"),
    ]);
    let floor = client.info("kept_from");
    assert!(floor > 0);
    let refused = format!(
        "-ERR TSDB: Timestamp is older than what this database still keeps, which begins at {floor}\r\n"
    );
    client.expect(&[
        ("TS.ADD a 1 1", &refused),
        ("FLUSHALL", "+OK\r\n"),
        ("TS.ADD a 1 1", ":1\r\n"),
    ]);
    assert_eq!(client.info("kept_from"), 0);
    let server = Server::over(server.kill(), &[]);
    let mut client = server.client();
    client.expect(&[
        ("TS.ADD a 2 1", ":2\r\n"),
        ("TS.GET a", "*2\r\n:2\r\n+1\r\n"),
    ]);
}
