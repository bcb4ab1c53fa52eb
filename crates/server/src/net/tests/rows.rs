//! Commands that name parked series: their connections are held back while the rows are read, and
//! all replies are as if no series were parked.
//!
//! A harness has no reader threads; a test runs one when the rows are to come.

use super::disk_waits::{expect, expect_silence, send, wait_for};
use super::{Harness, ask};
use latewood_engine::io::sim::SimRandom;
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Series that some test parks.
const KEYS: u64 = 12;

/// A thread that reads rows, until it is stopped.
struct Reader(JoinHandle<()>);

impl Reader {
    fn start(harness: &Harness) -> Self {
        let shared = Arc::clone(&harness.shared);
        Self(std::thread::spawn(move || shared.readers.run(&shared)))
    }

    fn stop(self, harness: &Harness) {
        harness.shared.readers.stop();
        self.0.join().unwrap();
    }
}

/// Parks what nobody wrote to since.
fn park(harness: &Harness) {
    let db = &harness.shared.db;
    db.flush().unwrap();
    db.park_idle().unwrap();
    db.park_idle().unwrap();
}

/// A loop over a database with parked series, each with a sample at 1.
fn parked(keys: &[&str]) -> (Harness, TcpStream) {
    let harness = Harness::start();
    let mut client = harness.client();
    for key in keys {
        let add = format!("TS.ADD {key} 1 1 LABELS all x");
        assert_eq!(ask(&mut client, &add), ":1\r\n");
    }
    park(&harness);
    assert_eq!(harness.shared.db.parked_len(), keys.len());
    assert_eq!(ask(&mut client, "TS.ADD awake 1 1"), ":1\r\n");
    (harness, client)
}

fn encoded(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let words_of = words.iter();
    let words_of = words_of.map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words_of.collect::<String>())
}

/// Sends commands in the form that the fast path takes.
fn send_encoded(client: &mut TcpStream, lines: &[&str]) {
    use std::io::Write;
    let bytes: String = lines.iter().map(|line| encoded(line)).collect();
    client.write_all(bytes.as_bytes()).unwrap();
}

#[test]
fn a_pipeline_waits_in_its_place_and_other_connections_do_not() {
    let (harness, mut other) = parked(&["p", "q", "r"]);
    let db = || &harness.shared.db;
    let (mut one, mut two) = (harness.client(), harness.client());
    send_encoded(
        &mut one,
        &[
            "PING",
            "TS.ADD awake 2 2",
            "TS.ADD p 2 2",
            "TS.ADD new 2 2",
            "TS.MADD q 2 2 missing 2 2 p 3 3",
            "TS.GET q",
            "DEL r",
            "EXISTS r p",
        ],
    );
    // What was run before is answered.
    expect(&mut one, "+PONG\r\n");
    send_encoded(&mut two, &["TS.INCRBY r 1 TIMESTAMP 2", "EXISTS p new"]);
    expect_silence(&mut one, &mut other);
    expect_silence(&mut two, &mut other);
    assert_eq!(ask(&mut other, "EXISTS new"), ":0\r\n", "nothing was done");
    assert_eq!(ask(&mut other, "TS.ADD awake 3 3"), ":3\r\n");
    let reader = Reader::start(&harness);
    expect(&mut two, ":2\r\n:2\r\n");
    expect(
        &mut one,
        ":2\r\n:2\r\n:2\r\n*3\r\n:2\r\n-ERR TSDB: the key is not a TSDB key\r\n:3\r\n*2\r\n:2\r\n+2\r\n:1\r\n:1\r\n",
    );
    assert_eq!(db().parked_len(), 0);
    assert_eq!(db().rows_waited_for(), 0);
    reader.stop(&harness);
    harness.stop();
}

#[test]
fn exec_waits_for_rows_before_it_keeps_others_out() {
    let (harness, mut other) = parked(&["p", "q"]);
    let mut client = harness.client();
    let lines = [
        "MULTI",
        "TS.ADD p 2 2",
        "TS.GET q",
        "DEL p",
        "EXEC",
        "DBSIZE",
    ];
    send(&mut client, &lines);
    expect(&mut client, &format!("+OK\r\n{}", "+QUEUED\r\n".repeat(3)));
    expect_silence(&mut client, &mut other);
    assert_eq!(ask(&mut other, "TS.ADD awake 2 2"), ":2\r\n");
    let reader = Reader::start(&harness);
    expect(&mut client, "*3\r\n:2\r\n*2\r\n:1\r\n+1\r\n:1\r\n:2\r\n");
    assert_eq!(harness.shared.db.rows_waited_for(), 0);
    reader.stop(&harness);
    harness.stop();
}

#[test]
fn reads_by_labels_go_to_a_reader_thread_where_rows_are_away() {
    let (harness, mut other) = parked(&["p", "q"]);
    let mut client = harness.client();
    send(
        &mut client,
        &["TS.QUERYINDEX all=x", "TS.MGET FILTER all=x"],
    );
    expect_silence(&mut client, &mut other);
    let reader = Reader::start(&harness);
    expect(&mut client, "*2\r\n$1\r\np\r\n$1\r\nq\r\n");
    let entry = |key| format!("*3\r\n$1\r\n{key}\r\n*0\r\n*2\r\n:1\r\n+1\r\n");
    expect(&mut client, &format!("*2\r\n{}{}", entry("p"), entry("q")));
    // Labels are in the file, although the rows are at hand.
    send(&mut client, &["TS.QUERYINDEX all=y", "TS.QUERYINDEX all=x"]);
    expect(&mut client, "*0\r\n*2\r\n$1\r\np\r\n$1\r\nq\r\n");
    reader.stop(&harness);
    assert_eq!(harness.shared.db.parked_len(), 2, "none woke");
    assert_eq!(harness.shared.db.rows_waited_for(), 0);
    harness.stop();
}

#[test]
fn one_that_sends_no_more_is_answered_and_one_that_is_killed_costs_nothing() {
    let (harness, mut other) = parked(&["p", "q"]);
    let (mut half, mut killed) = (harness.client(), harness.client());
    let id = ask(&mut killed, "CLIENT ID");
    send_encoded(&mut half, &["TS.ADD p 2 2", "TS.GET p"]);
    half.shutdown(Shutdown::Write).unwrap();
    send_encoded(&mut killed, &["TS.ADD q 2 2"]);
    let waiting = || harness.shared.readers.counts().1;
    wait_for(|| waiting() == 2);
    let kill = format!("CLIENT KILL ID {}", id.trim_start_matches(':').trim());
    assert_eq!(ask(&mut other, &kill), ":1\r\n");
    wait_for(|| waiting() == 1);
    let reader = Reader::start(&harness);
    let mut replies = String::new();
    half.read_to_string(&mut replies).unwrap();
    assert_eq!(replies, ":2\r\n*2\r\n:2\r\n+2\r\n");
    assert_eq!(harness.shared.db.parked_len(), 1);
    reader.stop(&harness);
    harness.stop();
}

/// A command about some of the keys.
fn some_command(random: &SimRandom) -> String {
    let key = || format!("k{}", random.below(KEYS));
    let (one, two, at) = (key(), key(), random.below(1000));
    match random.below(22) {
        0..=5 => format!("TS.ADD {one} {at} {at}"),
        6 => format!("TS.ADD {one} {at} {at} LABELS all x"),
        7 => format!("TS.ADD {one} {at} {at} RETENTION 0 ON_DUPLICATE LAST"),
        8 => format!("TS.MADD {one} {at} 1 {two} {at} 2 {} {at} 3", key()),
        9 => format!("TS.INCRBY {one} 1 TIMESTAMP 1000"),
        10 => format!("TS.GET {one}"),
        11 => format!("TS.RANGE {one} - +"),
        12 => format!("TS.DEL {one} {at} {}", at + 50),
        13 => format!("DEL {one} {two}"),
        14 => format!("EXISTS {one} {two}"),
        15 => format!("RENAME {one} {two}"),
        16 => format!("COPY {one} {two} REPLACE"),
        17 => format!("TS.ALTER {one} LABELS all x two {two}"),
        18 => format!("TS.CREATE {one} LABELS all x"),
        19 => "TS.MGET FILTER all=x".to_owned(),
        20 => "TS.MRANGE - + FILTER all=x".to_owned(),
        _ => "DBSIZE".to_owned(),
    }
}

/// Commands, some of them in a transaction.
fn some_pipeline(random: &SimRandom) -> Vec<String> {
    let mut lines: Vec<String> = (0..random.below(12))
        .map(|_| some_command(random))
        .collect();
    if random.below(3) == 0 {
        let at = random.below(lines.len() as u64 + 1) as usize;
        // EXEC itself reads rows of series that a filter selects.
        let by_labels = |line: &&mut String| line.contains("FILTER");
        let within = lines[at..].iter_mut().filter(by_labels);
        within.for_each(|line| *line = "DBSIZE".to_owned());
        lines.insert(at, "MULTI".to_owned());
        lines.push("EXEC".to_owned());
    }
    lines.push("ECHO end".to_owned());
    lines
}

fn replies(client: &mut TcpStream, lines: &[String]) -> String {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    send_encoded(client, &lines);
    let (mut all, mut some) = (Vec::new(), [0; 4096]);
    while !all.ends_with(b"$3\r\nend\r\n") {
        let read = client.read(&mut some).unwrap();
        assert!(read > 0, "the connection ended");
        all.extend_from_slice(&some[..read]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn all_replies_are_as_if_no_series_were_parked() {
    let (mut parked, mut left) = (0, 0);
    for seed in 0..40 {
        let random = SimRandom::new(seed);
        let (parks, never) = (Harness::start(), Harness::start());
        let readers = [&parks, &never].map(Reader::start);
        let mut clients = [&parks, &never].map(|harness| [harness.client(), harness.client()]);
        for _ in 0..30 {
            let (lines, at) = (some_pipeline(&random), random.below(2) as usize);
            let [one, two] = &mut clients;
            let answered = [one, two].map(|clients| replies(&mut clients[at], &lines));
            assert_eq!(answered[0], answered[1], "seed {seed}: {lines:?}");
            if random.below(4) == 0 {
                park(&parks);
                parked += parks.shared.db.parked_len();
            }
        }
        left += parks
            .shared
            .readers
            .ended
            .load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(parks.shared.db.rows_waited_for(), 0, "seed {seed}");
        for (reader, harness) in readers.into_iter().zip([parks, never]) {
            reader.stop(&harness);
            harness.stop();
        }
    }
    assert!(parked > 500 && left > 300, "{parked} parked, {left} rounds");
}
