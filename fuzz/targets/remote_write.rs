//! Messages of remote write, in both versions: no input may panic, and each
//! sample that is taken has a key that can be read back.
#![no_main]

use latewood_wire::testing::Collected;
use latewood_wire::prometheus::write::{Decoder, Version};
use latewood_wire::series_name::SeriesName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| {
    let mut decoder = Decoder::new();
    for version in [Version::V1, Version::V2] {
        let mut intake = Collected::default();
        // A damaged message is an error, and what stood before it was brought.
        let _ = decoder.decode(version, message, &mut intake);
        for key in &intake.keys {
            assert!(SeriesName::new().read(key.as_bytes()));
        }
    }
});
