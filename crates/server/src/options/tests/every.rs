//! Every option in the file.

use super::with_file;
use crate::base::time_limits::TimeLimits;
use crate::messaging::Notify;
use crate::state::{
    Cluster, DumpFormat, Http, LinePort, LineProtocol, LogFormat, LogLevel, Nodes, Promql, Reads,
    Rules, Senders, Settings,
};
use latewood_cluster::kafka;
use latewood_engine::{Defaults, DropEmpty, Durability};
use latewood_model::{
    CompactionPolicy, Compatibility, DuplicatePolicy, Encoding, Ignore, SeriesOptions,
};
use latewood_tls::{AuthClients, Protocols, ServerOptions};
use latewood_wire::influx::Precision;
use latewood_wire::otlp::{Naming, Translation};

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
            drop-empty-series = "all"
            park-after = "20m"
            hz = 25
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
            ts-compatibility = "1.12"
            dump-format = "redis"
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
            self-metrics = "15s"
            self-retention = "7d"
            lateness-label = "site"
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
            rules-correction-cpu = 50
            rules-correct-back = "90d"
            rules-catch-up = "2h"
            rules-retention = "365d"
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
        correction_cpu_percent: 50,
        correct_back_ms: 90 * 24 * 3_600_000,
        catch_up_ms: 2 * 3_600_000,
        retention_ms: 365 * 24 * 3_600_000,
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
        self_metrics_ms: 15_000,
        lateness_label: "site".to_owned(),
        self_retention_ms: 7 * 86_400_000,
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
        drop_empty: DropEmpty::All,
        park_after_ms: 20 * 60_000,
        expiry_hz: 25,
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
        compatibility: Compatibility::V1_12,
        dump_format: DumpFormat::Redis,
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
