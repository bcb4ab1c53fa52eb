//! Files of blocks of Prometheus: whatever is damaged is an error.
#![cfg_attr(fuzzing, no_main)]

use latewood_migrate::fuzz_prometheus;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((kind, file)) = bytes.split_first() {
        fuzz_prometheus(*kind, file);
    }
});
