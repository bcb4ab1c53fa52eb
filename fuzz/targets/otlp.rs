//! OTLP requests in both encodings: no input may panic, and an accepted request
//! gives the same samples a second time.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::otlp::{Decoder, Encoding, read, weight};
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let _ = weight(encoding, body);
        let Ok(request) = read(encoding, body) else {
            continue;
        };
        let (mut decoder, mut intake) = (Decoder::new(), Collected::default());
        decoder.decode(&request, &mut intake);
        let once = intake.samples.len();
        decoder.decode(&request, &mut intake);
        assert_eq!(intake.samples.len(), 2 * once);
    }
});
