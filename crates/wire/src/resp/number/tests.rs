//! What RedisTimeSeries 1.12 answered when asked for each text, but for values
//! with something behind the number, which it takes.

use super::{parse_float, parse_i64, parse_timestamp, parse_u64, parse_value};
use proptest::prelude::*;

const REFUSED: Option<f64> = None;

const SAMPLE_VALUES: &[(&str, Option<f64>)] = &[
    ("1", Some(1.0)),
    ("-1", Some(-1.0)),
    ("0", Some(0.0)),
    ("123456.789", Some(123456.789)),
    ("1e5", Some(1e5)),
    ("1E5", Some(1e5)),
    ("1e+5", Some(1e5)),
    ("1e-5", Some(1e-5)),
    ("1e0005", Some(1e5)),
    ("0.1e1", Some(1.0)),
    ("0e0", Some(0.0)),
    ("0e99999999999", Some(0.0)),
    ("12345678901234567890123", Some(1.2345678901234568e22)),
    ("18446744073709551616", Some(18446744073709551616.0)),
    ("1.7976931348623157e308", Some(f64::MAX)),
    ("1.7976931348623158e308", Some(f64::MAX)),
    ("5e-324", Some(5e-324)),
    ("2.4703282292062328e-324", Some(5e-324)),
    // Too small is zero, too large is refused.
    ("2e-324", Some(0.0)),
    ("1e-400", Some(0.0)),
    ("1e-99999999999999999", Some(0.0)),
    ("1e309", REFUSED),
    ("-1e400", REFUSED),
    ("1.7976931348623159e308", REFUSED),
    ("1e99999999999999999999", REFUSED),
    // RedisTimeSeries ignores what follows the number.
    ("5 ", REFUSED),
    ("5\t", REFUSED),
    ("1\n", REFUSED),
    ("1\0", REFUSED),
    ("1e5 ", REFUSED),
    ("1 e5", REFUSED),
    ("1_000", REFUSED),
    ("1,5", REFUSED),
    ("1.5.5", REFUSED),
    ("1-", REFUSED),
    ("1e5.5", REFUSED),
    ("1e5e5", REFUSED),
    ("1p3", REFUSED),
    ("0x10", REFUSED),
    ("-0x1p-1", REFUSED),
    ("0b1", REFUSED),
    // Not a JSON number at the start.
    ("", REFUSED),
    ("-", REFUSED),
    ("+", REFUSED),
    (".", REFUSED),
    ("+1", REFUSED),
    ("+-1", REFUSED),
    ("--1", REFUSED),
    ("- 1", REFUSED),
    (" 5", REFUSED),
    ("\t5", REFUSED),
    ("\x001", REFUSED),
    (".5", REFUSED),
    ("-.5", REFUSED),
    ("5.", REFUSED),
    ("1.e1", REFUSED),
    (".e1", REFUSED),
    ("e5", REFUSED),
    ("1e", REFUSED),
    ("1e+", REFUSED),
    ("1e +5", REFUSED),
    ("00", REFUSED),
    ("007", REFUSED),
    ("-007", REFUSED),
    ("00.5", REFUSED),
    ("inf", REFUSED),
    ("-Inf", REFUSED),
    ("infinity", REFUSED),
    ("n", REFUSED),
    ("\u{661}", REFUSED),
];

#[test]
fn sample_values_as_ts_add_accepts_them() {
    for (text, expected) in SAMPLE_VALUES {
        assert_eq!(parse_value(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn long_sample_values() {
    let ones = |count: usize| "1".repeat(count);
    assert_eq!(
        parse_value(ones(309).as_bytes()),
        Some(1.1111111111111112e308)
    );
    assert_eq!(parse_value(ones(310).as_bytes()), None);
    assert_eq!(
        parse_value(format!("0.{}", ones(400)).as_bytes()),
        Some(0.1111111111111111)
    );
    assert_eq!(
        parse_value(format!("0.{}1", "0".repeat(400)).as_bytes()),
        Some(0.0)
    );
    assert_eq!(
        parse_value(format!("{}1", "0".repeat(500)).as_bytes()),
        None
    );
}

#[test]
fn a_negative_zero_keeps_its_sign() {
    for text in ["-0", "-0.0", "-0e5", "-1e-400"] {
        let value = parse_value(text.as_bytes()).unwrap();
        assert_eq!(value.to_bits(), (-0.0f64).to_bits(), "{text}");
    }
}

#[test]
fn nan_is_a_value_as_in_newer_servers() {
    for text in ["nan", "NaN", "NAN", "-nan"] {
        assert!(
            parse_value(text.as_bytes()).is_some_and(f64::is_nan),
            "{text}"
        );
    }
    for text in ["+nan", "nan(1)", "nan ", "na"] {
        assert_eq!(parse_value(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn other_floats_as_ts_incrby_accepts_them() {
    let table: &[(&str, Option<f64>)] = &[
        ("1", Some(1.0)),
        ("+1", Some(1.0)),
        (".5", Some(0.5)),
        ("5.", Some(5.0)),
        ("007", Some(7.0)),
        ("1e-323", Some(1e-323)),
        ("0e-999", Some(0.0)),
        ("inf", Some(f64::INFINITY)),
        ("-Infinity", Some(f64::NEG_INFINITY)),
        (" 1", REFUSED),
        ("1 ", REFUSED),
        ("", REFUSED),
        ("1x", REFUSED),
        ("nan", REFUSED),
        ("1e400", REFUSED),
        ("-1e400", REFUSED),
        ("1e-400", REFUSED),
    ];
    for (text, expected) in table {
        assert_eq!(parse_float(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn integers_are_strict() {
    for (text, expected) in [
        ("0", Some(0)),
        ("1", Some(1)),
        ("-1", Some(-1)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("18446744073709551616", None),
        ("111111111111111111111111111111", None),
        ("+1", None),
        ("-0", None),
        ("--1", None),
        ("01", None),
        ("00", None),
        (" 1", None),
        ("1 ", None),
        ("1.0", None),
        ("1e3", None),
        ("0x10", None),
        ("", None),
        ("-", None),
        ("*", None),
    ] {
        assert_eq!(parse_i64(text.as_bytes()), expected, "{text:?}");
        let timestamp = expected.filter(|value| *value >= 0);
        assert_eq!(parse_timestamp(text.as_bytes()), timestamp, "{text:?}");
    }
    assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
    assert_eq!(parse_u64(b"18446744073709551616"), None);
    assert_eq!(parse_u64(b"+1844674407370955161"), None);
}

proptest! {
    #[test]
    fn integers_that_are_written_are_read(value: i64) {
        prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
    }

    #[test]
    fn floats_that_are_written_are_read(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = format!("{value:e}");
        prop_assert_eq!(parse_value(text.as_bytes()).map(f64::to_bits), Some(bits));
        prop_assert_eq!(parse_float(text.as_bytes()).map(f64::to_bits), Some(bits));
    }
}
