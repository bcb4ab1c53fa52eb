//! What each kind of reply looks like in both versions, and that the client side reads it back.

use super::Reply;
use crate::resp::{Protocol, Value, parse_reply};
use proptest::prelude::*;

/// The bytes that `write` produces in RESP2 and in RESP3.
fn both(write: impl Fn(&mut Reply<'_>)) -> [String; 2] {
    [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, protocol));
        String::from_utf8(out).unwrap()
    })
}

#[test]
fn types_that_both_versions_have() {
    let same = |write: fn(&mut Reply<'_>), expected: &str| {
        assert_eq!(both(write), [expected, expected]);
    };
    same(|r| r.ok(), "+OK\r\n");
    same(|r| r.simple("PONG"), "+PONG\r\n");
    same(
        |r| r.error("ERR no\r\nsuch thing"),
        "-ERR no  such thing\r\n",
    );
    same(|r| r.integer(1_700_000_000_000), ":1700000000000\r\n");
    same(|r| r.integer(i64::MIN), ":-9223372036854775808\r\n");
    same(|r| r.bulk("a\r\nb"), "$4\r\na\r\nb\r\n");
    same(|r| r.bulk(""), "$0\r\n\r\n");
    same(|r| r.bulk("0123456789"), "$10\r\n0123456789\r\n");
    same(|r| r.array(9), "*9\r\n");
    same(|r| r.array(12), "*12\r\n");
}

#[test]
fn a_sample_is_its_timestamp_and_its_value() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -7.0,
        0.25,
        1.5,
        -12.345678901234567,
        123456.789,
        1e15,
        1e16,
        1e300,
        -2.2250738585072014e-308,
        4503599627370495.5,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for timestamp in [0, 5, 1_700_000_000_000, i64::MAX, i64::MIN] {
        for value in values {
            let apart = both(|r| {
                r.array(2);
                r.integer(timestamp);
                r.double(value);
            });
            assert_eq!(both(|r| r.sample(timestamp, value)), apart);
        }
    }
}

#[test]
fn samples_are_as_one_after_another() {
    let timestamps = [
        i64::MIN,
        -1,
        7,
        99_999_999,
        100_000_000,
        199_999_999,
        200_000_000,
        1_699_999_999_999,
        1_700_000_000_000,
        1_700_000_000_001,
        1_699_999_999_000,
        i64::MAX,
    ];
    // Longer texts first: what is left of them in the room is not shown.
    let values = [
        1.234567890123456,
        -98765.4321,
        4503599627370497.0,
        1e300,
        1e12,
        7.0,
        f64::NAN,
        -0.0,
        0.375,
        f64::INFINITY,
        -2.5,
        1.0,
    ];
    let apart = both(|r| {
        for (timestamp, value) in timestamps.iter().zip(&values) {
            r.array(2);
            r.integer(*timestamp);
            r.double(*value);
        }
    });
    assert_eq!(both(|r| r.samples(&timestamps, &values)), apart);
}

#[test]
fn types_that_resp2_lacks() {
    assert_eq!(both(|r| r.null()), ["$-1\r\n", "_\r\n"]);
    assert_eq!(both(|r| r.null_array()), ["*-1\r\n", "_\r\n"]);
    assert_eq!(both(|r| r.map(2)), ["*4\r\n", "%2\r\n"]);
    assert_eq!(both(|r| r.set(3)), ["*3\r\n", "~3\r\n"]);
    assert_eq!(both(|r| r.push(2)), ["*2\r\n", ">2\r\n"]);
    assert_eq!(both(|r| r.double(0.125)), ["+1.25E-1\r\n", ",0.125\r\n"]);
    assert_eq!(both(|r| r.double(f64::NAN)), ["+NaN\r\n", ",nan\r\n"]);
    assert_eq!(both(|r| r.boolean(true)), [":1\r\n", "#t\r\n"]);
    assert_eq!(both(|r| r.boolean(false)), [":0\r\n", "#f\r\n"]);
    assert_eq!(
        both(|r| r.verbatim(*b"txt", "hi")),
        ["$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"]
    );
}

proptest! {
    #[test]
    fn the_client_side_reads_back_what_was_written(
        bulk in prop::collection::vec(any::<u8>(), 0..40),
        integer: i64,
        double in any::<f64>(),
    ) {
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Protocol::Resp3);
        reply.map(1);
        reply.bulk(&bulk);
        reply.array(2);
        reply.integer(integer);
        reply.double(double);
        let expected = Value::Map(vec![(
            Value::Bulk(bulk),
            Value::Array(vec![Value::Integer(integer), Value::Double(double)]),
        )]);
        prop_assert_eq!(parse_reply(&out), Ok(Some((out.len(), expected))));
    }
}
