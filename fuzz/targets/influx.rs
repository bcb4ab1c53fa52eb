//! InfluxDB line protocol: samples and refusals do not depend on how the bytes are
//! split.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::influx::{Decoder, Precision};
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&size, text)) = input.split_first() else {
        return;
    };
    let mut whole = Collected::default();
    let read = Decoder::new(Precision::Nanoseconds).decode(text, true, &mut whole);
    assert_eq!(read, text.len());
    let mut pieces = Collected::default();
    let mut decoder = Decoder::new(Precision::Nanoseconds);
    let mut left = Vec::new();
    for piece in text.chunks(usize::from(size) + 1) {
        left.extend_from_slice(piece);
        let read = decoder.decode(&left, false, &mut pieces);
        left.drain(..read);
    }
    decoder.decode(&left, true, &mut pieces);
    assert_eq!(whole.refused, pieces.refused);
    assert_eq!(whole.lines(), pieces.lines());
    for (key, ..) in &whole.samples {
        let mut name = latewood_wire::series_name::SeriesName::new();
        assert!(name.read(key.as_bytes()), "{key} is not a series name");
    }
});
