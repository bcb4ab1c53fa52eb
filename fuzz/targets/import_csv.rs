//! CSV files: what a line says is written and read back as the same.
#![cfg_attr(fuzzing, no_main)]

use latewood_migrate::fuzz_csv;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzz_csv(bytes));
