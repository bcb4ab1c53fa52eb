//! `latewood cluster restore`: a local database of what a log in Kafka and its object store hold.
//!
//! Tested by `tests/kafka/` with brokers.

use super::cluster::Restore;
use super::output::{say, tell};
use super::survey::describe;
use latewood_cluster::checkpoint::Objects;
use latewood_cluster::kafka::Partition;
use latewood_cluster::restore::{Kept, Restored, restore};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_engine::io::Env;
use latewood_offsite::Place;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs `latewood cluster restore`.
pub(super) fn run(options: &Restore) -> Result<ExitCode, String> {
    let (cluster, kafka, topic) = options.log.connect()?;
    let place = Place::parse(&options.objects).map_err(|error| error.to_string())?;
    let tablets = describe(&kafka, &topic)?.replicas.len();
    if tablets != 1 {
        return Err(format!(
            "topic {topic} has {tablets} partitions: more than one tablet is not supported"
        ));
    }
    let env = Env::real();
    let objects = Objects::new(env.clone(), &place, &cluster, 0);
    let kept = Kept {
        kafka: Arc::new(kafka),
        partition: Partition { topic, number: 0 },
        objects: objects.map_err(|error| error.to_string())?,
        env,
        retry: Retry::new(Arc::new(Cancel::default())),
    };
    let restored = restore(&kept, &options.dir, &mut |_| {}, &mut tell);
    let restored = restored.map_err(|error| error.to_string())?;
    say(&sentence(options, &restored));
    Ok(ExitCode::SUCCESS)
}

fn sentence(options: &Restore, restored: &Restored) -> String {
    let Restored {
        log, end, checked, ..
    } = restored;
    let checkpoint = match restored.checkpoint {
        None => "no checkpoint".to_owned(),
        Some((number, _)) => {
            let (files, bytes) = restored.files;
            format!("checkpoint {number} of {files} files with {bytes} bytes")
        }
    };
    format!(
        "restored {} samples in blocks and {} more in the log to {}: {checkpoint}, and {} groups of {} bytes behind it; \
         up to group {}, before offset {end}; every checksum was verified",
        checked.block_samples,
        checked.unstored_samples,
        options.dir.display(),
        log.groups,
        log.bytes,
        log.last.0
    )
}
