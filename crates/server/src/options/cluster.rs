//! Options of a database beyond this machine: its log in Kafka, its files in an object store.

use super::kind::{Kind, word};
use super::range::CACHE_SIZE;
use super::row::{Need, Row, row};
use crate::state::Reads;
use latewood_engine::{Error, ErrorKind};

/// Only a database whose log is in Kafka uses it.
pub(super) const NEEDS_LOG: Need = |settings| {
    settings
        .cluster
        .log
        .is_none()
        .then_some("log, the log in Kafka")
};

pub(super) const ROWS: &[Row] = &[
    row("log URL", "")
        .is(Kind::Optional(|of| &mut of.cluster.log))
        .help(
            "Keep the log in Kafka: kafka://HOST:PORT,HOST:PORT/NAME. The data directory is a \
             cache then, and may be lost. Needs --objects",
        ),
    row("objects URL", "")
        .is(Kind::Optional(|of| &mut of.cluster.objects))
        .help(
            "Keep checkpoints of the files in an object store, such as s3://BUCKET/PATH or \
             file:///PATH. Needs --log",
        ),
    row("cache-size BYTES", "0")
        .is(Kind::Bytes(CACHE_SIZE, |of| &mut of.cluster.cache_bytes_max))
        .help(
            "With --log: size of the blocks in the data directory that a checkpoint has as well, such \
             as 100gb: above it, those that were read least recently are deleted there, and \
             downloaded when they are read; 0 is unlimited",
        )
        .needs(NEEDS_LOG)
        .live(|shared, settings| {
            match shared.remote.get() {
                Some(remote) => remote.cache.set_bytes_max(settings.cluster.cache_bytes_max),
                None if shared.node.get().is_some() => {
                    let text = "only the owner of the log can change it while it runs";
                    return Err(Error::new(ErrorKind::Invalid, text));
                }
                None => {}
            }
            Ok(())
        }),
    row("kafka-tls on|off", "off")
        .is(Kind::OnOff(|of| &mut of.cluster.kafka.tls))
        .help("Encrypt connections to Kafka; the next three options imply it")
        .needs(NEEDS_LOG),
    row("kafka-ca-cert-file FILE", "")
        .is(Kind::Path(|of| &mut of.cluster.kafka.cacert))
        .help("CA certificates in PEM for the brokers (default: the system's)")
        .needs(NEEDS_LOG),
    row("kafka-cert-file FILE", "")
        .is(Kind::Path(|of| &mut of.cluster.kafka.cert))
        .help("Certificate in PEM to show to brokers")
        .needs(NEEDS_LOG),
    row("kafka-key-file FILE", "")
        .is(Kind::Path(|of| &mut of.cluster.kafka.key))
        .help("Private key of that certificate")
        .needs(NEEDS_LOG),
    row("kafka-user NAME", "")
        .is(Kind::Optional(|of| &mut of.cluster.kafka.user))
        .help(
            "User of Kafka. Its password is in --kafka-password-file or in the variable \
             LATEWOOD_KAFKA_PASSWORD",
        )
        .needs(NEEDS_LOG),
    row("kafka-password-file FILE", "")
        .is(Kind::Path(|of| &mut of.cluster.kafka.password_file))
        .help("File with the password of that user")
        .needs(NEEDS_LOG),
    row("kafka-sasl-mechanism NAME", "")
        .is(Kind::Optional(|of| &mut of.cluster.kafka.mechanism))
        .help("PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default: SCRAM-SHA-512)")
        .needs(NEEDS_LOG),
    row("kafka-any-replication on|off", "off")
        .is(Kind::OnOff(|of| &mut of.cluster.any_replication))
        .help(
            "Accept a topic with fewer than three replicas or in-sync replicas: acknowledged \
             writes may be lost with a broker",
        )
        .needs(NEEDS_LOG),
    row("read-lease on|off", "off")
        .is(Kind::OnOff(|of| &mut of.cluster.read_lease))
        .help(
            "With --log: answer reads only for 1.5 s after the newest record that is proven to be \
             in the log, so that a server that was deposed answers nothing older. Reads wait up to \
             2 s for a lease, then fail with TRYAGAIN (HTTP 503); they also fail while Kafka is away",
        )
        .needs(NEEDS_LOG),
    row("reads proven|strict|unproven", "proven")
        .is(word!(
            "reads",
            Reads::of_name,
            cluster.reads,
            "proven, strict or unproven"
        ))
        .help(
            "With --read-lease or --cluster: what the owner of the log has proven before it answers a read, \
             beside the lease. proven: all that it shows is in the log; strict: the server owned the \
             log after the read arrived, too, whatever clocks say, for which each reply waits for Kafka; \
             unproven: nothing",
        )
        .needs(NEEDS_LOG)
        .live(|shared, settings| {
            shared.runtime.set_reads(settings.cluster.reads);
            Ok(())
        })
        .checked(|settings| settings.cluster.check_reads()),
];
