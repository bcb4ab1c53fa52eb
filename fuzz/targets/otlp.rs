//! OTLP requests in both encodings: no input may panic, and an accepted request
//! gives the same samples a second time.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::otlp::{Decoder, Encoding, Naming, Translation, read, weight};
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let _ = weight(encoding, body);
        let Ok(request) = read(encoding, body) else {
            continue;
        };
        let promoting = Naming {
            translation: Translation::UnderscoreEscapingWithSuffixes,
            promoted: vec!["*".to_owned()],
            scope_labels: true,
        };
        for naming in [Naming::default(), promoting] {
            let (mut decoder, mut intake) = (Decoder::new(&naming), Collected::default());
            decoder.decode(&request, &mut intake);
            let once = intake.samples.len();
            decoder.decode(&request, &mut intake);
            assert_eq!(intake.samples.len(), 2 * once);
        }
    }
});
