//! `latewood cluster init`: makes what a database beyond one machine is kept in.

use super::output::say;
use clap::{Args, Subcommand};
use latewood_cluster::kafka::client::connect;
use latewood_cluster::kafka::options::Given;
use latewood_cluster::kafka::{Kafka, KafkaError};
use latewood_cluster::topic::{Replication, log_name, new_topic, require_safe};
use std::path::PathBuf;
use std::process::ExitCode;

/// What `latewood cluster` does.
#[derive(Subcommand, Debug)]
pub(crate) enum Cluster {
    /// Make the topic of a log in Kafka, with the settings that lose no data, or check the one
    /// that is there.
    Init(Init),
}

/// Options of `latewood cluster init`, named as those of `serve`.
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// kafka://HOST:PORT,HOST:PORT/NAME
    #[arg(long, value_name = "URL")]
    log: String,
    /// Number of tablets; more than one is not supported yet
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1))]
    tablets: u32,
    /// Make or accept a topic with one replica: acknowledged writes may be lost with a broker
    #[arg(long)]
    kafka_any_replication: bool,
    /// Encrypt connections
    #[arg(long)]
    kafka_tls: bool,
    /// Authorities in PEM that the certificates of the brokers may be of
    #[arg(long, value_name = "FILE")]
    kafka_ca_cert_file: Option<PathBuf>,
    /// Certificate in PEM to show to brokers
    #[arg(long, value_name = "FILE")]
    kafka_cert_file: Option<PathBuf>,
    /// Private key of that certificate
    #[arg(long, value_name = "FILE")]
    kafka_key_file: Option<PathBuf>,
    /// User; its password is in a file or in LATEWOOD_KAFKA_PASSWORD
    #[arg(long, value_name = "NAME")]
    kafka_user: Option<String>,
    /// File with the password of that user
    #[arg(long, value_name = "FILE")]
    kafka_password_file: Option<PathBuf>,
    /// PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; the last without it
    #[arg(long, value_name = "NAME")]
    kafka_sasl_mechanism: Option<String>,
}

/// Runs `latewood cluster`: 0, or 2 with the reason.
pub(crate) fn cluster(options: Cluster) -> ExitCode {
    let Cluster::Init(options) = options;
    match init(options) {
        Ok(done) => {
            say(&done);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("latewood: {reason}");
            ExitCode::from(2)
        }
    }
}

fn init(options: Init) -> Result<String, String> {
    let replication = match options.kafka_any_replication {
        true => Replication::Any,
        false => Replication::Durable,
    };
    let given = Given {
        tls: options.kafka_tls,
        cacert: options.kafka_ca_cert_file,
        cert: options.kafka_cert_file,
        key: options.kafka_key_file,
        mechanism: options.kafka_sasl_mechanism,
        user: options.kafka_user,
        password_file: options.kafka_password_file,
        ..Given::default()
    };
    let (address, kafka) = connect(&options.log, given)?;
    let name = log_name(&address.name);
    let is_there = match kafka.describe(&name) {
        Ok(_) => true,
        Err(KafkaError::NoSuchTopic(_)) => false,
        Err(error) => return Err(error.to_string()),
    };
    if !is_there {
        let topic = new_topic(&address.name, options.tablets, replication);
        let made = kafka.create(&topic);
        made.map_err(|error| format!("cannot create topic {name}: {error}"))?;
    }
    let topic = kafka.describe(&name).map_err(|error| error.to_string())?;
    require_safe(&topic, &name, replication)?;
    let (tablets, wanted) = (topic.replicas.len(), options.tablets as usize);
    if tablets != wanted {
        return Err(format!(
            "topic {name} has {tablets} partitions, not {wanted}: the number of tablets cannot be changed"
        ));
    }
    Ok(match is_there {
        true => format!("topic {name} is there and its settings are safe"),
        false => format!("created topic {name}"),
    })
}
