//! Records as brokers store them: one in a batch on the way out, batches on the way back.

use super::failure::malformed;
use crate::kafka::{KafkaError, Offset, Partition, Records, Result};
use bytes::{BufMut, Bytes, BytesMut};
use krafka::__private::protocol::{RecordBatch, RecordBatchBuilder, RecordBatchHeader};

/// Every replica in sync has the record before it is answered.
const ACKS_ALL: i16 = -1;

/// A batch of one record without key and headers.
///
/// # Errors
/// `Refused` if it is too large for the format.
pub(super) fn encode(value: &[u8]) -> Result<Bytes> {
    let value = Bytes::copy_from_slice(value);
    let batch = RecordBatchBuilder::new().add_record(None::<Bytes>, Some(value));
    let encoded = batch.build().encode();
    encoded.map_err(|error| KafkaError::Refused(error.to_string()))
}

/// The body of a Produce request of versions 3 to 8, which the client's own type does not let
/// others make.
pub(super) fn put_produce(
    buffer: &mut BytesMut,
    partition: &Partition,
    batch: &[u8],
    wait_ms: i32,
) {
    let length = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    buffer.put_i16(-1); // no transaction
    buffer.put_i16(ACKS_ALL);
    buffer.put_i32(wait_ms);
    buffer.put_i32(1);
    buffer.put_i16(i16::try_from(partition.topic.len()).unwrap_or(i16::MAX));
    buffer.put_slice(partition.topic.as_bytes());
    buffer.put_i32(1);
    buffer.put_i32(partition.number.cast_signed());
    buffer.put_i32(length(batch.len()));
    buffer.put_slice(batch);
}

/// The records of fetched batches from `from` on. A batch that the answer cut off is left for
/// the next read.
///
/// # Errors
/// `Unavailable` if a batch is damaged.
pub(super) fn decode(mut bytes: Bytes, from: Offset, end: Offset) -> Result<Records> {
    let mut found = Records {
        records: Vec::new(),
        next: from,
        end,
    };
    while !bytes.is_empty() {
        let is_cut = bytes.len() < RecordBatchHeader::SIZE
            || RecordBatchHeader::peek(&bytes)
                .is_ok_and(|header| header.total_size() > bytes.len());
        if is_cut {
            break;
        }
        let batch = RecordBatch::decode(&mut bytes);
        let batch = batch.map_err(|error| malformed(&format!("behind {}: {error}", found.next)))?;
        if !batch.attributes.is_control_batch {
            take(&batch, from, &mut found.records)?;
        }
        let last = batch.base_offset + i64::from(batch.last_offset_delta);
        found.next = found.next.max(offset(last)? + 1);
    }
    Ok(found)
}

/// What a batch has from `from` on; it may begin before.
fn take(batch: &RecordBatch, from: Offset, records: &mut Vec<(Offset, Vec<u8>)>) -> Result<()> {
    for record in &batch.records {
        let at = offset(batch.base_offset + i64::from(record.offset_delta))?;
        if at >= from {
            let value = record.value.as_deref().unwrap_or_default();
            records.push((at, value.to_vec()));
        }
    }
    Ok(())
}

/// An offset out of an answer.
///
/// # Errors
/// `Unavailable` if it is negative.
pub(super) fn offset(number: i64) -> Result<Offset> {
    u64::try_from(number).map_err(|_| malformed(&format!("offset {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use krafka::__private::protocol::RecordBatchAttributes;

    /// A batch at an offset, as a broker stores it.
    fn batch(at: i64, values: &[&str]) -> Vec<u8> {
        let mut builder = RecordBatchBuilder::new();
        for value in values {
            builder = builder.add_record(None::<Bytes>, Some(value.to_string()));
        }
        let mut batch = builder.build();
        batch.base_offset = at;
        batch.encode().unwrap().to_vec()
    }

    fn read(bytes: &[u8], from: Offset) -> Records {
        decode(Bytes::copy_from_slice(bytes), from, 100).unwrap()
    }

    fn values(found: &Records) -> Vec<(Offset, &str)> {
        let records = found.records.iter();
        records
            .map(|(at, value)| (*at, std::str::from_utf8(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_record_comes_back_as_it_went() {
        for value in [&b""[..], b"a", &[0; 300_000]] {
            let found = read(&encode(value).unwrap(), 0);
            assert_eq!(found.records, [(0, value.to_vec())]);
            assert_eq!((found.next, found.end), (1, 100));
        }
    }

    #[test]
    fn records_before_the_offset_asked_for_are_left_out() {
        let bytes = [batch(7, &["a", "b", "c"]), batch(10, &["d"])].concat();
        let found = read(&bytes, 8);
        assert_eq!(values(&found), [(8, "b"), (9, "c"), (10, "d")]);
        assert_eq!(found.next, 11);
    }

    #[test]
    fn offsets_that_were_not_used_are_no_records() {
        let bytes = [batch(2, &["a"]), batch(9, &["b"])].concat();
        let found = read(&bytes, 1);
        assert_eq!(values(&found), [(2, "a"), (9, "b")]);
    }

    #[test]
    fn a_batch_that_is_cut_off_is_left_for_the_next_read() {
        let whole = batch(3, &["a"]);
        let second = batch(4, &["b"]);
        for cut in 0..second.len() {
            let found = read(&[&whole[..], &second[..cut]].concat(), 3);
            assert_eq!((values(&found), found.next), (vec![(3, "a")], 4), "{cut}");
        }
    }

    #[test]
    fn marks_of_transactions_are_passed_over() {
        let mut mark = RecordBatchBuilder::new()
            .add_record(None::<Bytes>, Some("x"))
            .build();
        mark.base_offset = 5;
        mark.attributes = RecordBatchAttributes {
            is_control_batch: true,
            ..mark.attributes
        };
        let found = read(&mark.encode().unwrap(), 5);
        assert_eq!((values(&found), found.next), (vec![], 6));
    }

    #[test]
    fn a_damaged_batch_is_an_error() {
        let mut bytes = batch(3, &["abc"]);
        *bytes.last_mut().unwrap() ^= 1;
        let error = decode(bytes.into(), 3, 100).unwrap_err();
        assert!(matches!(error, KafkaError::Unavailable(_)), "{error}");
    }
}
