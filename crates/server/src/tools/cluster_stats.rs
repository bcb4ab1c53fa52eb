//! `latewood cluster stats`: counts of what a log in Kafka and its object store hold.
//!
//! Tested by `tests/kafka/` with brokers.

use super::cluster::Stats;
use super::output::{json, say};
use super::survey::describe;
use latewood_cluster::checkpoint::{Listing, ListingRef, Objects};
use latewood_cluster::envelope::Body;
use latewood_cluster::kafka::Partition;
use latewood_cluster::kafka::client::Client;
use latewood_cluster::scan::Verdict;
use latewood_cluster::survey::{Survey, survey};
use latewood_engine::io::Env;
use latewood_engine::tools::count_samples;
use latewood_engine::{Detail, Position};
use latewood_offsite::Place;
use std::process::ExitCode;

/// Samples of the records that count, and how many of these records hold groups.
#[derive(Default)]
struct Counted {
    samples: u64,
    data_records: u64,
}

/// Runs `latewood cluster stats`.
pub(super) fn run(options: &Stats) -> Result<ExitCode, String> {
    let (cluster, kafka, topic) = options.log.connect()?;
    let place = Place::parse(&options.objects).map_err(|error| error.to_string())?;
    for number in (0..).take(describe(&kafka, &topic)?.replicas.len()) {
        let objects = Objects::new(Env::real(), &place, &cluster, number);
        let objects = objects.map_err(|error| error.to_string())?;
        let topic = topic.clone();
        let detail = count(&kafka, Partition { topic, number }, &objects)?;
        if options.json {
            say(&json(&detail).to_string())
        } else {
            say(detail.to_string().trim_end())
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn count(kafka: &Client, log: Partition, objects: &Objects) -> Result<Detail, String> {
    let (mut counted, mut damage) = (Counted::default(), None);
    let found = survey(kafka, &log, &mut |offset, _, verdict| {
        if let Verdict::Counts {
            at,
            body: Body::Data { payload, .. },
        } = verdict
        {
            counted.data_records += 1;
            match count_samples(payload, Position(at.sequence)) {
                Ok(samples) => counted.samples += samples,
                Err(error) => {
                    damage.get_or_insert(format!("the record at offset {offset}: {error}"));
                }
            }
        }
    });
    let found = found.map_err(|error| error.to_string())?;
    damage.map_or(Ok(()), Err)?;
    let checkpoint = match &found.checkpoint {
        None => "none".into(),
        Some((offset, named)) => {
            let newest = objects.find(&ListingRef::from(named));
            let newest = newest.map_err(|error| error.to_string())?;
            checkpoint_detail(*offset, &newest.listing)
        }
    };
    Ok(Detail::Fields(vec![
        ("log", log_detail(log, &found, &counted)),
        ("owner", owner_detail(&found)),
        ("checkpoint", checkpoint),
    ]))
}

fn log_detail(log: Partition, found: &Survey, counted: &Counted) -> Detail {
    let samples_per_record = counted.samples as f64 / counted.data_records.max(1) as f64;
    Detail::Fields(vec![
        ("topic", log.topic.into()),
        ("partition", log.number.into()),
        ("begin", found.bounds.0.into()),
        ("end", found.bounds.1.into()),
        ("records", found.counters.counted.into()),
        ("groups", found.groups.into()),
        ("bytes", found.group_bytes.into()),
        ("samples", counted.samples.into()),
        ("samples_per_record", samples_per_record.into()),
    ])
}

fn owner_detail(found: &Survey) -> Detail {
    let Some((epoch, by)) = &found.owner else {
        return "unknown: its record was trimmed".into();
    };
    let gave_up = if found.farewell { "yes" } else { "no" };
    Detail::Fields(vec![
        ("node", by.node.into()),
        ("address", by.address.clone().into()),
        ("since_offset", (*epoch).into()),
        ("gave_up", gave_up.into()),
    ])
}

fn checkpoint_detail(offset: u64, listing: &Listing) -> Detail {
    let age_ms = Env::real()
        .clock
        .now_ms()
        .saturating_sub(listing.made_at_ms);
    let kind = |is_kind: &dyn Fn(&str) -> bool| {
        let rows = listing.files.iter();
        let of_kind = rows.filter(|row| is_kind(&row.file.path));
        let (files, bytes) = of_kind.fold((0_u64, 0_u64), |(files, bytes), row| {
            (files + 1, bytes + row.file.content.bytes)
        });
        Detail::Fields(vec![("files", files.into()), ("bytes", bytes.into())])
    };
    Detail::Fields(vec![
        ("number", listing.number.into()),
        ("offset", offset.into()),
        ("age_s", (age_ms / 1000).into()),
        ("blocks", kind(&|path| path.starts_with("blocks/"))),
        ("series_files", kind(&|path| path.starts_with("series/"))),
        ("other", kind(&|path| !path.contains('/'))),
    ])
}
