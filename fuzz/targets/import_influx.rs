//! Files of InfluxDB line protocol, also compressed: what is sent is what the server takes.
#![cfg_attr(fuzzing, no_main)]

use latewood_migrate::fuzz_influx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((flags, file)) = bytes.split_first() {
        fuzz_influx(file, flags & 1 == 1);
    }
});
