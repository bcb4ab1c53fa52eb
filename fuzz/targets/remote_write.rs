//! Remote write messages in both versions: no input may panic, and the key of each
//! accepted sample can be parsed back.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::prometheus::write::{Decoder, Version};
use latewood_wire::series_name::SeriesName;
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| {
    let mut decoder = Decoder::new();
    for version in [Version::V1, Version::V2] {
        let mut intake = Collected::default();
        // A damaged message is an error; the samples before it were delivered.
        let _ = decoder.decode(version, message, &mut intake);
        for key in &intake.keys {
            assert!(SeriesName::new().read(key.as_bytes()));
        }
    }
});
