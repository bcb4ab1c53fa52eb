//! Lines of JSON: no input may panic, and the result does not depend on how the input is split.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::prometheus::json_lines::Decoder;
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut whole = Collected::default();
    Decoder::default().decode(text, true, &mut whole);
    let mut pieces = Collected::default();
    let (mut decoder, mut held) = (Decoder::default(), Vec::new());
    for bytes in text.chunks(7) {
        held.extend_from_slice(bytes);
        let taken = decoder.decode(&held, false, &mut pieces);
        held.drain(..taken);
    }
    decoder.decode(&held, true, &mut pieces);
    assert_eq!(whole.lines(), pieces.lines());
    assert_eq!(whole.refused, pieces.refused);
});
