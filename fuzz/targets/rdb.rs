//! Files and DUMP payloads of Redis: no bytes make the reader panic, or give samples out of order.
#![cfg_attr(fuzzing, no_main)]

use latewood_rdb::{Entry, File, Result, SeriesReader, read_payload};
use libfuzzer_sys::fuzz_target;
use std::io::Read;

fn read_all<R: Read>(samples: &mut SeriesReader<'_, R>) -> Result<()> {
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    let mut newest = -1;
    while samples.next(&mut timestamps, &mut values)? {
        assert_eq!(timestamps.len(), values.len());
        for &timestamp in &timestamps {
            assert!(timestamp > newest);
            newest = timestamp;
        }
    }
    Ok(())
}

fn read_file(bytes: &[u8]) -> Result<()> {
    let mut file = File::open(bytes)?;
    while let Some(entry) = file.next_entry()? {
        if matches!(entry, Entry::Series { .. }) {
            read_all(&mut file.series()?.1)?;
        }
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let _ = read_file(bytes);
    let _ = read_payload(bytes, |_, samples| read_all(samples));
    // The same bytes with a valid checksum, so that the content is parsed.
    let mut summed = bytes.to_vec();
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, bytes);
    summed.extend_from_slice(&sum.to_le_bytes());
    let _ = read_payload(&summed, |_, samples| read_all(samples));
});
