//! Groups and records: round trips are exact, and invalid bytes are refused without
//! a panic.

use latewood_engine::ErrorKind;
use latewood_engine::log::{Cut, Ended, GroupBuilder, GroupForm, Record, RecordIter};
use latewood_model::limits::CHUNK_SIZE_BYTES_MAX;
use latewood_model::{DuplicatePolicy, Encoding, Ignore, Labels, MadeBy, SeriesId, SeriesOptions};
use proptest::prelude::*;

/// A record that owns its key.
#[derive(Clone, Debug)]
enum Entry {
    Sample(u64, i64, f64, DuplicatePolicy),
    Create(u64, Vec<u8>, MadeBy, SeriesOptions),
    Alter(u64, SeriesOptions),
    DeleteRange(u64, i64, i64),
    Expired(u64, i64),
    DeleteSeries(u64),
    Rename(u64, Vec<u8>),
    Expire(u64, Option<i64>),
    Build(u64, SeriesOptions),
    RuleLeft(u64, u64, i64, i64),
    RuleHistory(u64, u64, i64, i64),
    RuleFilled(u64, u64, i64, i64),
    FlushAll,
    /// The first id, the stride and the bits.
    Ended(u64, u8, Vec<u8>),
    Cut(Cut),
    Floor(i64),
    Horizon(u64, i64),
    Done(u64, u64),
    Pending(u64, Vec<u8>),
    Steps(u64, i64, i64),
    Since(u64, i64),
}

impl Entry {
    fn put(&self, group: &mut GroupBuilder) {
        match self {
            Self::Sample(id, at, value, policy) => {
                group.sample(SeriesId(*id), *at, *value, *policy);
            }
            Self::Create(id, key, by, options) => group.create(SeriesId(*id), key, *by, options),
            Self::Alter(id, options) => group.alter(SeriesId(*id), options),
            Self::DeleteRange(id, from, to) => group.delete_range(SeriesId(*id), *from, *to),
            Self::Expired(id, before) => group.expired(SeriesId(*id), Some(*before)),
            Self::DeleteSeries(id) => group.delete_series(SeriesId(*id)),
            Self::Rename(id, key) => group.rename(SeriesId(*id), key),
            Self::Expire(id, at_ms) => group.expire(SeriesId(*id), *at_ms),
            Self::Build(id, options) => group.build(SeriesId(*id), options),
            Self::RuleLeft(id, to, first, last) => {
                group.rule_left(SeriesId(*id), SeriesId(*to), *first, *last);
            }
            Self::RuleHistory(id, to, first, newest) => {
                group.rule_history(SeriesId(*id), SeriesId(*to), *first, *newest);
            }
            Self::RuleFilled(id, to, first, last) => {
                group.rule_filled(SeriesId(*id), SeriesId(*to), *first, *last);
            }
            Self::FlushAll => group.flush_all(),
            Self::Cut(cut) => group.cut(*cut),
            Self::Ended(..) => group.ended(&self.ended()),
            Self::Floor(floor) => group.floor(*floor),
            Self::Horizon(reader, at) => group.horizon(*reader, *at),
            Self::Done(reader, position) => group.done(*reader, *position),
            Self::Pending(reader, state) => group.pending(*reader, state),
            Self::Steps(reader, from, to) => group.steps(*reader, *from, *to),
            Self::Since(reader, at) => group.since(*reader, *at),
        }
    }

    fn record(&self) -> Record<'_> {
        match self.clone() {
            Self::Sample(id, timestamp, value, policy) => Record::Sample {
                id: SeriesId(id),
                timestamp,
                value,
                policy,
            },
            Self::Create(id, _, made_by, options) => Record::Create {
                id: SeriesId(id),
                made_by,
                key: self.key().into(),
                options: Box::new(options),
            },
            Self::Alter(id, options) => Record::Alter {
                id: SeriesId(id),
                options: Box::new(options),
            },
            Self::DeleteRange(id, from, to) => Record::DeleteRange {
                id: SeriesId(id),
                from,
                to,
            },
            Self::Expired(id, before) => Record::Expired {
                id: SeriesId(id),
                before,
            },
            Self::DeleteSeries(id) => Record::DeleteSeries { id: SeriesId(id) },
            Self::Rename(id, _) => Record::Rename {
                id: SeriesId(id),
                key: self.key(),
            },
            Self::Expire(id, at_ms) => Record::Expire {
                id: SeriesId(id),
                at_ms,
            },
            Self::Build(id, options) => Record::Build {
                id: SeriesId(id),
                options: Box::new(options),
            },
            Self::RuleLeft(id, destination, first, last) => Record::RuleLeft {
                id: SeriesId(id),
                destination: SeriesId(destination),
                first,
                last,
            },
            Self::RuleHistory(id, destination, first, newest) => Record::RuleHistory {
                id: SeriesId(id),
                destination: SeriesId(destination),
                first,
                newest,
            },
            Self::RuleFilled(id, destination, first, last) => Record::RuleFilled {
                id: SeriesId(id),
                destination: SeriesId(destination),
                first,
                last,
            },
            Self::FlushAll => Record::FlushAll,
            Self::Cut(cut) => Record::Cut(cut),
            Self::Floor(floor) => Record::Floor { floor },
            Self::Horizon(reader, at) => Record::Horizon { reader, at },
            Self::Done(reader, position) => Record::Done { reader, position },
            Self::Pending(..) => self.pending(),
            Self::Ended(..) => Record::Ended(self.ended()),
            Self::Steps(reader, from, to) => Record::Steps { reader, from, to },
            Self::Since(reader, at) => Record::Since { reader, at },
        }
    }

    fn ended(&self) -> Ended<'_> {
        match self {
            Self::Ended(first, stride_log2, bits) => Ended {
                first: SeriesId(*first),
                stride_log2: *stride_log2,
                bits,
            },
            _ => panic!("series that ended"),
        }
    }

    fn pending(&self) -> Record<'_> {
        match self {
            Self::Pending(reader, state) => Record::Pending {
                reader: *reader,
                state,
            },
            _ => panic!("the state of a reader"),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Create(_, key, ..) | Self::Rename(_, key) => key,
            _ => &[],
        }
    }
}

fn makers() -> impl Strategy<Value = MadeBy> {
    proptest::sample::select(MadeBy::ALL.to_vec())
}

fn policies() -> impl Strategy<Value = DuplicatePolicy> {
    proptest::sample::select(DuplicatePolicy::ALL.to_vec())
}

fn options() -> impl Strategy<Value = SeriesOptions> {
    let label = || "[a-z]{1,9}";
    (
        any::<u64>(),
        6..=CHUNK_SIZE_BYTES_MAX / 8,
        any::<bool>(),
        proptest::option::of(policies()),
        (any::<u64>(), 0.0..1e9_f64),
        proptest::collection::vec((label(), label()), 0..5),
    )
        .prop_map(|(retention_ms, eighths, plain, policy, ignore, labels)| {
            let pairs = labels.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
            SeriesOptions {
                retention_ms,
                chunk_size_bytes: eighths * 8,
                encoding: if plain {
                    Encoding::Uncompressed
                } else {
                    Encoding::Compressed
                },
                duplicate_policy: policy,
                ignore: Ignore {
                    max_time_diff_ms: ignore.0,
                    max_value_diff: ignore.1,
                },
                labels: Labels::new(pairs).unwrap(),
            }
        })
}

/// Decimals, integers and any bits but NaN, which equals nothing.
fn values() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1_000_000_i64..1_000_000, 0..5_u32).prop_map(|(m, e)| m as f64 / 10_f64.powi(e as i32)),
        any::<i32>().prop_map(f64::from),
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("comparable", |value| !value.is_nan()),
    ]
}

fn entries() -> impl Strategy<Value = Entry> {
    let ids = || prop_oneof![0..9_u64, 0..=SeriesId::MAX.0];
    let keys = || proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        9 => (ids(), prop_oneof![0..2000_i64, any::<i64>()], values(), policies())
            .prop_map(|(id, at, value, policy)| Entry::Sample(id, at, value, policy)),
        1 => (ids(), keys(), makers(), options())
            .prop_map(|(id, key, by, o)| Entry::Create(id, key, by, o)),
        2 => (0..3_000_u64).prop_map(fleet),
        1 => (ids(), options()).prop_map(|(id, options)| Entry::Alter(id, options)),
        1 => (ids(), any::<i64>(), any::<i64>()).prop_map(|(i, f, t)| Entry::DeleteRange(i, f, t)),
        1 => (ids(), any::<i64>()).prop_map(|(i, before)| Entry::Expired(i, before)),
        1 => ids().prop_map(Entry::DeleteSeries),
        1 => (ids(), keys()).prop_map(|(id, key)| Entry::Rename(id, key)),
        1 => (ids(), proptest::option::of(1..=i64::MAX))
            .prop_map(|(id, at_ms)| Entry::Expire(id, at_ms)),
        1 => (ids(), options()).prop_map(|(id, options)| Entry::Build(id, options)),
        1 => (ids(), ids(), any::<i64>(), any::<i64>())
            .prop_map(|(i, d, f, l)| Entry::RuleLeft(i, d, f, l)),
        1 => (ids(), ids(), any::<i64>(), any::<i64>())
            .prop_map(|(i, d, f, l)| Entry::RuleHistory(i, d, f, l)),
        1 => (ids(), ids(), any::<i64>(), any::<i64>())
            .prop_map(|(i, d, f, l)| Entry::RuleFilled(i, d, f, l)),
        1 => Just(Entry::FlushAll),
        1 => (1..=u64::MAX, ids(), 0..=16_u8, 1..9_u64).prop_map(cut),
        1 => (ids(), 0..=9_u8, proptest::collection::vec(any::<u8>(), 1..9)).prop_map(ended),
        1 => (1..=i64::MAX).prop_map(Entry::Floor),
        1 => any::<(u64, i64)>().prop_map(|(r, at)| Entry::Horizon(r, at)),
        1 => any::<(u64, u64)>().prop_map(|(r, p)| Entry::Done(r, p)),
        1 => any::<(u64, Vec<u8>)>().prop_map(|(r, s)| Entry::Pending(r, s)),
        1 => any::<(u64, i64, i64)>().prop_map(|(r, from, to)| Entry::Steps(r, from, to)),
        1 => any::<(u64, i64)>().prop_map(|(r, at)| Entry::Since(r, at)),
    ]
}

/// A cut that ends with its partition, at the latest.
fn cut((flush, first, stride_log2, count): (u64, u64, u8, u64)) -> Entry {
    let left = 0xffff - (first & 0xffff);
    Entry::Cut(Cut {
        flush,
        first: SeriesId(first),
        stride_log2,
        count: count.min((left >> stride_log2) + 1),
    })
}

/// Bits as a writer sets them, which end with their partition at the latest.
fn ended((first, stride_log2, mut bits): (u64, u8, Vec<u8>)) -> Entry {
    let left = (0xffff - (first & 0xffff)) >> stride_log2;
    bits.truncate((left as usize + 1) / 8);
    if bits.is_empty() {
        bits.push(1);
    }
    bits[0] |= 1;
    *bits.last_mut().expect("not empty") |= 1;
    Entry::Ended(first, stride_log2, bits)
}

fn group_of(entries: &[Entry]) -> GroupBuilder {
    let mut group = GroupBuilder::new();
    group.begin(0);
    entries.iter().for_each(|entry| entry.put(&mut group));
    group
}

proptest! {
    #[test]
    fn records_come_back_as_they_went_in(entries in proptest::collection::vec(entries(), 0..60)) {
        let group = group_of(&entries);
        prop_assert_eq!(group.is_empty(), entries.is_empty());
        prop_assert_eq!(group.len_bytes(), group.payload().len());
        let records: Vec<_> = RecordIter::new(group.payload(), GroupForm::Wide).map(|r| r.unwrap()).collect();
        let expected: Vec<_> = entries.iter().map(Entry::record).collect();
        prop_assert_eq!(records, expected);
    }

    #[test]
    fn a_cut_payload_gives_the_records_before_the_cut(entries in proptest::collection::vec(entries(), 1..12)) {
        let group = group_of(&entries);
        let expected: Vec<_> = entries.iter().map(Entry::record).collect();
        for cut in 0..group.len_bytes() {
            let mut whole = 0;
            for record in RecordIter::new(&group.payload()[..cut], GroupForm::Wide) {
                match record {
                    Ok(record) => prop_assert_eq!(&record, &expected[whole]),
                    Err(error) => {
                        prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
                        break;
                    }
                }
                whole += 1;
            }
            prop_assert!(whole < entries.len());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let records = RecordIter::new(&bytes, GroupForm::Wide);
        let read = records.take_while(Result::is_ok).count();
        prop_assert!(read <= bytes.len());
    }

    #[test]
    fn nan_payloads_survive(payload in 1..1_u64 << 51, negative: bool) {
        let bits = 0x7ff0_0000_0000_0000 | payload | u64::from(negative) << 63;
        let group = group_of(&[Entry::Sample(1, 1, f64::from_bits(bits), DuplicatePolicy::Last)]);
        let record = RecordIter::new(group.payload(), GroupForm::Wide).next().unwrap().unwrap();
        let Record::Sample { value, .. } = record else { panic!("a sample") };
        prop_assert_eq!(value.to_bits(), bits);
    }
}

fn fleet(number: u64) -> Entry {
    let (host, rack) = (format!("host_{number}"), format!("{}", number % 7));
    let labels = [
        ("hostname", &*host),
        ("region", "eu-west-1"),
        ("rack", &rack),
    ];
    let labels = labels.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let options = SeriesOptions {
        labels: Labels::new(labels).unwrap(),
        ..SeriesOptions::default()
    };
    let key = format!("cpu:usage_user:{number:07}").into_bytes();
    Entry::Create(number, key, MadeBy::Sender, options)
}

#[test]
fn series_of_a_fleet_take_what_tells_them_apart() {
    let all: Vec<Entry> = (0..50).map(|number| fleet(1_000 + 2 * number)).collect();
    let group = group_of(&all);
    assert!(group.len_bytes() <= 50 * 14 + 120, "{}", group.len_bytes());
    let records = RecordIter::new(group.payload(), GroupForm::Wide).map(|record| record.unwrap());
    assert!(records.eq(all.iter().map(Entry::record)));
    // The first stands alone; of the next: the tag, the step of the id, the
    // key's first 18 bytes and 4 more, and a head before each value's rest.
    let bytes = group_of(&[fleet(98), fleet(1_000)]).payload().to_vec();
    let alone = group_of(&[fleet(98)]).len_bytes();
    let expected = b"\x1b\x32\x1c\x25\x091000\x541000\x90\x016";
    let expected = &expected[..];
    assert_eq!(&bytes[alone..], expected, "needs a new format version");
}

#[test]
fn other_names_and_options_stand_in_full() {
    let Entry::Create(id, key, by, options) = fleet(7) else {
        panic!("a creation")
    };
    let labels = |names: &[&str]| {
        let pairs = names
            .iter()
            .map(|name| (name.as_bytes(), &b"eu-west-1"[..]));
        Labels::new(pairs).unwrap()
    };
    let mut all = vec![fleet(7)];
    for names in [
        &["hostname", "region"][..],
        &["a", "b", "c"],
        &[],
        &["a", "b", "c", "d"],
    ] {
        let labels = labels(names);
        all.push(Entry::Create(
            id,
            key.clone(),
            by,
            SeriesOptions {
                labels,
                ..options.clone()
            },
        ));
    }
    for retention_ms in [1, 0] {
        let options = SeriesOptions {
            retention_ms,
            ..options.clone()
        };
        all.push(Entry::Create(id, Vec::new(), by, options));
    }
    let long = "x".repeat(300);
    for value in ["", "y", "yz"].map(|end| format!("{long}{end}")) {
        let labels = Labels::new([(&b"a"[..], value.as_bytes())]).unwrap();
        all.push(Entry::Create(
            SeriesId::MAX.0,
            key.clone(),
            by,
            SeriesOptions {
                labels,
                ..options.clone()
            },
        ));
    }
    let group = group_of(&all);
    let records = RecordIter::new(group.payload(), GroupForm::Wide).map(|record| record.unwrap());
    assert!(records.eq(all.iter().map(Entry::record)));
}

#[test]
fn a_difference_from_nothing_is_damage() {
    let whole = group_of(&[fleet(1), fleet(2)]);
    let alone = group_of(&[fleet(1)]).len_bytes();
    let mut records = RecordIter::new(&whole.payload()[alone..], GroupForm::Wide);
    let error = records.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_round_of_fifty_devices_takes_about_three_bytes_each() {
    let mut group = GroupBuilder::new();
    group.begin(0);
    for id in 0..50 {
        let value = 20.0 + id as f64 / 10.0;
        group.sample(
            SeriesId(id),
            1_700_000_000_000,
            value,
            DuplicatePolicy::Block,
        );
    }
    assert!(group.len_bytes() <= 160, "{} bytes", group.len_bytes());
}

#[test]
fn a_reused_builder_starts_over() {
    let entry = Entry::Sample(7, 1000, 2.5, DuplicatePolicy::Last);
    let fresh = group_of(std::slice::from_ref(&entry));
    let mut used = group_of(&[
        Entry::FlushAll,
        Entry::Sample(9, 5, 1.25, DuplicatePolicy::Max),
    ]);
    used.begin(0);
    entry.put(&mut used);
    assert_eq!(used.payload(), fresh.payload());
}

#[test]
fn a_floor_has_these_bytes() {
    let group = group_of(&[Entry::Floor(1_000)]);
    let expected = [0x25, 0xa2, 0x0f];
    assert_eq!(group.payload(), expected, "needs a new format version");
    for nothing in [0, i64::MIN] {
        let group = group_of(&[Entry::Floor(nothing)]);
        let mut records = RecordIter::new(group.payload(), GroupForm::Wide);
        let refused = records.next().unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn records_of_readers_have_these_bytes() {
    let all = [
        (Entry::Horizon(3, 5), &[0x27, 0x07, 0x15][..]),
        (Entry::Done(3, 9), &[0x29, 0x07, 0x13]),
        (
            Entry::Pending(3, b"ab".to_vec()),
            &[0x2b, 0x07, 0x05, 0x61, 0x62],
        ),
        (Entry::Steps(3, 5, -1), &[0x2d, 0x07, 0x15, 0x03]),
        (Entry::Since(3, 5), &[0x2f, 0x07, 0x15]),
    ];
    for (entry, expected) in all {
        let bytes = group_of(&[entry]).payload().to_vec();
        assert_eq!(bytes, expected, "needs a new format version");
    }
}
