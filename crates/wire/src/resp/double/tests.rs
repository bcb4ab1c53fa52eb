//! `table.tsv`: the bits of an f64 and the texts that RedisTimeSeries 1.12 gave for it.

use super::{append_resp2, append_resp3};
use proptest::prelude::*;

fn resp2(value: f64) -> String {
    let mut out = Vec::new();
    append_resp2(&mut out, value);
    String::from_utf8(out).unwrap()
}

fn resp3(value: f64) -> String {
    let mut out = Vec::new();
    append_resp3(&mut out, value);
    String::from_utf8(out).unwrap()
}

#[test]
fn every_value_is_written_as_the_real_server_writes_it() {
    let mut rows = 0;
    for row in include_str!("table.tsv").lines() {
        let columns: Vec<&str> = row.split('\t').collect();
        let [bits, expected_resp2, expected_resp3] = columns[..] else {
            panic!("not three columns: {row}");
        };
        let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(resp2(value), expected_resp2, "RESP2 of {bits}");
        assert_eq!(resp3(value), expected_resp3, "RESP3 of {bits}");
        rows += 1;
    }
    assert!(rows > 900, "only {rows} rows in the table");
}

/// Redis writes these with Grisu2's digits, which are not always the shortest
/// or the closest. Both texts must read back as the same value.
#[test]
fn resp3_digits_differ_from_redis_only_in_text() {
    for (bits, redis, ours) in [
        (
            0x4200_c6f7_a0b5_ed8e,
            "9007199254.740994",
            "9007199254.740993",
        ),
        (
            0x4309_9999_9999_999a,
            "900719925474099.3",
            "900719925474099.2",
        ),
        (0xc480_c570_cb5c_6a7a, "-9900000000000001000000", "-9.9e+21"),
        (0x44b5_2d02_c7e1_4af6, "99999999999999990000000", "1e+23"),
    ] {
        let value = f64::from_bits(bits);
        assert_eq!(resp3(value), ours);
        assert_eq!(redis.parse::<f64>().unwrap().to_bits(), bits);
    }
}

#[test]
fn nan_payloads_and_signs_are_not_shown() {
    for bits in [
        0x7ff8_0000_0000_0000,
        0xfff8_0000_0000_0000,
        0x7ff0_0000_0000_0001,
    ] {
        assert_eq!(resp2(f64::from_bits(bits)), "NaN");
        assert_eq!(resp3(f64::from_bits(bits)), "nan");
    }
}

proptest! {
    #[test]
    fn every_text_reads_back_as_the_same_bits(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        prop_assert_eq!(resp2(value).parse::<f64>().unwrap().to_bits(), bits);
        prop_assert_eq!(resp3(value).parse::<f64>().unwrap().to_bits(), bits);
    }

    #[test]
    fn whole_numbers_read_back_as_the_same_bits(whole: i64, shift in 0u32..63) {
        let value = (whole >> shift) as f64;
        prop_assert_eq!(resp2(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        prop_assert_eq!(resp3(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
    }
}
