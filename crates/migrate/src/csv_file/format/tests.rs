//! Lines there and back, and lines that are none.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Parses one line of CSV text.
fn written_and_read(record: &ByteRecord) -> Line {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_byte_record(record).unwrap();
    parse(&writer.into_inner().unwrap()).unwrap().unwrap()
}

fn parse(text: &[u8]) -> Result<Option<Line>, String> {
    let mut record = ByteRecord::new();
    reader(text).read_byte_record(&mut record).unwrap();
    Line::parse(&record)
}

/// Any bytes, or none.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![word(), Just(Vec::new())]
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(b"=@\\,\"\n: a".to_vec());
    vec(prop_oneof![special, any::<u8>()], 1..8)
}

prop_compose! {
    fn described()(
        labels in vec((word(), word()), 0..4),
        retention_ms in proptest::option::of(0..i64::MAX),
        chunk_size_bytes in proptest::option::of(48..1_048_576_i64),
        uncompressed in any::<Option<bool>>(),
        policy in proptest::option::of(Just(b"last".to_vec())),
        ignore in proptest::option::of((0..1_000_i64, 0..1_000_u32)),
        rules in vec((word(), 1..1_000_i64, 0..1_000_i64), 0..3),
        expires_ms in any::<Option<i64>>(),
    ) -> Described {
        let ignore = ignore.map(|(max_time_diff_ms, diff)| Ignore {
            max_time_diff_ms,
            max_value_diff: diff.to_string().into_bytes(),
        });
        let rules = rules.into_iter().map(|(destination, bucket_ms, align_ms)| Rule {
            destination, bucket_ms, align_ms, aggregator: b"std.p".to_vec(),
        });
        Described {
            shape: Shape { retention_ms, chunk_size_bytes, uncompressed, policy, ignore, labels },
            rules: rules.collect(),
            expires_ms,
        }
    }
}

proptest! {
    #[test]
    fn a_declaration_reads_back(key in key(), described in described()) {
        prop_assume!(!key.is_empty() || described != Described::default());
        let line = written_and_read(&described.record(&key));
        prop_assert_eq!(line.key, key);
        prop_assert!(line.sample.is_none());
        prop_assert_eq!(line.described.unwrap_or_default(), described);
    }

    #[test]
    fn a_sample_reads_back_bit_for_bit(key in key(), timestamp in 0..=i64::MAX, value in any::<f64>()) {
        prop_assume!(!value.is_infinite());
        let sample = Sample { timestamp, value };
        let mut record = ByteRecord::new();
        Line::sample(&key, &sample, &mut record);
        let line = written_and_read(&record);
        let read = line.sample.unwrap();
        prop_assert_eq!((line.key, read.timestamp), (key, timestamp));
        prop_assert!(read.same_value(&sample), "{} became {}", value, read.value);
        prop_assert!(line.described.is_none());
    }
}

#[test]
fn a_line_as_a_person_writes_it() {
    let line =
        parse(b"room:1,1000,20.5,site=north,note=a=b,@retention=5,@ignore=3:0.5,\\@odd\\=name=x\n");
    let line = line.unwrap().unwrap();
    let described = line.described.unwrap();
    let labels = [("site", "north"), ("note", "a=b"), ("@odd=name", "x")];
    let labels = labels.map(|(name, value)| (name.into(), value.into()));
    assert_eq!(described.shape.labels, labels);
    assert_eq!(described.shape.retention_ms, Some(5));
    assert_eq!(described.shape.chunk_size_bytes, None);
}

#[test]
fn infinities_and_every_nan_are_values() {
    for (text, bits) in [
        ("k,1,inf", f64::INFINITY.to_bits()),
        ("k,1,-inf", f64::NEG_INFINITY.to_bits()),
        ("k,1,nan:7ff0000000000002", 0x7ff0_0000_0000_0002),
    ] {
        let sample = parse(text.as_bytes()).unwrap().unwrap().sample.unwrap();
        assert_eq!(sample.value.to_bits(), bits, "{text}");
    }
}

#[test]
fn the_heading_says_nothing() {
    assert!(parse(b"key,timestamp,value\n").unwrap().is_none());
}

#[test]
fn wrong_lines_are_refused_in_words() {
    for (text, words) in [
        ("k", "missing timestamp"),
        ("k,1", "missing value"),
        (",,", "all fields are empty"),
        ("k,-1,2", "-1 is not a timestamp"),
        ("k,1.5,2", "1.5 is not a timestamp"),
        ("k,,2", "is not a timestamp"),
        ("k,1,", "is not a value"),
        ("k,1,two", "two is not a value"),
        ("k,1,infinite", "infinite is not a value"),
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_sample_is_valid_though_its_labels_or_options_are_not() {
    for (text, words) in [
        ("k,1,2,label", "label must be"),
        ("k,1,2,=v", "=v must be"),
        ("k,1,2,a\\", "a\\ must be"),
        ("k,1,2,@retention=long", "@retention=long: unknown option"),
        ("k,1,2,@colour=red", "@colour=red: unknown option"),
        ("k,1,2,@rule=avg:x:0:d", "unknown option"),
        ("k,1,2,@rule=avg", "unknown option"),
        ("k,1,2,a=b,=v,c=d", "=v must be"),
    ] {
        let line = parse(text.as_bytes()).unwrap().unwrap();
        let error = line.wrong.unwrap();
        assert!(error.contains(words), "{text}: {error}");
        assert!(line.sample.is_some() && line.described.is_none(), "{text}");
    }
}

#[test]
fn a_quote_that_is_not_closed_is_told_apart_from_what_it_swallows() {
    for (text, line, lines) in [
        ("a,1,1\n\"b,2,1\nb,3,1\nb,4,1\n", 2, 3),
        ("a,1,1\n\"b,2,1\nb,3,1", 2, 2),
        ("a,1,1\nb,2,\"1\nb,3,1\n", 2, 2),
        ("\"a\nb\",1,1,\"c=d\n", 2, 2),
        ("\"", 1, 1),
    ] {
        let mut records = reader(text.as_bytes());
        let records: Vec<_> = records.byte_records().map(Result::unwrap).collect();
        let last = records.last().unwrap();
        let expected = format!("the quote opened in line {line} is not closed");
        assert_eq!(Line::parse(last).unwrap_err(), expected, "{text}");
        assert_eq!(lines_of(last), lines, "{text}");
    }
    // A quote within a field is one like any other letter, and a closed one may hold line breaks.
    for text in ["5\" pipe,1,1\n", "\"a\nb\",1,1", "\"a\"\"\",1,1\n\n", ""] {
        let mut records = reader(text.as_bytes());
        for record in records.byte_records() {
            assert!(Line::parse(&record.unwrap()).is_ok(), "{text}");
        }
    }
}

#[test]
fn a_later_line_may_repeat_what_the_first_says_and_not_add_to_it() {
    let described = |fields: &str| {
        let line = parse(format!("k,1,1{fields}").as_bytes()).unwrap().unwrap();
        line.described.unwrap_or_default()
    };
    let first = described(",a=b,@retention=5,@rule=avg:10:0:d");
    for fields in ["", ",a=b", ",@retention=5", ",@rule=avg:10:0:d,a=b"] {
        assert!(first.covers(&described(fields)), "{fields}");
    }
    for fields in [
        ",a=c",
        ",b=b",
        ",@retention=6",
        ",@policy=last",
        ",@rule=avg:20:0:d",
    ] {
        assert!(!first.covers(&described(fields)), "{fields}");
    }
}
