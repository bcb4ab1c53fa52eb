//! Series files and their rows: no bytes make a reader panic, and accepted rows
//! round-trip.
#![cfg_attr(fuzzing, no_main)]

use latewood_engine::fuzz_series_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_series_file(bytes);
});
