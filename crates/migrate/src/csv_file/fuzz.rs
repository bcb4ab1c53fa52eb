//! Any file, for the fuzz target.

use super::format::{Line, reader};
use csv::ByteRecord;

/// Reads a file. What its lines say is written and read back as the same.
pub fn fuzz_csv(bytes: &[u8]) {
    let mut records = reader(bytes);
    let mut record = ByteRecord::new();
    while records
        .read_byte_record(&mut record)
        .expect("memory can be read")
    {
        let Ok(Some(line)) = Line::parse(&record) else {
            continue;
        };
        if let Some(described) = &line.described {
            let again = written_and_read(&described.record(&line.key));
            // Without labels and options it is a line without a description.
            let again_described = again.described.unwrap_or_default();
            assert_eq!((&again.key, &again_described), (&line.key, described));
        }
        if let Some(sample) = &line.sample {
            Line::sample(&line.key, sample, &mut record);
            let again = written_and_read(&record);
            let again_sample = again.sample.expect("it has a sample");
            assert_eq!(
                (&again.key, again_sample.timestamp),
                (&line.key, sample.timestamp)
            );
            assert!(again_sample.same_value(sample), "{}", sample.value);
        }
    }
}

fn written_and_read(record: &ByteRecord) -> Line {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_byte_record(record)
        .expect("memory can be written");
    let text = writer.into_inner().expect("memory can be written");
    let mut read = ByteRecord::new();
    let is_there = reader(&text[..]).read_byte_record(&mut read);
    assert!(is_there.expect("memory can be read"));
    let line = Line::parse(&read).expect("what is written is valid");
    line.expect("it is no heading")
}
