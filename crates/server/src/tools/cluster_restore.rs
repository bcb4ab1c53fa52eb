//! `latewood cluster restore`: a local database of what a log in Kafka and its object store hold, or
//! of the object store alone.
//!
//! Tested by `tests/kafka/` with brokers.

use super::cluster::Restore;
use super::output::{say, tell};
use super::survey::describe;
use latewood_cluster::checkpoint::Objects;
use latewood_cluster::kafka::Partition;
use latewood_cluster::restore::{Kept, Remains, Restored, restore, restore_without_log};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_engine::io::Env;
use latewood_offsite::Place;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs `latewood cluster restore`.
pub(super) fn run(options: &Restore) -> Result<ExitCode, String> {
    if options.without_log {
        return run_without_log(options);
    }
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

/// Restores a checkpoint alone, and says what cannot be in it.
fn run_without_log(options: &Restore) -> Result<ExitCode, String> {
    let place = Place::parse(&options.objects).map_err(|error| error.to_string())?;
    let database = match options.log.name()? {
        Some(name) => name,
        None => only_database(&place)?,
    };
    let env = Env::real();
    let objects = Objects::new(env.clone(), &place, &database, 0);
    let objects = objects.map_err(|error| error.to_string())?;
    let remains = restore_without_log(
        (&objects, &env),
        options.checkpoint.as_deref(),
        &options.dir,
        &mut |_| {},
        &mut tell,
    );
    let remains = remains.map_err(|error| error.to_string())?;
    say(&sentence_of(options, &remains));
    let age_ms = env
        .clock
        .now_ms()
        .saturating_sub(remains.listing.made_at_ms);
    for notice in notices(&remains, age_ms / 1000) {
        say(&format!("notice: {notice}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn only_database(place: &Place) -> Result<String, String> {
    let found = Objects::databases(place).map_err(|error| error.to_string())?;
    let url = place.url();
    let mut names = found.into_iter();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(format!("{url} has no checkpoint of a database")),
        (Some(one), Some(other)) => Err(format!(
            "{url} has several databases, such as {one} and {other}: give --log kafka://HOST:PORT/NAME with the name of one; no broker is asked"
        )),
    }
}

fn sentence_of(options: &Restore, remains: &Remains) -> String {
    let Remains {
        listing, checked, ..
    } = remains;
    format!(
        "restored {} samples to {}: checkpoint {} of database {}, of {} files with {} bytes; every checksum was verified",
        checked.block_samples,
        options.dir.display(),
        listing.number,
        listing.cluster,
        listing.files.len(),
        listing.bytes()
    )
}

/// What a checkpoint that was saved `age_s` seconds ago cannot contain.
fn notices(remains: &Remains, age_s: i64) -> Vec<String> {
    let (whole, newest) = (remains.reach.whole.0, remains.reach.newest.0);
    let mut notices = vec![format!(
        "what was written after group {whole} of the log is not restored, though it was acknowledged: the checkpoint was saved {age_s} s ago"
    )];
    if newest > whole {
        notices.push(format!(
            "groups {} to {newest} were written while the checkpoint was saved: they are restored for some series and not for others",
            whole + 1
        ));
    }
    if !remains.later.is_empty() {
        notices.push(format!(
            "the object store has later checkpoints, which --checkpoint restores: {}",
            remains.later.join(", ")
        ));
    }
    notices
}
