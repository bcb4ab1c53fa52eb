//! The file, the flags and the defaults.

mod effect;

use super::{Given, all, resolve};
use crate::base::time_limits::TimeLimits;
use crate::messaging::Notify;
use crate::state::{
    Cluster, Http, LinePort, LineProtocol, LogFormat, LogLevel, Nodes, Promql, Reads, Rules,
    Senders, Settings,
};
use clap::{Args, Command, FromArgMatches};
use latewood_cluster::kafka;
use latewood_engine::{Defaults, Durability};
use latewood_model::{CompactionPolicy, DuplicatePolicy, Encoding, Ignore, SeriesOptions};
use latewood_tls::{AuthClients, Protocols, ServerOptions};
use latewood_wire::influx::Precision;
use latewood_wire::otlp::{Naming, Translation};
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

const EVERY_OPTION: &str = r#"
            dir = "/d"
            listen = ["127.0.0.1:1", "[::1]:2"]
            read-listen = ["127.0.0.1:4"]
            tls-listen = ["127.0.0.1:3"]
            tls-read-listen = ["127.0.0.1:5"]
            https = "127.0.0.1:8443"
            tls-cert-file = "/cert"
            tls-key-file = "/key"
            tls-ca-cert-file = "/ca"
            tls-auth-clients = "optional"
            tls-auth-clients-user = "CN"
            tls-protocols = "TLSv1.3"
            unixsocket = "/s"
            requirepass = "p"
            aclfile = "/users.acl"
            user = ["a on +@read ~*"]
            protected-mode = "off"
            durability = "sync"
            sync-interval = 5
            wal = "off"
            strict = "on"
            memory = "64mb"
            retention = "90d"
            disk-budget = "10gb"
            flush-age = 60
            log-max = 4194304
            threads = 3
            maxclients = 4
            max-series = 7
            max-query-series = 8
            timeout = 6
            log-level = "warn"
            log-format = "json"
            notify-keyspace-events = "KEA"
            ts-duplicate-policy = "last"
            ts-encoding = "uncompressed"
            ts-chunk-size-bytes = 128
            ts-retention-policy = 10
            ts-ignore-max-time-diff = 11
            ts-ignore-max-val-diff = 1.5
            ts-num-threads = 2
            ts-compaction-policy = "avg:1m:2s"
            ts-rule-backfill = true
            ts-chained-rules = false
            sender-duplicate-policy = "max"
            future-limit = "1m"
            listen-lines = ["opentsdb=127.0.0.1:4242", "influx-tcp=[::1]:8094,tls,precision=ms,user=u"]
            past-limit = "1h"
            redis-future-limit = "2d"
            redis-past-limit = "30d"
            otlp-promote = ["host.name", "os.type"]
            otlp-translation = "NoUTF8EscapingWithSuffixes"
            otlp-scope-labels = true
            http = "off"
            http-hosts = ["db.example.org"]
            console = false
            influx-db-label = "db"
            promql-lookback = "1m"
            promql-timeout = "30s"
            promql-max-concurrency = 9
            promql-max-samples = 10
            promql-max-memory = "8mb"
            promql-delayed-name-removal = "on"
            log = "kafka://b:1/n"
            objects = "file:///o"
            cache-size = "2gb"
            kafka-tls = true
            kafka-ca-cert-file = "/kca"
            kafka-cert-file = "/kcert"
            kafka-key-file = "/kkey"
            kafka-user = "u"
            kafka-password-file = "/kpassword"
            kafka-sasl-mechanism = "PLAIN"
            kafka-any-replication = true
            read-lease = true
            reads = "strict"
            cluster = true
            max-staleness = "3s"
            rules = ["/r/*.yml", "/r.yml"]
            evaluation-interval = "30s"
            rule-query-offset = "1s"
            external-labels = ["site=a", "zone=b"]
            external-url = "http://db-1"
            max-rules = 3
            max-rule-series = 4
            alertmanager = ["http://u:p@am:9093"]
            alert-resend-delay = "2s"
            advertise = "db-1:6379"
            advertise-http = "https://db-1:443"
        "#;

fn every_option_of_tls() -> ServerOptions {
    ServerOptions {
        cert_file: Some("/cert".into()),
        key_file: Some("/key".into()),
        ca_cert_file: Some("/ca".into()),
        auth_clients: Some(AuthClients::Optional),
        protocols: Protocols {
            tls12: false,
            tls13: true,
        },
        maps_users: true,
    }
}

fn every_line_port() -> Vec<LinePort> {
    let opentsdb = LinePort {
        protocol: LineProtocol::OpenTsdb,
        address: "127.0.0.1:4242".into(),
        is_tls: false,
        precision: Precision::Nanoseconds,
        user: None,
    };
    let influx = LinePort {
        protocol: LineProtocol::InfluxTcp,
        address: "[::1]:8094".into(),
        is_tls: true,
        precision: Precision::Milliseconds,
        user: Some("u".into()),
    };
    vec![opentsdb, influx]
}

fn every_option_of_promql() -> Promql {
    Promql {
        lookback_ms: 60_000,
        timeout_ms: 30_000,
        queries_max: 9,
        samples_max: 10,
        memory_bytes: 8 << 20,
        delays_name_removal: true,
    }
}

fn every_option_of_rules() -> Rules {
    Rules {
        files: vec!["/r/*.yml".into(), "/r.yml".into()],
        interval_ms: 30_000,
        query_offset_ms: 1_000,
        external_labels: vec!["site=a".into(), "zone=b".into()],
        external_url: "http://db-1".into(),
        rules_max: 3,
        series_max: 4,
        alertmanagers: vec!["http://u:p@am:9093".into()],
        resend_delay_ms: 2_000,
    }
}

fn every_option_of_cluster() -> Cluster {
    Cluster {
        log: Some("kafka://b:1/n".into()),
        objects: Some("file:///o".into()),
        cache_bytes_max: 2 << 30,
        kafka: kafka::options::Given {
            tls: true,
            cacert: Some("/kca".into()),
            cert: Some("/kcert".into()),
            key: Some("/kkey".into()),
            mechanism: Some("PLAIN".into()),
            user: Some("u".into()),
            password_file: Some("/kpassword".into()),
            ..kafka::options::Given::default()
        },
        any_replication: true,
        read_lease: true,
        reads: Reads::Strict,
        nodes: Nodes {
            is_on: true,
            staleness_max_ms: 3_000,
            redis: Some("db-1:6379".into()),
            http: Some("https://db-1:443".into()),
        },
    }
}

fn every_option_of_senders() -> Senders {
    Senders {
        http: Http::Off,
        https: Some("127.0.0.1:8443".into()),
        http_hosts: vec!["db.example.org".into()],
        console: false,
        influx_db_label: Some("db".into()),
        duplicate_policy: DuplicatePolicy::Max,
        time_limits: TimeLimits {
            future_ms: 60_000,
            past_ms: 3_600_000,
        },
        otlp: Naming {
            translation: Translation::NoUtf8EscapingWithSuffixes,
            promoted: vec!["host.name".into(), "os.type".into()],
            scope_labels: true,
        },
        lines: every_line_port(),
    }
}

#[test]
fn every_option_can_stand_in_the_file() {
    let settings = with_file(EVERY_OPTION, &[]).unwrap();
    let expected = Settings {
        dir: "/d".into(),
        listen: vec!["127.0.0.1:1".into(), "[::1]:2".into()],
        read_listen: vec!["127.0.0.1:4".to_owned()],
        tls_listen: vec!["127.0.0.1:3".into()],
        tls_read_listen: vec!["127.0.0.1:5".to_owned()],
        tls: every_option_of_tls(),
        unixsocket: Some("/s".into()),
        requirepass: "p".into(),
        aclfile: Some("/users.acl".into()),
        users: vec!["a on +@read ~*".into()],
        protected_mode: false,
        durability: Durability::Sync,
        sync_interval_ms: 5,
        wal: false,
        strict: true,
        memory_bytes: 64 << 20,
        retention_ms: 90 * 86_400_000,
        disk_budget_bytes: 10 << 30,
        flush_age_s: 60,
        series_max: 7,
        query_series_max: 8,
        log_bytes_max: 4 << 20,
        threads: 3,
        query_threads: 2,
        connections_max: 4,
        idle_timeout_s: 6,
        notify: Notify::parse(b"KEA").unwrap(),
        log_level: LogLevel::Warn,
        log_format: LogFormat::Json,
        defaults: Defaults {
            duplicate_policy: DuplicatePolicy::Last,
            series: SeriesOptions {
                retention_ms: 10,
                chunk_size_bytes: 128,
                encoding: Encoding::Uncompressed,
                ignore: Ignore {
                    max_time_diff_ms: 11,
                    max_value_diff: 1.5,
                },
                ..SeriesOptions::default()
            },
            compactions: CompactionPolicy::parse("avg:1m:2s").unwrap(),
            rule_backfill: true,
            chained_rules: false,
        },
        time_limits: TimeLimits {
            future_ms: 2 * 86_400_000,
            past_ms: 30 * 86_400_000,
        },
        senders: every_option_of_senders(),
        promql: every_option_of_promql(),
        rules: every_option_of_rules(),
        cluster: every_option_of_cluster(),
    };
    assert_eq!(settings, expected);
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
