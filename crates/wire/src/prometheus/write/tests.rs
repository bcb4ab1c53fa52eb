//! Messages made by prost's derived types, in; samples out.

use super::*;
use crate::testing::Collected;
use latewood_model::limits::LABEL_BYTES_MAX;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct SeriesV1 {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(bytes = "vec", repeated, tag = "4")]
    histograms: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct FamilyV1 {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "4")]
    help: String,
    #[prost(string, tag = "5")]
    unit: String,
}

#[derive(Clone, PartialEq, Message)]
struct RequestV1 {
    #[prost(message, repeated, tag = "1")]
    series: Vec<SeriesV1>,
    #[prost(message, repeated, tag = "3")]
    metadata: Vec<FamilyV1>,
}

#[derive(Clone, PartialEq, Message)]
struct MetadataV2 {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(uint32, tag = "3")]
    help: u32,
    #[prost(uint32, tag = "4")]
    unit: u32,
}

#[derive(Clone, PartialEq, Message)]
struct ToldV2 {
    #[prost(uint32, repeated, tag = "1")]
    labels: Vec<u32>,
    #[prost(message, optional, tag = "5")]
    metadata: Option<MetadataV2>,
}

#[derive(Clone, PartialEq, Message)]
struct RequestToldV2 {
    #[prost(string, repeated, tag = "4")]
    symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    series: Vec<ToldV2>,
}

#[test]
fn metadata_of_both_versions_is_delivered() {
    let family = |kind, name: &str| FamilyV1 {
        kind,
        name: name.to_owned(),
        help: "h".to_owned(),
        unit: "s".to_owned(),
    };
    let request = RequestV1 {
        series: vec![],
        metadata: vec![family(1, "c_total"), family(99, "odd"), family(0, "")],
    };
    let (intake, _) = read(Version::V1, &request);
    let expected = [
        "c_total type=\"counter\" help=\"h\" unit=\"s\"",
        "odd help=\"h\" unit=\"s\"",
    ];
    assert_eq!(intake.metadata, expected);

    let told = |labels: &[u32], kind, help| ToldV2 {
        labels: labels.to_vec(),
        metadata: Some(MetadataV2 {
            kind,
            help,
            unit: 0,
        }),
    };
    let symbols = ["", "__name__", "h_bucket", "c_total", "text", "le", "1"];
    let request = RequestToldV2 {
        symbols: symbols.map(String::from).to_vec(),
        series: vec![
            told(&[1, 2, 5, 6], 3, 4),
            told(&[1, 2], 3, 4),
            told(&[1, 3], 1, 0),
            told(&[1, 3], 0, 0),
            told(&[5, 6], 1, 4),
        ],
    };
    let (intake, _) = read(Version::V2, &request);
    let expected = [
        "h type=\"histogram\" help=\"text\" unit=\"\"",
        "c_total type=\"counter\" help=\"\" unit=\"\"",
    ];
    assert_eq!(intake.metadata, expected);
    let wrong = RequestToldV2 {
        symbols: vec![String::new(), "__name__".to_owned(), "m".to_owned()],
        series: vec![told(&[1, 2], 1, 9)],
    };
    let mut intake = Collected::default();
    let decoded = Decoder::new().decode(Version::V2, &wrong.encode_to_vec(), &mut intake);
    assert_eq!((decoded, intake.metadata), (Ok(Passed::default()), vec![]));
}

#[derive(Clone, PartialEq, Message)]
struct SeriesV2 {
    #[prost(uint32, repeated, tag = "1")]
    labels: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    histograms: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "4")]
    exemplars: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct RequestV2 {
    #[prost(string, repeated, tag = "4")]
    symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    series: Vec<SeriesV2>,
}

fn labels(pairs: &[(&str, &str)]) -> Vec<Label> {
    let label = |(name, value): &(&str, &str)| Label {
        name: (*name).into(),
        value: (*value).into(),
    };
    pairs.iter().map(label).collect()
}

fn sample(timestamp: i64, value: f64) -> Sample {
    Sample { value, timestamp }
}

fn read(version: Version, message: &impl Message) -> (Collected, Passed) {
    let mut intake = Collected::default();
    let decoded = Decoder::new().decode(version, &message.encode_to_vec(), &mut intake);
    (intake, decoded.unwrap())
}

/// The NaN with which Prometheus marks the end of a series.
const STALE: u64 = 0x7ff0_0000_0000_0002;

#[test]
fn samples_of_version_1_with_their_bits() {
    let up = [("__name__", "up"), ("job", "a")];
    let request = RequestV1 {
        metadata: vec![],
        series: vec![
            SeriesV1 {
                labels: labels(&up),
                samples: vec![sample(1000, 1.0), sample(500, f64::from_bits(STALE))],
                histograms: vec![],
            },
            SeriesV1 {
                labels: labels(&[("le", "+Inf"), ("__name__", "d_bucket")]),
                samples: vec![sample(1000, 7.0)],
                histograms: vec![],
            },
            SeriesV1 {
                labels: labels(&up),
                samples: vec![sample(2000, f64::INFINITY)],
                histograms: vec![],
            },
        ],
    };
    let (intake, passed) = read(Version::V1, &request);
    let expected = [
        "up{job=\"a\"}@1000=1",
        "up{job=\"a\"}@500=NaN",
        "d_bucket{le=\"+Inf\"}@1000=7",
        "up{job=\"a\"}@2000=inf",
    ];
    assert_eq!(intake.lines(), expected);
    assert_eq!(intake.samples[1].2.to_bits(), STALE);
    assert_eq!(passed, Passed::default());
    assert_eq!(intake.refused, []);
}

#[test]
fn samples_of_version_2_refer_to_symbols() {
    let request = RequestV2 {
        symbols: ["", "__name__", "up", "job", "a"]
            .map(String::from)
            .to_vec(),
        series: vec![
            SeriesV2 {
                labels: vec![1, 2, 3, 4],
                samples: vec![sample(1000, 1.0)],
                histograms: vec![],
                exemplars: vec![vec![]],
            },
            SeriesV2 {
                labels: vec![1, 2],
                samples: vec![],
                histograms: vec![vec![8, 1], vec![8, 2]],
                exemplars: vec![],
            },
        ],
    };
    let (intake, passed) = read(Version::V2, &request);
    assert_eq!(intake.lines(), ["up{job=\"a\"}@1000=1"]);
    assert_eq!((passed.histograms, passed.exemplars), (2, 1));
    assert_eq!(intake.refused.len(), 2);
    assert_eq!(
        (intake.refused[0].0, intake.refused[0].1),
        (2, Reason::Value)
    );
}

#[test]
fn bad_labels_cost_their_series_alone() {
    let series = |pairs: &[(&str, &str)]| SeriesV1 {
        labels: labels(pairs),
        samples: vec![sample(1, 1.0), sample(2, 2.0)],
        histograms: vec![],
    };
    let request = RequestV1 {
        metadata: vec![],
        series: vec![
            series(&[("job", "a")]),
            series(&[("__name__", "m"), ("job", "a"), ("job", "b")]),
            series(&[("__name__", "m"), ("__name__", "n")]),
            series(&[("__name__", "m"), ("", "n")]),
            series(&[("__name__", "m"), ("job", "")]),
        ],
    };
    let (intake, _) = read(Version::V1, &request);
    let refused: Vec<_> = intake
        .refused
        .iter()
        .map(|(line, why, _)| (*line, *why))
        .collect();
    let expected = [1, 1, 2, 2, 3, 3, 4, 4].map(|line| (line, Reason::Name));
    assert_eq!(refused, expected);
    assert_eq!(intake.lines(), ["m@1=1", "m@2=2"]);
}

#[test]
fn damaged_messages_are_refused_at_every_prefix_that_cuts_one() {
    let request = RequestV2 {
        symbols: ["", "__name__", "up"].map(String::from).to_vec(),
        series: vec![SeriesV2 {
            labels: vec![1, 2],
            samples: vec![sample(1000, 1.0)],
            histograms: vec![],
            exemplars: vec![],
        }],
    };
    let message = request.encode_to_vec();
    for end in 0..message.len() {
        let mut intake = Collected::default();
        // A prefix that ends between two fields is a message, without samples.
        let _ = Decoder::new().decode(Version::V2, &message[..end], &mut intake);
        assert_eq!(intake.lines(), Vec::<String>::new());
    }
    for (labels, error) in [
        (vec![1, 9], ProtobufError::NoSymbol(9)),
        (vec![1, 2, 0], ProtobufError::OddReferences),
    ] {
        let mut request = request.clone();
        request.series[0].labels = labels;
        let mut intake = Collected::default();
        let decoded = Decoder::new().decode(Version::V2, &request.encode_to_vec(), &mut intake);
        assert_eq!(decoded, Err(error));
    }
}

#[test]
fn a_label_without_a_name_is_refused_where_the_series_is_known_without_it() {
    let series = |pairs: &[(&str, &str)], at| SeriesV1 {
        labels: labels(pairs),
        samples: vec![sample(at, 1.0)],
        histograms: vec![],
    };
    let (first, up) = (("__name__", "first"), ("__name__", "up"));
    let request = RequestV1 {
        metadata: vec![],
        series: vec![
            series(&[first], 1),
            series(&[up], 2),
            series(&[first], 3),
            series(&[up, ("", "x")], 4),
        ],
    };
    let (intake, _) = read(Version::V1, &request);
    assert_eq!(intake.lines(), ["first@1=1", "up@2=1", "first@3=1"]);
    let refused: Vec<_> = intake
        .refused
        .iter()
        .map(|(line, why, _)| (*line, *why))
        .collect();
    assert_eq!(refused, [(4, Reason::Name)]);
}

/// A request of version 2 with series that each refer to these symbols.
fn by_reference(symbols: &[&str], references: &[u32], series: usize) -> RequestV2 {
    let one = SeriesV2 {
        labels: references.to_vec(),
        samples: vec![sample(1, 1.0)],
        histograms: vec![],
        exemplars: vec![],
    };
    RequestV2 {
        symbols: symbols.iter().copied().map(String::from).collect(),
        series: vec![one; series],
    }
}

#[test]
fn labels_that_refer_to_a_long_symbol_again_and_again_are_not_written_out() {
    let long = "a".repeat(1 << 20);
    let up = ["__name__", "up", &long];
    let mut request = by_reference(&up, &[2; 256], 1);
    request.series.extend(by_reference(&up, &[0, 1], 1).series);
    let (mut decoder, mut intake) = (Decoder::new(), Collected::default());
    let decoded = decoder.decode(Version::V2, &request.encode_to_vec(), &mut intake);
    assert_eq!(decoded, Ok(Passed::default()));
    assert_eq!(intake.refused.len(), 1);
    let (line, reason, text) = &intake.refused[0];
    assert_eq!((*line, *reason), (1, Reason::Name));
    assert_eq!(text, "the labels take more than 262144 bytes");
    assert_eq!(intake.lines(), ["up@1=1"]);
    assert!(decoder.labels.bytes().len() <= LABEL_BYTES_MAX + 8);
    // An invalid reference is still an error.
    for (odd, error) in [
        (3, ProtobufError::NoSymbol(3)),
        (2, ProtobufError::OddReferences),
    ] {
        let request = by_reference(&up, &[2, 2, odd], 1);
        let decoded = decoder.decode(Version::V2, &request.encode_to_vec(), &mut intake);
        assert_eq!(decoded, Err(error));
    }
}

#[test]
fn the_labels_of_one_message_are_bounded_as_often_as_they_are_referred_to() {
    let long = "a".repeat(200_000);
    let few = by_reference(&["__name__", &long], &[0, 1], 100);
    let (intake, _) = read(Version::V2, &few);
    assert_eq!(intake.refused.len(), 100);
    // Labels of series without samples count too.
    let mut many = by_reference(&["__name__", &long], &[0, 1], 6000);
    many.series
        .iter_mut()
        .for_each(|series| series.samples.clear());
    let mut intake = Collected::default();
    let decoded = Decoder::new().decode(Version::V2, &many.encode_to_vec(), &mut intake);
    assert_eq!(decoded, Err(ProtobufError::TooManyLabels));
}

#[test]
fn the_symbols_of_one_message_are_bounded() {
    let message: Vec<u8> = [4 << 3 | 2, 0].repeat(SYMBOLS_MAX + 1);
    let mut intake = Collected::default();
    let decoded = Decoder::new().decode(Version::V2, &message, &mut intake);
    assert_eq!(decoded, Err(ProtobufError::TooManySymbols));
    let decoded = Decoder::new().decode(Version::V2, &message[2..], &mut intake);
    assert_eq!(decoded, Ok(Passed::default()));
}
