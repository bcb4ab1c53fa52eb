//! Blocks: no bytes make a reader panic or hold more than the file, and where
//! a block is in order, lookups find what a walk over all of it finds.
#![no_main]

use latewood_engine::fuzz_block;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_block(bytes);
});
