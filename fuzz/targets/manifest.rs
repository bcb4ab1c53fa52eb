//! Manifests: no bytes make a reader panic, and an accepted manifest round-trips.
#![cfg_attr(fuzzing, no_main)]

use latewood_engine::fuzz_manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_manifest(bytes);
});
