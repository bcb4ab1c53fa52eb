//! DUMP payloads: no bytes make the reader panic or use more memory than a frame.
#![cfg_attr(fuzzing, no_main)]

use latewood_engine::Dump;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Dump::parse(bytes);
    // The same bytes with a valid checksum, so that the content is parsed.
    let mut summed = bytes.to_vec();
    summed.extend_from_slice(&crc_fast::crc32_iscsi(bytes).to_le_bytes());
    let Ok(mut dump) = Dump::parse(&summed) else {
        return;
    };
    assert!(dump.options().check().is_ok());
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    let mut newest = -1;
    while let Ok(true) = dump.next(&mut timestamps, &mut values) {
        assert!((1..=512).contains(&timestamps.len()) && timestamps.len() == values.len());
        for &timestamp in &timestamps {
            assert!(timestamp > newest);
            newest = timestamp;
        }
    }
});
