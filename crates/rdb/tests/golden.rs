//! Files and payloads that servers wrote: Redis 7.4 with RedisTimeSeries 1.12, and Redis 8.2 with the
//! module of 8.10. `*.rows` are the samples that the same servers answered: key, timestamp, and the
//! bits of the value.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use latewood_model::{Aggregator, DuplicatePolicy, Encoding};
use latewood_rdb::{Entry, Error, File, PayloadWriter, Series, read_payload};
use std::collections::BTreeMap;
use std::fs;

type Rows = Vec<(i64, u64)>;

const SERVERS: [&str; 2] = ["redis-7.4", "redis-8.2"];

fn golden(name: &str) -> Vec<u8> {
    fs::read(format!(
        "{}/tests/golden/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

fn expected(server: &str) -> BTreeMap<String, Rows> {
    let text = String::from_utf8(golden(&format!("{server}.rows"))).unwrap();
    let mut rows: BTreeMap<String, Rows> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let key = words.next().unwrap().to_owned();
        let timestamp = words.next().unwrap().parse().unwrap();
        let value = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        rows.entry(key).or_default().push((timestamp, value));
    }
    rows
}

fn bits(timestamps: &[i64], values: &[f64]) -> Rows {
    let values = values.iter().map(|value| value.to_bits());
    timestamps.iter().copied().zip(values).collect()
}

struct Found {
    series: BTreeMap<String, (Series, Rows, Option<i64>)>,
    others: BTreeMap<String, String>,
}

fn read(bytes: &[u8]) -> Result<Found, Error> {
    let mut file = File::open(bytes)?;
    let mut found = Found {
        series: BTreeMap::new(),
        others: BTreeMap::new(),
    };
    while let Some(entry) = file.next_entry()? {
        match entry {
            Entry::Series {
                key, expires_at_ms, ..
            } => {
                let (series, mut reader) = file.series()?;
                let (mut timestamps, mut values) = (Vec::new(), Vec::new());
                let mut rows = Rows::new();
                while reader.next(&mut timestamps, &mut values)? {
                    rows.extend(bits(&timestamps, &values));
                }
                let key = String::from_utf8_lossy(&key).into_owned();
                found.series.insert(key, (series, rows, expires_at_ms));
            }
            Entry::Other { key, kind, .. } => {
                found
                    .others
                    .insert(String::from_utf8_lossy(&key).into_owned(), kind);
            }
        }
    }
    Ok(found)
}

/// Options, labels, rules and expiries of the series that all the files have.
fn assert_described(series: &BTreeMap<String, (Series, Rows, Option<i64>)>) {
    let (room, _, _) = &series["room:1"];
    assert_eq!(room.options.chunk_size_bytes, 128);
    assert_eq!(room.options.duplicate_policy, Some(DuplicatePolicy::Last));
    let labels: Vec<_> = room.options.labels.iter().collect();
    assert_eq!(
        labels,
        [(&b"site"[..], &b"north"[..]), (b"unit", b"celsius")]
    );
    let mut rules: Vec<_> = room.rules.iter().collect();
    rules.sort_by(|a, b| a.destination.cmp(&b.destination));
    let told: Vec<_> = rules
        .iter()
        .map(|rule| {
            (
                &rule.destination[5..],
                rule.aggregator,
                rule.bucket_ms,
                rule.align_ms,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (&b"first"[..], Aggregator::First, 900, 0),
            (b"hour", Aggregator::Avg, 3600, 0),
            (b"last", Aggregator::Last, 100, 0),
            (b"max", Aggregator::Max, 500, 0),
            (b"std", Aggregator::StdP, 700, 0),
            (b"twa", Aggregator::Twa, 1000, 7),
        ]
    );
    assert_eq!(
        series["room:hour"].0.source.as_deref(),
        Some(&b"room:1"[..])
    );
    let (plain, _, _) = &series["plain"];
    assert_eq!(plain.options.encoding, Encoding::Uncompressed);
    assert_eq!(plain.options.ignore.max_time_diff_ms, 5);
    assert_eq!(series["one"].2, Some(4_102_444_800_000));
    assert_eq!(series["empty"].1, []);
}

#[test]
fn a_file_has_what_its_server_answered() {
    for server in SERVERS {
        let found = read(&golden(&format!("{server}.rdb"))).unwrap();
        for (key, rows) in expected(server) {
            assert_eq!(found.series[&key].1, rows, "{server} {key}");
        }
        let names: Vec<&str> = found.series.keys().map(String::as_str).collect();
        let expected = [
            "empty",
            "one",
            "plain",
            "room:1",
            "room:first",
            "room:hour",
            "room:last",
            "room:max",
            "room:std",
            "room:twa",
        ];
        assert_eq!(names, expected, "{server}");
        assert_described(&found.series);
        let others: Vec<_> = found
            .others
            .iter()
            .map(|(key, kind)| (&key[..], &kind[..]))
            .collect();
        assert_eq!(
            others,
            [
                ("bighash", "hash"),
                ("bigz", "zset"),
                ("gone", "string"),
                ("hash", "hash"),
                ("ints", "set"),
                ("list", "list"),
                ("long", "string"),
                ("number", "string"),
                ("set", "set"),
                ("stream", "stream"),
                ("text", "string"),
                ("zset", "zset"),
            ],
            "{server}"
        );
    }
}

#[test]
fn a_file_that_is_cut_or_changed_is_refused() {
    let whole = golden("redis-8.2.rdb");
    for len in (0..whole.len()).step_by(7) {
        assert!(read(&whole[..len]).is_err(), "cut at {len}");
    }
    for at in (0..whole.len() - 8).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        // The version is not part of what is checked here: any is read.
        assert!(at < 9 || read(&changed).is_err(), "changed at {at}");
    }
    let error = read(b"LATEWOOD0").err().unwrap();
    assert!(error.to_string().contains("not a file of Redis"), "{error}");
}

fn payload(bytes: &[u8]) -> Result<(Series, Rows), Error> {
    read_payload(bytes, |series, samples| {
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        let mut rows = Rows::new();
        while samples.next(&mut timestamps, &mut values)? {
            rows.extend(bits(&timestamps, &values));
        }
        Ok((series, rows))
    })
}

#[test]
fn a_payload_has_what_its_server_answered_and_is_written_again() {
    for server in SERVERS {
        for (name, key) in [("room-1", "room:1"), ("plain", "plain")] {
            let bytes = golden(&format!("{server}.{name}.dump"));
            let (series, rows) = payload(&bytes).unwrap();
            assert_eq!(rows, expected(server)[key], "{server} {key}");
            let mut writer = PayloadWriter::new(&series.options);
            for (timestamp, value) in &rows {
                writer.samples(&[*timestamp], &[f64::from_bits(*value)]);
            }
            let (again, rows_again) =
                payload(&writer.finish(&series.key, &series.options)).unwrap();
            assert_eq!(
                (again.options, again.key, again.samples),
                (series.options, series.key, series.samples)
            );
            assert_eq!(rows_again, rows);
        }
        let error = payload(&golden(&format!("{server}.text.dump"))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a value of type string is not a time series"
        );
    }
}

#[test]
fn a_payload_that_is_changed_is_refused() {
    let whole = golden("redis-8.2.plain.dump");
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert!(matches!(payload(&changed), Err(Error::Checksum)), "at {at}");
    }
    assert!(matches!(payload(b""), Err(Error::Checksum)));
    // With a right checksum, anything may be in it.
    for at in 0..whole.len() - 10 {
        for bit in 0..8 {
            let mut changed = whole[..whole.len() - 8].to_vec();
            changed[at] ^= 1 << bit;
            let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, &changed);
            changed.extend_from_slice(&sum.to_le_bytes());
            // It is read or refused, and ends.
            let _ = payload(&changed);
        }
    }
}
