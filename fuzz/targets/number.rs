//! Numbers: the accepted texts are those of their grammars, and every f64 is
//! written in a form that parses back to the same bits.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::resp::{double, number};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(value) = number::parse_i64(bytes) {
        assert_eq!(value.to_string().as_bytes(), bytes);
    }
    assert_eq!(
        number::parse_timestamp(bytes),
        number::parse_i64(bytes).filter(|t| *t >= 0)
    );
    if let Some(value) = number::parse_u64(bytes) {
        assert_eq!(value.to_string().as_bytes(), bytes);
    }
    if let Some(value) = number::parse_value(bytes) {
        assert!(value.is_nan() || value.is_finite());
        write_and_read(value);
    }
    if let Some(value) = number::parse_float(bytes) {
        assert!(!value.is_nan());
        write_and_read(value);
    }
    if let Some(bits) = bytes.first_chunk() {
        write_and_read(f64::from_bits(u64::from_le_bytes(*bits)));
    }
});

fn write_and_read(value: f64) {
    let (mut resp2, mut resp3) = (Vec::new(), Vec::new());
    double::append_resp2(&mut resp2, value);
    double::append_resp3(&mut resp3, value);
    for text in [resp2, resp3] {
        assert!(text.len() <= 24 + 8, "long text");
        let read: f64 = String::from_utf8(text)
            .expect("ASCII")
            .parse()
            .expect("a number");
        assert!(read.to_bits() == value.to_bits() || (read.is_nan() && value.is_nan()));
    }
}
