//! The file, the flags and the defaults.

mod effect;
mod every;

use super::{Given, all, resolve};
use crate::state::{Http, LinePort, Settings};
use clap::{Args, Command, FromArgMatches};
use latewood_engine::{Defaults, Durability};
use latewood_tls::AuthClients;
use std::ffi::OsString;
use std::io::Write;

fn with_file(text: &str, flags: &[&str]) -> Result<Settings, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut given = given(flags);
    given.config = Some(file.path().to_owned());
    resolve(given, |_| None)
}

fn given(flags: &[&str]) -> Given {
    let command = Given::augment_args(Command::new("serve"));
    let words = ["serve"].iter().chain(flags);
    Given::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let text = "maxclients = 5\ntimeout = 9\n";
    let settings = with_file(text, &["--maxclients", "7"]).unwrap();
    assert_eq!(settings.connections_max, 7);
    assert_eq!(settings.idle_timeout_s, 9);
    assert_eq!(settings.sync_interval_ms, 1000);
}

#[test]
fn every_option_has_an_environment_variable() {
    let variables = |name: &str| match name {
        "LATEWOOD_LISTEN" => Some(OsString::from("127.0.0.1:1,[::1]:2")),
        "LATEWOOD_LISTEN_LINES" => Some("akumuli=[::1]:1,tls influx-udp=[::1]:2".into()),
        "LATEWOOD_TS_NUM_THREADS" => Some("3".into()),
        "LATEWOOD_STRICT" => Some("on".into()),
        _ => None,
    };
    let settings = resolve(given(&["--ts-num-threads", "4"]), variables).unwrap();
    assert_eq!(settings.listen, ["127.0.0.1:1", "[::1]:2"]);
    let lines = settings.senders.lines.iter().map(LinePort::label);
    assert_eq!(lines.collect::<Vec<_>>(), ["akumuli-tls", "influx-udp"]);
    assert!(settings.strict && settings.query_threads == 4);
    assert!(resolve(given(&["--strict"]), |_| None).unwrap().strict);
}

/// A default that the table shows is the one that holds.
#[test]
fn names_are_unique_and_defaults_are_values() {
    let mut names: Vec<_> = all().map(|row| row.name()).collect();
    let options = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), options);
    let settings = resolve(Given::default(), |_| None).unwrap();
    assert_eq!(settings.log_bytes_max, 1 << 30);
    assert_eq!(settings.senders.time_limits.future_ms, 86_400_000);
    assert_eq!(settings.defaults, Defaults::default());
    assert!(settings.wal && settings.protected_mode && !settings.strict);
}

#[test]
fn with_a_log_in_kafka_a_reply_waits_for_it_unless_told_otherwise() {
    let log = "log = \"kafka://b:1/n\"\nobjects = \"file:///o\"";
    let settings = with_file(log, &[]).unwrap();
    assert_eq!(settings.durability, Durability::Sync);
    let settings = with_file(&format!("durability = \"interval\"\n{log}"), &[]).unwrap();
    assert_eq!(settings.durability, Durability::Interval);
    assert_eq!(with_file("", &[]).unwrap().durability, Durability::Interval);
}

#[test]
fn what_is_missing_in_an_address_is_told() {
    for (text, told) in [
        (
            "listen = [\"127.0.0.1\"]",
            "listen: \"127.0.0.1\": the port is missing",
        ),
        (
            "read-listen = [\"tls://db:1\"]",
            "read-listen: \"tls://db:1\": tls:// is not supported here: expected db:1",
        ),
        (
            "tls-listen = [\"::1\"]",
            "the port is missing: expected [::1]:PORT",
        ),
        (
            "http = \"8086\"",
            "the address is missing: expected ADDR:8086",
        ),
        (
            "https = \"localhost\"",
            "the port is missing: expected localhost:PORT",
        ),
        (
            "listen-lines = [\"opentsdb=::\"]",
            "the port is missing: expected [::]:PORT",
        ),
        (
            "http = \"on\"",
            "http: \"on\" is not an address: expected ADDR:PORT; it takes an address or off",
        ),
    ] {
        let error = with_file(text, &[]).unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn switches_are_words_or_booleans() {
    for (text, wal, strict) in [
        ("wal = false\nstrict = true", false, true),
        ("wal = true\nstrict = false", true, false),
        ("wal = \"off\"\nstrict = \"on\"", false, true),
    ] {
        let settings = with_file(text, &[]).unwrap();
        assert_eq!((settings.wal, settings.strict), (wal, strict), "{text}");
    }
}

#[test]
fn words_that_are_switches_can_be_booleans() {
    let text = "http = false\ntls-auth-clients = true\ntls-auth-clients-user = false\n\
        tls-listen = [\"127.0.0.1:0\"]";
    let settings = with_file(text, &[]).unwrap();
    assert_eq!(settings.senders.http, Http::Off);
    assert_eq!(settings.tls.auth_clients, Some(AuthClients::Yes));
    assert!(!settings.tls.maps_users);
    let error = with_file("http = true", &[]).unwrap_err();
    let told = "http = true: expected an address or off, in quotes";
    assert!(error.contains(told), "{error}");
}

#[test]
fn a_value_is_refused_with_its_source_and_what_is_taken_once() {
    for (flags, told) in [
        (
            &["--wal", "maybe"][..],
            "wal: \"maybe\" is not supported: expected on or off",
        ),
        (
            &["--tls-auth-clients", "maybe"],
            "tls-auth-clients: \"maybe\" is not supported: expected yes, no or optional",
        ),
        (&["--dir", ""], "dir: the path is empty"),
        (
            &["--otlp-translation", "x"],
            "otlp-translation: Invalid translation strategy: x; it takes NoTranslation, \
             UnderscoreEscapingWithSuffixes, UnderscoreEscapingWithoutSuffixes or \
             NoUTF8EscapingWithSuffixes",
        ),
        (
            &["--ts-compaction-policy", "max:1m:0;avg:1x:1"],
            "ts-compaction-policy: Invalid compaction policy: max:1m:0;avg:1x:1: \"avg:1x:1\" has a \
             bucket that is not a time above 0, such as 10s; it takes \
             aggregator:bucket:retention[:align], joined by ;",
        ),
        (
            &["--influx-db-label", "__name__"],
            "influx-db-label: __name__ is the metric of every series; it takes a label name other \
             than __name__",
        ),
        (
            &["--http-hosts", "a,b c"],
            "http-hosts: \"b c\" is not a name: expected the name or address of a host, without a port",
        ),
    ] {
        let refused = resolve(given(flags), |_| None);
        assert_eq!(refused, Err(told.to_owned()));
    }
    for (flag, told) in [
        ("--max-series", "max-series: -1 is out of range: 0 "),
        (
            "--future-limit",
            "future-limit: \"-1\" is not a length of time",
        ),
        ("--memory", "memory: \"-1\": "),
        ("--threads", "threads: -1 is out of range: 0 to 1024"),
    ] {
        let error = resolve(given(&[flag, "-1"]), |_| None).unwrap_err();
        assert!(error.starts_with(told), "{error}");
    }
    let variable = |name: &str| (name == "LATEWOOD_MEMORY").then(|| OsString::from("x"));
    let error = resolve(Given::default(), variable).unwrap_err();
    assert!(error.starts_with("LATEWOOD_MEMORY: \"x\": "), "{error}");
    let flag = given(&["--memory", "y"]);
    let error = resolve(flag, variable).unwrap_err();
    assert!(error.starts_with("memory: \"y\": "), "{error}");
}

#[test]
fn an_empty_address_serves_nowhere() {
    let text = "http = \"\"\nhttps = \"\"\nlisten-lines = [\"\"]\nlisten = [\"\"]";
    let settings = with_file(text, &[]).unwrap();
    assert_eq!(settings.senders.http, Http::Off);
    assert_eq!(settings.senders.https, None);
    assert_eq!(settings.senders.lines, []);
    assert_eq!(settings.listen, [""; 0]);
}

#[test]
fn unknown_names_and_bad_values_are_refused() {
    for text in [
        "mxclients = 5",
        "config = \"x\"",
        "durability = \"maybe\"",
        "reads = \"stale\"",
        "notify-keyspace-events = \"KEq\"",
        "ts-encoding = \"zip\"",
        "ts-duplicate-policy = \"newest\"",
        "ts-chunk-size-bytes = 49",
        "ts-compaction-policy = \"avg:1:1\"",
        "ts-ignore-max-val-diff = -1.0",
        "memory = \"much\"",
        "retention = \"long\"",
        "disk-budget = 1000",
        "memory = -1",
        "memory = 1",
        "flush-age = 0",
        "retention = 1",
        "disk-budget = 1",
        "sync-interval = 0",
        "maxclients = 0",
        "max-series = 4294967295",
        "max-query-series = 4294967295",
        "timeout = 99999999999",
        "log-max = \"1kb\"",
        "threads = 100000",
        "ts-num-threads = 0",
        "ts-num-threads = 17",
        "sender-duplicate-policy = \"newest\"",
        "future-limit = 1",
        "listen-lines = \"opentsdb=127.0.0.1:4242\"",
        "listen-lines = [\"opentsdb=127.0.0.1\"]",
        "listen-lines = [\"influx-tcp=127.0.0.1:8094,precision=day\"]",
        "redis-past-limit = 1",
        "otlp-translation = \"none\"",
    ] {
        assert!(with_file(text, &[]).is_err(), "{text} was taken");
    }
}
