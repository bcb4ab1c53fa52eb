//! `latewood cluster check|inspect`: what a log in Kafka and its object store hold.
//!
//! Tested by `tests/kafka/` with brokers.

use super::cluster::{Check, Inspect};
use super::output::say;
use latewood_cluster::checkpoint::{CheckpointError, ListingRef, Objects};
use latewood_cluster::envelope::Body;
use latewood_cluster::kafka::client::Client;
use latewood_cluster::kafka::{Partition, Topic};
use latewood_cluster::scan::Verdict;
use latewood_cluster::survey::{Error, Survey, survey};
use latewood_cluster::topic::{self, unsafe_settings};
use latewood_engine::io::Env;
use latewood_offsite::Place;
use std::process::ExitCode;

/// Exit status where damage was found.
const DAMAGED: u8 = 1;
/// Malformed records that are named; all are counted.
const NAMED_MAX: usize = 10;

pub(super) fn describe(kafka: &Client, name: &str) -> Result<Topic, String> {
    topic::find(kafka, name).map_err(|error| format!("cannot use topic {name}: {error}"))
}

/// Runs `latewood cluster check`.
pub(super) fn check(options: &Check) -> Result<ExitCode, String> {
    let (cluster, kafka, topic) = options.log.connect()?;
    let place = Place::parse(&options.objects).map_err(|error| error.to_string())?;
    let described = describe(&kafka, &topic)?;
    let mut damage = unsafe_settings(&described, options.log.replication());
    for number in (0..).take(described.replicas.len()) {
        let objects = Objects::new(Env::real(), &place, &cluster, number);
        let objects = objects.map_err(|error| error.to_string())?;
        let topic = topic.clone();
        damage.extend(check_tablet(
            &kafka,
            &Partition { topic, number },
            &objects,
        )?);
    }
    for what in &damage {
        say(&format!("damage: {what}"));
    }
    Ok(match damage.len() {
        0 => {
            say("no damage");
            ExitCode::SUCCESS
        }
        damaged => {
            say(&format!("{damaged} damaged"));
            ExitCode::from(DAMAGED)
        }
    })
}

/// What is damaged. A checkpoint that was replaced meanwhile may have lost its objects: the one
/// after it is verified then.
fn check_tablet(kafka: &Client, log: &Partition, objects: &Objects) -> Result<Vec<String>, String> {
    let mut before = None;
    loop {
        let mut damage = Vec::new();
        let found = survey(kafka, log, &mut |offset, bytes, verdict| {
            if *verdict == Verdict::Malformed && damage.len() < NAMED_MAX {
                damage.push(format!(
                    "the record at offset {offset}, of {bytes} bytes, is malformed and does not count"
                ));
            }
        });
        let found = match found {
            Err(Error::Stopped(stop)) => return Ok(vec![stop.to_string()]),
            found => found.map_err(|error| error.to_string())?,
        };
        let (line, findings) = verify(&found, objects)?;
        let newest = found.checkpoint.as_ref().map(|(offset, _)| *offset);
        if findings.is_empty() || before == Some(newest) {
            say(&log_line(log, &found));
            say(&owner_line(&found));
            say(&line);
            damage.extend(findings);
            return Ok(damage);
        }
        before = Some(newest);
    }
}

/// A line about the newest checkpoint, and what is damaged of it.
fn verify(found: &Survey, objects: &Objects) -> Result<(String, Vec<String>), String> {
    let latest = objects.latest().map_err(|error| error.to_string())?;
    let newest = found.checkpoint.as_ref().map(|(offset, _)| *offset);
    let mut damage = Vec::new();
    if let Some(latest) = latest.filter(|latest| newest < Some(latest.offset)) {
        damage.push(format!(
            "the log has not the record at offset {} that names the checkpoint in the object store",
            latest.offset
        ));
    }
    let Some((offset, named)) = &found.checkpoint else {
        return Ok(("no checkpoint".to_owned(), damage));
    };
    match objects.verify(&ListingRef::from(named)) {
        Ok((checkpoint, findings)) => {
            damage.extend(findings);
            let listing = &checkpoint.listing;
            let (files, bytes) = (listing.files.len(), listing.bytes());
            let line = format!(
                "checkpoint {} at offset {offset}: {files} objects with {bytes} bytes; the log is needed from offset {} on",
                listing.number, named.begin
            );
            Ok((line, damage))
        }
        Err(
            error @ (CheckpointError::NotHere { .. }
            | CheckpointError::Store(latewood_offsite::Error::Damaged { .. })),
        ) => {
            damage.push(error.to_string());
            Ok((format!("checkpoint at offset {offset}"), damage))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn log_line(log: &Partition, found: &Survey) -> String {
    let Partition { topic, number } = log;
    let (begin, end) = found.bounds;
    let counters = &found.counters;
    format!(
        "log {topic}, partition {number}: offsets {begin} to {end}, without the end; {} records count, with {} groups of {} bytes; \
         {} epochs, {} lost claims, {} repeated, {} foreign, {} malformed, {} hellos",
        counters.counted,
        found.groups,
        found.group_bytes,
        counters.epochs,
        counters.lost_claims,
        counters.repeated,
        counters.foreign,
        counters.malformed,
        counters.hellos
    )
}

fn owner_line(found: &Survey) -> String {
    let gone = if found.farewell {
        ", and gave it up"
    } else {
        ""
    };
    match &found.owner {
        Some((epoch, by)) => format!(
            "node {} at {} owns it since offset {epoch}{gone}",
            by.node, by.address
        ),
        None if found.bounds.0 == 0 => "nobody has owned it yet".to_owned(),
        None => format!("the record that says who owns it was trimmed{gone}"),
    }
}

/// Runs `latewood cluster inspect`.
pub(super) fn inspect(options: &Inspect) -> Result<ExitCode, String> {
    let (_, kafka, topic) = options.log.connect()?;
    for number in (0..).take(describe(&kafka, &topic)?.replicas.len()) {
        let log = Partition {
            topic: topic.clone(),
            number,
        };
        survey(&kafka, &log, &mut |offset, bytes, verdict| {
            say(&format!(
                "{number} {offset} {bytes} {}",
                describe_record(verdict)
            ));
        })
        .map_err(|error| error.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe_record(verdict: &Verdict<'_>) -> String {
    match verdict {
        Verdict::Counts { at, body } => {
            let what = match body {
                Body::Data { groups, .. } => format!("data: {groups} groups"),
                Body::Checkpoint(named) => {
                    format!(
                        "checkpoint: {}, log from offset {}",
                        named.manifest, named.begin
                    )
                }
                Body::Tick => "tick".to_owned(),
                Body::Farewell => "farewell".to_owned(),
                Body::Skipped { kind, .. } => format!("kind {kind}, passed over"),
            };
            format!("counts, n {}, sequence {}, {what}", at.n, at.sequence)
        }
        Verdict::Epoch(by) => format!("epoch of node {} at {}", by.node, by.address),
        Verdict::LostClaim(by) => format!("lost claim of node {} at {}", by.node, by.address),
        Verdict::Hello(hello) => format!("hello of {}, applied {}", hello.by.id, hello.by.applied),
        Verdict::Repeated => "repeated".to_owned(),
        Verdict::Foreign => "foreign".to_owned(),
        Verdict::Malformed => "malformed".to_owned(),
        Verdict::Newer(version) => format!("version {version} of the format"),
    }
}
