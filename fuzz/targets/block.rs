//! Blocks: no bytes make a reader panic or use more memory than the file, and in a
//! valid block lookups agree with a full scan.
#![cfg_attr(fuzzing, no_main)]

use latewood_engine::fuzz_block;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_block(bytes);
});
