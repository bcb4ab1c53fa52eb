//! Options that are given in vain.

use super::with_file;

#[test]
fn an_option_without_effect_is_refused() {
    let log = "log = \"kafka://b:1/n\"\nobjects = \"file:///o\"\n";
    let cluster = &format!("{log}cluster = \"on\"\n");
    let https = "https = \"127.0.0.1:1\"\n";
    for (text, with, missing) in [
        ("advertise = \"db:1\"", cluster.as_str(), "cluster on"),
        ("advertise-http = \"db:1\"", cluster, "cluster on"),
        ("read-listen = [\"127.0.0.1:1\"]", cluster, "cluster on"),
        ("tls-read-listen = [\"127.0.0.1:1\"]", cluster, "cluster on"),
        ("max-staleness = \"9s\"", cluster, "cluster on"),
        ("cluster = \"on\"", log, "log, the log in Kafka"),
        ("read-lease = \"on\"", log, "log, the log in Kafka"),
        ("reads = \"strict\"", log, "log, the log in Kafka"),
        ("cache-size = \"9gb\"", log, "log, the log in Kafka"),
        ("kafka-tls = \"on\"", log, "log, the log in Kafka"),
        ("kafka-user = \"me\"", log, "log, the log in Kafka"),
        (
            "kafka-any-replication = \"on\"",
            log,
            "log, the log in Kafka",
        ),
        ("tls-cert-file = \"/c\"", https, "a port that speaks TLS"),
        (
            "tls-protocols = \"TLSv1.3\"",
            https,
            "a port that speaks TLS",
        ),
    ] {
        let refused = with_file(text, &[]).unwrap_err();
        let name = text.split(' ').next().unwrap();
        let expected = format!("{name}: needs {missing}");
        assert!(refused.starts_with(&expected), "{refused}");
        assert!(with_file(&format!("{text}\n{with}"), &[]).is_ok(), "{text}");
    }
    // What is the default, or none, asks for nothing.
    for text in [
        "max-staleness = \"5s\"",
        "advertise = \"\"",
        "cluster = \"off\"",
    ] {
        assert!(with_file(text, &[]).is_ok(), "{text}");
    }
}
