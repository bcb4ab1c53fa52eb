//! Series names: a parsed key is written back unchanged, and labels survive the way
//! to a key and back.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::series_name::SeriesName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut name = SeriesName::new();
    if name.read(input) {
        assert_eq!(name.key(), input);
    }
    let mut parts = input.split(|byte| *byte == 0);
    name.begin(parts.next().unwrap_or_default());
    while let (Some(label), Some(value)) = (parts.next(), parts.next()) {
        name.label(label, value);
    }
    if name.finish().is_ok() {
        let mut again = SeriesName::new();
        assert!(again.read(name.key()));
        assert!(again.labels().eq(name.labels()));
    }
});
