//! Lines in, samples and refusals out; whole, in pieces and through a cache.

use super::*;
use crate::intake::{Moment, Reason};
use crate::testing::Collected;
use proptest::prelude::*;

fn decode_with(decoder: &mut Decoder, text: &str) -> Collected {
    let mut intake = Collected::at(777);
    assert_eq!(
        decoder.decode(text.as_bytes(), true, &mut intake),
        text.len()
    );
    intake
}

fn decode(text: &str) -> Collected {
    decode_with(&mut Decoder::new(Precision::Nanoseconds), text)
}

/// The text of the only refusal.
fn refusal(text: &str) -> String {
    let intake = decode(text);
    assert_eq!(
        intake.lines(),
        Vec::<String>::new(),
        "{text} brought samples"
    );
    assert_eq!(intake.refused.len(), 1, "{text}: {:?}", intake.refused);
    intake.refused[0].2.clone()
}

#[test]
fn each_field_is_a_series_with_the_tags_as_labels() {
    let intake = decode("cpu,region=eu,host=a user=1.5,system=2i,idle=7u 1700000000000000000\n");
    assert_eq!(
        intake.lines(),
        [
            "cpu_user{host=\"a\",region=\"eu\"}@1700000000000=1.5",
            "cpu_system{host=\"a\",region=\"eu\"}@1700000000000=2",
            "cpu_idle{host=\"a\",region=\"eu\"}@1700000000000=7",
        ]
    );
}

#[test]
fn booleans_are_one_and_zero_and_texts_are_counted() {
    let intake = decode("m a=t,b=False,c=\"x,y=1 \\\" z\",d=TRUE 1000000\nn t=\"only\" 1\n");
    assert_eq!(intake.lines(), ["m_a@1=1", "m_b@1=0", "m_d@1=1"]);
    assert_eq!((intake.texts, intake.refused.len()), (2, 0));
}

#[test]
fn no_timestamp_is_now_and_the_last_line_needs_no_break() {
    assert_eq!(decode("m v=1").lines(), ["m_v@777=1"]);
    assert_eq!(
        decode("m v=1 \r\nm v=2 5000000\r\n").lines(),
        ["m_v@777=1", "m_v@5=2"]
    );
}

#[test]
fn precisions_are_milliseconds_in_the_end() {
    for (name, wanted) in [
        ("n", "m_v@12=1"),
        ("u", "m_v@12345=1"),
        ("ms", "m_v@12345678=1"),
        ("s", "m_v@12345678000=1"),
        ("m", "m_v@740740680000=1"),
        ("h", "m_v@44444440800000=1"),
    ] {
        let mut decoder = Decoder::new(Precision::parse(name).unwrap());
        assert_eq!(
            decode_with(&mut decoder, "m v=1 12345678").lines(),
            [wanted]
        );
    }
    assert_eq!(Precision::parse("d"), None);
}

#[test]
fn parts_of_a_millisecond_are_rounded_down() {
    let intake = decode("m v=1 1999999\nm v=1 2000000\nm v=1 -1\n");
    let moment = |ms, is_rounded| Moment { ms, is_rounded };
    let moments: Vec<_> = intake.samples.iter().map(|sample| sample.1).collect();
    assert_eq!(
        moments,
        [moment(1, true), moment(2, false), moment(-1, true)]
    );
}

#[test]
fn a_backslash_escapes_the_delimiter_directly_after_it_and_is_literal_elsewhere() {
    for (line, series) in [
        (r"cpu,dom=A\,B v=1", r#"cpu_v{dom="A,B"}"#),
        (r"cpu,dom=A\\,B v=1", r#"cpu_v{dom="A\\,B"}"#),
        // As the official client for Python writes `D:\ data`.
        (r"cpu,dom=D:\\ data v=1", r#"cpu_v{dom="D:\\ data"}"#),
        (r"cpu,dom=D:\\\\,x v=1", r#"cpu_v{dom="D:\\\\\\,x"}"#),
        (r"cpu,reg\\=ion=east v=1", r#"cpu_v{"reg\\=ion"="east"}"#),
        (
            r"cpu,a\ b=c\,d\=e,k=\n v=1",
            r#"cpu_v{"a b"="c,d=e",k="\\n"}"#,
        ),
        (r"cpu,dom=A\\B v=1", r#"cpu_v{dom="A\\\\B"}"#),
        (r"my\ cpu\,x=\\,y,a=b v=1", r#"{"my cpu,x=\\,y_v",a="b"}"#),
        (r"my\\ cpu,a=b v=1", r#"{"my\\ cpu_v",a="b"}"#),
        (r#"m\"\=\n,a=b v=1"#, r#"{"m\"=\\n_v",a="b"}"#),
        (r"m f\\=g=1", r#"{"m_f\\=g"}"#),
        (r"m f\\ \,g\==1", r#"{"m_f\\ ,g="}"#),
    ] {
        let line = format!("{line} 1000000\n");
        assert_eq!(decode(&line).lines(), [format!("{series}@1=1")], "{line}");
    }
}

#[test]
fn blank_lines_and_comments_are_passed_over() {
    let intake = decode("\n# m v=1 1\n  \n\r\n   m v=2 1000000\n#end");
    assert_eq!(intake.lines(), ["m_v@1=2"]);
    assert_eq!(intake.samples[0].3, 5);
}

#[test]
fn numbers_are_read_to_the_last_bit() {
    for text in [
        "0",
        "-0",
        "1",
        "-1.5",
        "0.1",
        ".5",
        "1.",
        "123456789012345",
        "1234567890123456789",
        "58.1317132304976170",
        "0.30000000000000004",
        "1e10",
        "-1.25E-7",
        "2.2250738585072014e-308",
        "999999999999999",
        "99999999.9999999",
    ] {
        let intake = decode(&format!("m v={text} 1\n"));
        let wanted: f64 = text.parse().unwrap();
        assert_eq!(intake.samples[0].2.to_bits(), wanted.to_bits(), "{text}");
    }
    for (text, wanted) in [
        ("9223372036854775807i", i64::MAX as f64),
        ("-9223372036854775808i", i64::MIN as f64),
        ("18446744073709551615u", u64::MAX as f64),
        ("-0i", 0.0),
    ] {
        let intake = decode(&format!("m v={text} 1\n"));
        assert_eq!(
            intake.samples[0].2.to_bits(),
            f64::to_bits(wanted),
            "{text}"
        );
    }
}

#[test]
fn bad_lines_are_refused_in_words_and_the_others_kept() {
    for (line, why) in [
        ("m", "missing fields"),
        ("m,a=b", "missing fields"),
        ("m ", "missing fields"),
        (",a=b v=1", "missing measurement"),
        ("m, v=1", "missing tag key"),
        ("m,a v=1", "missing tag value"),
        ("m,a= v=1", "missing tag value"),
        (
            "m,check=C:\\,host=a v=1",
            "invalid tag format: unescaped '=' in a tag value",
        ),
        (
            "m,a=b=c v=1",
            "invalid tag format: unescaped '=' in a tag value",
        ),
        ("m f\\=1", "missing field value"),
        ("m =1", "missing field key"),
        ("m v", "missing field value"),
        ("m v=", "missing field value"),
        ("m v=1,", "missing fields"),
        ("m v=1,,", "missing field key"),
        ("m v=one", "invalid field value"),
        ("m v=1x", "invalid field value"),
        ("m v=1.5i", "invalid field value"),
        ("m v=nan", "invalid field value"),
        ("m v=-inf", "invalid number"),
        ("m v=1e999", "invalid number"),
        ("m v=9223372036854775808i", "invalid number"),
        ("m v=-1u", "invalid number"),
        ("m v=\"open", "unbalanced quotes"),
        ("m v=\"x\"y", "invalid field value"),
        ("m v=1 12a", "bad timestamp"),
        ("m v=1 1 2", "bad timestamp"),
        ("m v=1 99999999999999999999", "time outside range"),
        ("m,a=1,a=2 v=1", "duplicate label \"a\""),
    ] {
        assert_eq!(
            refusal(line),
            format!("unable to parse '{}': {why}", line.trim_end())
        );
    }
    let intake = decode("m v=1 1000000\nm v=one 1\nm v=3 3000000\n");
    assert_eq!(intake.lines(), ["m_v@1=1", "m_v@3=3"]);
    assert_eq!((intake.refused[0].0, intake.samples[1].3), (2, 3));
}

#[test]
fn rows_are_found_in_any_order() {
    let mut text = String::new();
    for number in [0, 1, 2, 0, 2, 1, 1, 0, 2, 2] {
        text.push_str(&format!("m,t={number} a={number},b=1 {number}\n"));
    }
    // A text that contains the start of a known line, and a bad line.
    text.push_str("m,t=0 s=\"x\nm,t=1 a=9 9\n\",a=5 5\n m,t=1 a=6 6\n\nm,t=2 a=x 7\nm,t=1 a=8 8\n");
    let mut decoder = Decoder::new(Precision::Milliseconds);
    let collected = decode_with(&mut decoder, &text);
    let rows: Vec<_> = collected.rows.iter().map(|row| row.0.as_slice()).collect();
    assert_eq!(rows, [b"m,t=0 ", b"m,t=1 ", b"m,t=2 "]);
    let mut expected = Vec::new();
    for number in [0, 1, 2, 0, 2, 1, 1, 0, 2, 2] {
        expected.push(format!("m_a{{t=\"{number}\"}}@{number}={number}"));
        expected.push(format!("m_b{{t=\"{number}\"}}@{number}=1"));
    }
    for (row, value) in [(0, 5), (1, 6), (1, 8)] {
        expected.push(format!("m_a{{t=\"{row}\"}}@{value}={value}"));
    }
    assert_eq!(collected.lines(), expected);
    assert_eq!(collected.refused.len(), 1);
}

#[test]
fn names_that_are_no_text_are_refused() {
    let mut intake = Collected::default();
    let mut decoder = Decoder::new(Precision::Nanoseconds);
    decoder.decode(b"m,a=\xff v=1 1\nm v=1 1\n", true, &mut intake);
    assert_eq!(intake.refused[0].1, Reason::Name);
    assert_eq!(intake.samples.len(), 1);
}

#[test]
fn a_refused_field_is_told_of_once_however_often_its_line_is_looked_at() {
    let text = b"closed v=1,w=2 1\nopen v=3 1\nclosed v=4,w=x 1\n";
    for step in [1, 5, text.len()] {
        let mut intake = Collected::at(0);
        intake.closed = Some("closed_v".to_owned());
        let mut decoder = Decoder::new(Precision::Milliseconds);
        let (mut read, mut arrived) = (0, 0);
        while arrived < text.len() {
            arrived = (arrived + step).min(text.len());
            read += decoder.decode(&text[read..arrived], false, &mut intake);
        }
        assert_eq!(read, text.len());
        assert_eq!(intake.lines(), ["closed_w@1=2", "open_v@1=3"], "{step}");
        let refused: Vec<_> = intake.refused.iter().map(|r| (r.0, r.1)).collect();
        // A refused line reports nothing else.
        let expected = [(1, Reason::Permission), (3, Reason::Value)];
        assert_eq!(refused, expected, "{step}");
    }
}

#[test]
fn an_open_quote_spoils_its_own_line_only() {
    let intake = decode("m a=\"x 1\nm v=1 1000000\nm v=2 2000000\n");
    assert_eq!(intake.lines(), ["m_v@1=1", "m_v@2=2"]);
    assert_eq!(intake.refused.len(), 1);
}

#[test]
fn a_line_that_is_too_long_is_passed_over_as_it_comes() {
    let mut decoder = Decoder::new(Precision::Nanoseconds);
    let mut intake = Collected::default();
    let mut left: Vec<u8> = Vec::new();
    let long = [
        b"m v=".as_slice(),
        &vec![b'1'; 3 * LINE_BYTES_MAX],
        b" 1\nm v=5 5000000\n",
    ]
    .concat();
    for piece in long.chunks(300_000) {
        left.extend_from_slice(piece);
        let read = decoder.decode(&left, false, &mut intake);
        left.drain(..read);
        assert!(left.len() <= LINE_BYTES_MAX);
    }
    assert_eq!(intake.lines(), ["m_v@5=5"]);
    assert_eq!(
        (intake.refused.len(), intake.refused[0].1),
        (1, Reason::Long)
    );
}

/// Whatever a sender repeats in a line that it never ends.
#[test]
fn a_line_in_pieces_costs_its_bytes_a_few_times() {
    const LINE_BYTES: usize = 64 << 10;
    const LOOKS_MAX: usize = 4;
    for (start, repeated) in [
        ("m,t=", "x"),
        ("m,t=", "\\ "),
        ("", " "),
        ("# ", "x"),
        ("m ", "f=1,"),
        ("m ", "f=\"\","),
        ("m f=\"", "x"),
        ("m f=\"", "\n"),
        ("m f=\"", "\\\"\n"),
        ("m ", "f=\"\n\","),
        ("m f=1", "\r"),
        ("m f=\"\n\"", " "),
    ] {
        let mut decoder = Decoder::new(Precision::Nanoseconds).with_line_bytes_max(LINE_BYTES);
        let (mut intake, mut held) = (Collected::at(0), Vec::new());
        let bytes = start.bytes().chain(repeated.bytes().cycle());
        for byte in bytes.take(LINE_BYTES) {
            held.push(byte);
            held.drain(..decoder.decode(&held, false, &mut intake));
        }
        let looked = intake.looked_through_bytes;
        assert!(
            looked <= LOOKS_MAX * LINE_BYTES,
            "{start}{repeated}: {looked}"
        );
    }
}

#[test]
fn a_line_over_the_bound_is_refused_whole_or_in_pieces() {
    let text = b"m v=1 1000000\nm,tag=abcdefghij v=2 2000000\nm v=3 3000000\n";
    for piece in [1, 7, text.len()] {
        let mut decoder = Decoder::new(Precision::Nanoseconds).with_line_bytes_max(20);
        let mut intake = Collected::default();
        let mut left: Vec<u8> = Vec::new();
        for piece in text.chunks(piece) {
            left.extend_from_slice(piece);
            let read = decoder.decode(&left, false, &mut intake);
            left.drain(..read);
            assert!(left.len() <= 20);
        }
        assert_eq!(intake.lines(), ["m_v@1=1", "m_v@3=3"]);
        let refused: Vec<_> = intake.refused.iter().map(|it| (it.0, it.1)).collect();
        assert_eq!(refused, [(2, Reason::Long)]);
    }
}

#[test]
fn fields_may_come_and_go_and_change_places() {
    let intake = decode("m,h=a x=1,y=2 1\nm,h=b x=3 1\nm,h=a y=4,t=\"\",x=5,z=6 1\nm,h=a x=7 1\n");
    let lines: Vec<_> = intake.lines();
    assert_eq!(lines.len(), 7);
    assert_eq!(
        &lines[3..6],
        ["m_y{h=\"a\"}@0=4", "m_x{h=\"a\"}@0=5", "m_z{h=\"a\"}@0=6"]
    );
    assert_eq!(intake.rows.len(), 2);
}

#[test]
fn a_label_of_the_request_goes_with_every_series() {
    let mut decoder = Decoder::new(Precision::Seconds).with_label(b"db", b"telegraf");
    let intake = decode_with(&mut decoder, "m,h=a v=1 1\n");
    assert_eq!(intake.lines(), ["m_v{db=\"telegraf\",h=\"a\"}@1000=1"]);
}

#[test]
fn a_value_cut_short_behind_a_text_with_a_line_break_is_waited_for() {
    let line = b"m t=\"x\ny\",v=-1.5e-3,w=true 1000000\n";
    for cut in 0..line.len() {
        let mut intake = Collected::default();
        let mut decoder = Decoder::new(Precision::Nanoseconds);
        let read = decoder.decode(&line[..cut], false, &mut intake);
        assert_eq!((read, intake.refused.len()), (0, 0), "cut at {cut}");
        decoder.decode(line, true, &mut intake);
        assert_eq!(intake.lines(), ["m_v@1=-0.0015", "m_w@1=1"], "cut at {cut}");
    }
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        "[a-c\\\\,= \"#\n\r]{1,6}".prop_map(String::into_bytes),
        Just(b"m,h=a v=1".to_vec()),
        Just(b" 1000000\n".to_vec()),
        Just(b"m,h=b v=2i,w=\"t\n\" 5\n".to_vec()),
        Just(b"\n".to_vec()),
        "-?[0-9]{0,3}[.]?[0-9]{0,3}[eiu]?".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(word, 0..20).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn pieces_give_the_same_as_the_whole(text in any_text(), sizes in proptest::collection::vec(1usize..9, 1..9)) {
        let mut whole = Collected::default();
        Decoder::new(Precision::Nanoseconds).decode(&text, true, &mut whole);
        let mut pieces = Collected::default();
        let mut decoder = Decoder::new(Precision::Nanoseconds);
        let (mut left, mut rest) = (Vec::new(), &text[..]);
        for size in sizes.into_iter().cycle() {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            left.extend_from_slice(piece);
            rest = after;
            let read = decoder.decode(&left, rest.is_empty(), &mut pieces);
            left.drain(..read);
            if rest.is_empty() {
                break;
            }
        }
        prop_assert!(left.is_empty());
        prop_assert_eq!(whole.samples, pieces.samples);
        prop_assert_eq!(whole.refused, pieces.refused);
    }
}
