//! Options of a database beyond this machine: its log in Kafka, its files in an object store.

use super::kind::Kind;
use super::row::{Row, row};

/// The rows of this file.
pub(super) const ROWS: &[Row] = &[
    row(
        "log URL",
        "",
        Kind::Optional(|settings| &mut settings.cluster.log),
        "Keep the log in Kafka: kafka://HOST:PORT,HOST:PORT/NAME. The data directory is a cache \
         then, and may be lost. Needs --objects",
    ),
    row(
        "objects URL",
        "",
        Kind::Optional(|settings| &mut settings.cluster.objects),
        "Keep checkpoints of the files in an object store, such as s3://BUCKET/PATH or \
         file:///PATH. Needs --log",
    ),
    row(
        "kafka-tls on|off",
        "off",
        Kind::OnOff(|settings| &mut settings.cluster.kafka.tls),
        "Encrypt connections to Kafka; the next three options imply it",
    ),
    row(
        "kafka-ca-cert-file FILE",
        "",
        Kind::Path(|settings| &mut settings.cluster.kafka.cacert),
        "CA certificates in PEM for the brokers (default: the system's)",
    ),
    row(
        "kafka-cert-file FILE",
        "",
        Kind::Path(|settings| &mut settings.cluster.kafka.cert),
        "Certificate in PEM to show to brokers",
    ),
    row(
        "kafka-key-file FILE",
        "",
        Kind::Path(|settings| &mut settings.cluster.kafka.key),
        "Private key of that certificate",
    ),
    row(
        "kafka-user NAME",
        "",
        Kind::Optional(|settings| &mut settings.cluster.kafka.user),
        "User of Kafka. Its password is in --kafka-password-file or in the variable \
         LATEWOOD_KAFKA_PASSWORD",
    ),
    row(
        "kafka-password-file FILE",
        "",
        Kind::Path(|settings| &mut settings.cluster.kafka.password_file),
        "File with the password of that user",
    ),
    row(
        "kafka-sasl-mechanism NAME",
        "",
        Kind::Optional(|settings| &mut settings.cluster.kafka.mechanism),
        "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default: SCRAM-SHA-512)",
    ),
    row(
        "kafka-any-replication on|off",
        "off",
        Kind::OnOff(|settings| &mut settings.cluster.any_replication),
        "Accept a topic with fewer than three replicas or in-sync replicas: acknowledged writes \
         may be lost with a broker",
    ),
];
