//! Series files and their rows: no bytes make a reader panic, and rows that are
//! taken are written and read again as they were.
#![no_main]

use latewood_engine::fuzz_series_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_series_file(bytes);
});
