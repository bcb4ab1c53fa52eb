//! Lines of CSV: no input may panic, and the result does not depend on how the input is split. The first
//! line is the format.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::prometheus::csv_lines::{Decoder, Format};
use latewood_wire::testing::Collected;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let end = text.iter().position(|byte| *byte == b'\n');
    let (format, text) = text.split_at(end.unwrap_or(text.len()));
    let Ok(format) = String::from_utf8_lossy(format).parse::<Format>() else {
        return;
    };
    let mut whole = Collected::default();
    Decoder::new(format.clone()).decode(text, true, &mut whole);
    let mut pieces = Collected::default();
    let (mut decoder, mut held) = (Decoder::new(format), Vec::new());
    for bytes in text.chunks(7) {
        held.extend_from_slice(bytes);
        let taken = decoder.decode(&held, false, &mut pieces);
        held.drain(..taken);
    }
    decoder.decode(&held, true, &mut pieces);
    assert_eq!(whole.lines(), pieces.lines());
    assert_eq!(whole.refused, pieces.refused);
});
