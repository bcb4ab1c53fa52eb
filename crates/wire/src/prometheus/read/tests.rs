//! Requests in, answers out and read back by twins made from the published
//! formats.

use super::chunk::CHUNK_SAMPLES;
use super::frames::{FRAME_BYTES, FrameWriter};
use super::*;
use crate::selector::{PATTERNS_MAX, Pattern, Patterns, SelectorError};
use proptest::prelude::*;

/// A field of protobuf with bytes in it.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, u32::from(number), bytes);
    out
}

fn int(number: u8, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    put_int(&mut out, u32::from(number), value);
    out
}

fn matcher_message(kind: i64, name: &[u8], value: &[u8]) -> Vec<u8> {
    field(3, &[int(1, kind), field(2, name), field(3, value)].concat())
}

fn read_with(message: &[u8]) -> Result<Request, ReadError> {
    fn compile(text: &[u8], patterns: &mut Patterns) -> Result<Pattern, String> {
        let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
        patterns.compile(text).map_err(|error| error.to_string())
    }
    Request::read(message, compile)
}

#[test]
fn a_request_is_read_with_every_type_of_matcher() {
    let query = [
        int(1, -5),
        int(2, 1_700_000_000_000),
        matcher_message(0, b"__name__", b"up"),
        matcher_message(1, b"a", b""),
        matcher_message(2, b"b", b"x|y"),
        matcher_message(3, b"c", b"z.*"),
        field(4, b"\x08\x01"),
    ];
    let message = [field(1, &query.concat()), field(1, b""), field(2, &[0, 1])].concat();
    let request = read_with(&message).unwrap();
    assert_eq!((request.queries.len(), request.form), (2, Form::Samples));
    let query = &request.queries[0];
    assert_eq!((query.from_ms, query.to_ms), (-5, 1_700_000_000_000));
    let passes = |at: usize, value: &str| query.matchers[at].passes(value.as_bytes());
    assert!(query.matchers[0].is_on_metric() && passes(0, "up") && !passes(0, "down"));
    assert!(passes(1, "q") && !passes(1, ""));
    assert!(passes(2, "y") && !passes(2, "xy"));
    assert!(passes(3, "a") && !passes(3, "zz"));
    assert_eq!(request.queries[1].matchers.len(), 0);
}

#[test]
fn the_first_form_that_there_is_answers() {
    let form = |types: &[u8]| read_with(types).map(|request| request.form);
    assert_eq!(form(b""), Ok(Form::Samples));
    assert_eq!(form(&[0x10, 1, 0x10, 0]), Ok(Form::StreamedXorChunks));
    assert_eq!(form(&[0x12, 2, 7, 1]), Ok(Form::StreamedXorChunks));
    assert_eq!(form(&[0x10, 7]), Err(ReadError::NoForm));
}

#[test]
fn what_is_no_request_is_told() {
    let read = |query: &[u8]| read_with(&field(1, query)).unwrap_err();
    assert_eq!(
        read_with(b"\x0a\x05a").unwrap_err(),
        ProtobufError::Malformed.into()
    );
    assert_eq!(
        read(&matcher_message(4, b"a", b"b")),
        ReadError::MatcherType(4)
    );
    assert_eq!(read(&matcher_message(0, b"a", b"\xff")), ReadError::NotUtf8);
    let text = read(&matcher_message(2, b"a", b"(")).to_string();
    assert!(text.contains("unclosed group"), "{text}");
    let many = field(1, b"").repeat(QUERIES_MAX + 1);
    assert_eq!(read_with(&many).unwrap_err(), ReadError::TooMany);
    let many = matcher_message(0, b"a", b"b").repeat(MATCHERS_MAX + 1);
    assert_eq!(read(&many), SelectorError::TooMany.into());
    let pattern = |at| matcher_message(2, b"a", format!("b.*{at}").as_bytes());
    let query = |from, to| field(1, &(from..to).flat_map(pattern).collect::<Vec<u8>>());
    let queries = |count| [query(0, 2), query(2, count)].concat();
    assert!(read_with(&queries(PATTERNS_MAX)).is_ok());
    assert!(read_with(&queries(PATTERNS_MAX).repeat(2)).is_ok());
    let many = read_with(&queries(PATTERNS_MAX + 1)).unwrap_err();
    let told = SelectorError::TooManyPatterns.to_string();
    assert_eq!(many, ReadError::Pattern(told));
}

/// Bits of a chunk, the highest of each byte first.
struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    fn take(&mut self, count: u32) -> u64 {
        (0..count).fold(0, |value, _| {
            let bit = self.bytes[self.at / 8] >> (7 - self.at % 8) & 1;
            self.at += 1;
            value << 1 | u64::from(bit)
        })
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.take(8);
            value |= (byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn change(&mut self) -> i64 {
        let mut ones = 0;
        while ones < 4 && self.take(1) == 1 {
            ones += 1;
        }
        let width = [0, 14, 17, 20, 64][ones];
        let bits = self.take(width);
        match width {
            0 => 0,
            64 => bits as i64,
            width if bits > 1 << (width - 1) => bits as i64 - (1 << width),
            _ => bits as i64,
        }
    }
}

/// The twin of [`chunk::encode`].
fn decode(chunk: &[u8]) -> Vec<(i64, u64)> {
    let count = u16::from_be_bytes([chunk[0], chunk[1]]);
    let mut bits = BitReader {
        bytes: &chunk[2..],
        at: 0,
    };
    let (mut time, mut delta, mut value) = (0i64, 0u64, 0u64);
    let (mut leading, mut trailing) = (0, 0);
    let mut samples = Vec::new();
    for index in 0..count {
        match index {
            0 => {
                let zigzag = bits.varint();
                time = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            }
            1 => delta = bits.varint(),
            _ => delta = delta.wrapping_add(bits.change() as u64),
        }
        time = time.wrapping_add(delta as i64);
        if index == 0 {
            value = bits.take(64);
        } else if bits.take(1) == 1 {
            if bits.take(1) == 1 {
                leading = bits.take(5) as u32;
                let width = bits.take(6) as u32;
                trailing = 64 - leading - if width == 0 { 64 } else { width };
            }
            value ^= bits.take(64 - leading - trailing) << trailing;
        }
        samples.push((time, value));
    }
    assert!(
        bits.at.div_ceil(8) == bits.bytes.len(),
        "bytes are left over"
    );
    samples
}

fn round_trip(samples: &[(i64, u64)]) {
    let timestamps: Vec<i64> = samples.iter().map(|sample| sample.0).collect();
    let values: Vec<f64> = samples
        .iter()
        .map(|sample| f64::from_bits(sample.1))
        .collect();
    let mut out = Vec::new();
    chunk::encode(&timestamps, &values, &mut out);
    assert_eq!(decode(&out), samples);
}

proptest! {
    #[test]
    fn chunks_read_back_bit_for_bit(
        steps in prop::collection::vec((
            prop_oneof![Just(0u64), 1..20_000u64, 1..2_000_000u64, any::<u64>().prop_map(|n| n >> 12)],
            prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..5u64).prop_map(|n| Some((n as f64).to_bits()))],
        ), 0..CHUNK_SAMPLES),
        start in prop_oneof![Just(0i64), 0..2_000_000_000_000i64, Just(i64::MAX >> 1)],
    ) {
        let (mut time, mut value) = (start, 0);
        let samples: Vec<(i64, u64)> = steps.into_iter().map(|(step, next)| {
            time = time.saturating_add(step as i64);
            value = next.unwrap_or(value);
            (time, value)
        }).collect();
        round_trip(&samples);
    }
}

#[test]
fn the_ends_of_every_range_of_changes_read_back() {
    let ends = [13, 16, 19].map(|bits| 1i64 << bits);
    for change in ends
        .iter()
        .flat_map(|end| [-end, 1 - end, *end - 1, *end, *end + 1])
    {
        let base = 1i64 << 40;
        let delta = 1i64 << 21;
        round_trip(&[(base, 0), (base + delta, 0), (base + 2 * delta + change, 0)]);
    }
    round_trip(&[(0, 0), (i64::MAX, u64::MAX)]);
    round_trip(&[(i64::MIN, 1), (i64::MAX, 2), (i64::MAX, 1 << 63)]);
    // A stale marker and another NaN.
    round_trip(&[(1, 0x7ff0_0000_0000_0002), (2, 0x7ff8_0000_0000_0001)]);
}

#[test]
fn a_chunk_has_the_bytes_that_prometheus_makes() {
    // 1.0 at 1000, 2000 and 3001 ms, encoded by hand.
    let mut out = Vec::new();
    chunk::encode(&[1000, 2000, 3001], &[1.0, 1.0, 1.0], &mut out);
    let bits = [
        "0000000000000011", // three samples
        "1101000000001111", // 1000 as zigzag varint: 0xd0 0x0f
        "0011111111110000", // 1.0
        "000000000000000000000000000000000000000000000000",
        "1110100000000111", // difference 1000: 0xe8 0x07
        "0",                // the same value
        "1000000000000001", // change of 1 in 14 bits
        "0",
    ]
    .concat();
    let bytes: Vec<u8> = (0..bits.len().div_ceil(8))
        .map(|at| {
            let byte = &bits[at * 8..bits.len().min(at * 8 + 8)];
            u8::from_str_radix(&format!("{byte:0<8}"), 2).unwrap()
        })
        .collect();
    assert_eq!(out, bytes);
}

/// Messages in fields of a message.
fn parts(message: &[u8], wanted: u32) -> Vec<&[u8]> {
    let mut fields = Fields::of(message);
    let mut found = Vec::new();
    while let Some((number, value)) = fields.next_field().unwrap() {
        if let (true, Value::Bytes(bytes)) = (number == wanted, value) {
            found.push(bytes);
        }
    }
    found
}

fn number(message: &[u8], wanted: u32) -> Option<u64> {
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next_field().unwrap() {
        match value {
            Value::Varint(found) | Value::Fixed64(found) if number == wanted => return Some(found),
            _ => {}
        }
    }
    None
}

fn labels_of(series: &[u8]) -> Vec<(String, String)> {
    let text = |label, at| String::from_utf8(parts(label, at)[0].to_vec()).unwrap();
    let labels = parts(series, 1).into_iter();
    labels
        .map(|label| (text(label, 1), text(label, 2)))
        .collect()
}

const LABELS: [(&[u8], &[u8]); 2] = [(b"__name__", b"up"), (b"job", b"a")];

#[test]
fn samples_of_several_queries_are_one_message() {
    let mut answer = SamplesAnswer::new();
    answer.begin_series(LABELS.into_iter());
    answer.samples(&[1000, 2000], &[1.5, f64::from_bits(0x7ff0_0000_0000_0002)]);
    answer.samples(&[3000], &[0.0]);
    answer.end_series();
    answer.begin_series(LABELS[..1].iter().copied());
    answer.samples(&[i64::MAX], &[-1.0]);
    answer.end_series();
    answer.end_query();
    answer.end_query();
    let message = answer.finish();
    let results = parts(&message, 1);
    assert_eq!((results.len(), results[1].len()), (2, 0));
    let series = parts(results[0], 1);
    assert_eq!(
        labels_of(series[0]),
        [("__name__".into(), "up".into()), ("job".into(), "a".into())]
    );
    let samples = |series| -> Vec<(u64, u64)> {
        let samples = parts(series, 2).into_iter();
        samples
            .map(|sample| (number(sample, 2).unwrap(), number(sample, 1).unwrap()))
            .collect()
    };
    let one = 1.5f64.to_bits();
    assert_eq!(
        samples(series[0]),
        [(1000, one), (2000, 0x7ff0_0000_0000_0002), (3000, 0)]
    );
    assert_eq!(samples(series[1]), [(i64::MAX as u64, (-1f64).to_bits())]);
}

/// The messages of frames; checks their checksums.
fn messages(mut frames: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while !frames.is_empty() {
        let length = varint(&mut frames).unwrap() as usize;
        let (crc, rest) = frames.split_first_chunk::<4>().unwrap();
        let (message, rest) = rest.split_at(length);
        assert_eq!(u32::from_be_bytes(*crc), crc_fast::crc32_iscsi(message));
        found.push(message.to_vec());
        frames = rest;
    }
    found
}

#[test]
fn frames_hold_one_series_each_and_are_bounded() {
    let count = 200_000;
    let timestamps: Vec<i64> = (0..count).map(|at| at * 1000).collect();
    let values: Vec<f64> = (0..count).map(|at| (at as f64).sin()).collect();
    let (mut writer, mut out) = (FrameWriter::new(FRAME_BYTES), Vec::new());
    writer.begin_series(3, LABELS.into_iter());
    // In pieces that do not end with chunks.
    for (timestamps, values) in timestamps.chunks(777).zip(values.chunks(777)) {
        writer.samples(timestamps, values, &mut out);
    }
    writer.end_series(&mut out);
    writer.begin_series(4, LABELS[..1].iter().copied());
    writer.end_series(&mut out);
    writer.begin_series(4, LABELS[..1].iter().copied());
    writer.samples(&[7], &[8.0], &mut out);
    writer.end_series(&mut out);

    let messages = messages(&out);
    assert_eq!(messages.len(), 3);
    let mut read = Vec::new();
    for message in &messages[..2] {
        assert!(message.len() < FRAME_BYTES + 4096, "{}", message.len());
        assert_eq!(number(message, 2), Some(3));
        let series = parts(message, 1);
        assert_eq!((series.len(), labels_of(series[0]).len()), (1, 2));
        for chunk in parts(series[0], 2) {
            let samples = decode(parts(chunk, 4)[0]);
            assert_eq!(number(chunk, 1), Some(samples[0].0 as u64));
            assert_eq!(
                number(chunk, 2),
                samples.last().map(|sample| sample.0 as u64)
            );
            assert_eq!(number(chunk, 3), Some(1));
            read.extend(samples);
        }
    }
    let sent: Vec<(i64, u64)> = timestamps
        .into_iter()
        .zip(values.iter().map(|v| v.to_bits()))
        .collect();
    assert_eq!(read, sent);
    // The series without samples has no frame.
    assert_eq!(number(&messages[2], 2), Some(4));
    assert_eq!(
        decode(parts(parts(parts(&messages[2], 1)[0], 2)[0], 4)[0]),
        [(7, 8f64.to_bits())]
    );
}
