//! `latewood cluster init`: the topic of a log, and a log on top of a database of one machine.
//!
//! Tested by `tests/kafka/` with brokers; what is begun, by `tests/tablet/begin.rs` of
//! `latewood_cluster`.

use super::cluster::Init;
use latewood_cluster::begin::{Begun, New, begin};
use latewood_cluster::checkpoint::Objects;
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::client::Client;
use latewood_cluster::kafka::{Kafka, KafkaError, Partition};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_cluster::topic::{new_topic, require_safe};
use latewood_engine::io::Env;
use latewood_offsite::Place;
use std::path::Path;
use std::sync::Arc;

/// Runs `latewood cluster init`. What it says.
pub(super) fn run(options: &Init) -> Result<String, String> {
    let replication = options.log.replication();
    let (cluster, kafka, name) = options.log.connect()?;
    let cannot_look = |error| format!("cannot look at topic {name}: {error}");
    let is_there = match kafka.describe(&name) {
        Ok(_) => true,
        Err(KafkaError::NoSuchTopic(_)) => false,
        Err(error) => return Err(cannot_look(error)),
    };
    if !is_there {
        let made = kafka.create(&new_topic(&cluster, options.tablets, replication));
        made.map_err(|error| not_made(&name, &error))?;
    }
    let topic = kafka.describe(&name).map_err(cannot_look)?;
    require_safe(&topic, &name, replication)?;
    let (tablets, wanted) = (topic.replicas.len(), options.tablets as usize);
    if tablets != wanted {
        return Err(format!(
            "topic {name} has {tablets} partitions, not {wanted}: the number of tablets cannot be changed"
        ));
    }
    let done = if is_there {
        format!("topic {name} is there and its settings are safe")
    } else {
        format!("created topic {name}")
    };
    match (&options.from, &options.objects) {
        (Some(dir), Some(objects)) => {
            let begun = begin_from(dir, objects, (&cluster, &kafka, name))?;
            Ok(format!("{done}\n{begun}"))
        }
        _ => Ok(done),
    }
}

fn not_made(name: &str, error: &KafkaError) -> String {
    let what_now = match error {
        KafkaError::Unknown(_) => ". It may have been made: run the command again",
        KafkaError::Unavailable(_) => ". Nothing was made: run the command again",
        _ => "",
    };
    format!("cannot create topic {name}: {error}{what_now}")
}

/// Begins the log, of the cluster and topic of these names, on top of the database in `dir`.
fn begin_from(
    dir: &Path,
    objects: &str,
    (cluster, kafka, topic): (&str, &Client, String),
) -> Result<String, String> {
    let env = Env::real();
    let place = Place::parse(objects).map_err(|error| error.to_string())?;
    let objects = Objects::new(env.clone(), &place, cluster, 0);
    let [high, low] = [(); 2].map(|()| u128::from(env.random.next_u64()));
    let new = New {
        kafka,
        partition: Partition { topic, number: 0 },
        objects: objects.map_err(|error| error.to_string())?,
        claimant: Claimant {
            nonce: (high << 64 | low).to_le_bytes(),
            node: 0,
            address: "latewood cluster init".to_owned(),
        },
        env,
        retry: Retry::new(Arc::new(Cancel::default())),
    };
    let Begun { checkpoint, next } = begin(&new, dir).map_err(|error| error.to_string())?;
    let listing = &checkpoint.listing;
    let (files, bytes) = (listing.files.len(), listing.bytes());
    Ok(format!(
        "the log begins behind group {} of {}: {files} files with {bytes} bytes are in the object store",
        next.0 - 1,
        dir.display()
    ))
}
