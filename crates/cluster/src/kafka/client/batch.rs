//! Records as brokers store them: one in a batch on the way out, batches on the way back.
//!
//! Batches are decoded here, since `kafka-protocol` allocates for as many records and headers as
//! a batch claims to have. Its decoder is what the tests compare with.

use super::failure::malformed;
use crate::kafka::{KafkaError, Offset, Records, Result};
use bytes::{Buf, Bytes, BytesMut};
use crc_fast::crc32_iscsi;
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Record,
    RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use std::time::{SystemTime, UNIX_EPOCH};

const MAGIC: u8 = 2;
/// Bytes of a batch before its records.
const HEADER_BYTES: usize = 61;
/// Bytes before those that the length of a batch counts.
const LENGTH_END: usize = 12;
/// Bits of a batch's attributes.
const COMPRESSION: i16 = 7;
const CONTROL: i16 = 1 << 5;

/// A batch of one record without key and headers.
///
/// # Errors
/// `Refused` if it is too large for the format.
pub(super) fn encode(value: &[u8]) -> Result<Bytes> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let record = Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
        producer_id: NO_PRODUCER_ID,
        producer_epoch: NO_PRODUCER_EPOCH,
        timestamp_type: TimestampType::Creation,
        offset: 0,
        sequence: NO_SEQUENCE,
        timestamp: now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX)),
        key: None,
        value: Some(Bytes::copy_from_slice(value)),
        headers: Default::default(),
    };
    let options = RecordEncodeOptions {
        version: MAGIC.cast_signed(),
        compression: Compression::None,
    };
    let mut batch = BytesMut::with_capacity(value.len() + 2 * HEADER_BYTES);
    let encoded = RecordBatchEncoder::encode(&mut batch, [&record], &options);
    encoded.map_err(|error| KafkaError::Refused(error.to_string()))?;
    Ok(batch.freeze())
}

/// The records of fetched batches from `from` on. A batch that the answer cut off is left for
/// the next read. One whose records are no records, or are compressed, is one record without a
/// value: anybody who may write to the topic can append such a batch, and it must not keep the
/// records behind it from being read. Nothing is ever decompressed.
///
/// # Errors
/// `Unavailable` if a batch is not as a broker stores it.
pub(super) fn decode(mut bytes: &[u8], from: Offset, end: Offset) -> Result<Records> {
    let mut found = Records {
        records: Vec::new(),
        next: from,
        end,
    };
    while let Some(batch) = split_batch(&mut bytes, found.next)? {
        take(batch, &mut found, from)?;
    }
    Ok(found)
}

/// The next batch, if all of it is there.
fn split_batch<'a>(bytes: &mut &'a [u8], at: Offset) -> Result<Option<&'a [u8]>> {
    let Some((mut head, _)) = bytes.split_at_checked(LENGTH_END) else {
        return Ok(None);
    };
    head.advance(8);
    let length = usize::try_from(head.get_i32()).unwrap_or(0) + LENGTH_END;
    if length < HEADER_BYTES {
        return Err(malformed(&format!("a batch of {length} bytes behind {at}")));
    }
    let Some((batch, rest)) = bytes.split_at_checked(length) else {
        return Ok(None);
    };
    *bytes = rest;
    Ok(Some(batch))
}

/// What a batch has from `from` on; it may begin before.
fn take(mut batch: &[u8], found: &mut Records, from: Offset) -> Result<()> {
    let at = found.next;
    let damaged = |what: &str| malformed(&format!("a batch behind {at}: {what}"));
    let base = batch.get_i64();
    batch.advance(8);
    let mut last = offset(base)?;
    let records = if batch.get_u8() == MAGIC {
        if batch.get_u32() != crc32_iscsi(batch) {
            return Err(damaged("wrong checksum"));
        }
        let attributes = batch.get_i16();
        let end = base.checked_add(batch.get_i32().into());
        last = offset(end.ok_or_else(|| damaged("too large an offset"))?)?;
        if attributes & CONTROL != 0 {
            Some(Vec::new())
        } else if attributes & COMPRESSION != 0 {
            None
        } else {
            split_records(batch, base)
        }
    } else {
        None
    };
    let records = records.unwrap_or_else(|| vec![(last, &[][..])]);
    let wanted = records.into_iter().filter(|(at, _)| *at >= from);
    let wanted = wanted.map(|(at, value)| (at, value.to_vec()));
    found.records.extend(wanted);
    found.next = found.next.max(last + 1);
    Ok(())
}

/// The records of a batch behind its attributes; `None` if they are none.
fn split_records(mut batch: &[u8], base: i64) -> Option<Vec<(Offset, &[u8])>> {
    batch.advance(8 + 8 + 8 + 2 + 4); // times, producer, epoch, sequence
    let mut records = Vec::new();
    for _ in 0..batch.get_i32() {
        let (delta, value) = split_record(&mut batch)?;
        let at = base.checked_add(delta)?;
        records.push((Offset::try_from(at).ok()?, value));
    }
    Some(records)
}

/// The offset of the next record, counted from that of its batch, and its value.
fn split_record<'a>(batch: &mut &'a [u8]) -> Option<(i64, &'a [u8])> {
    let mut record = split_counted(batch)?;
    record.try_get_u8().ok()?; // attributes
    varint(&mut record)?; // time
    let offset = varint(&mut record)?;
    split_counted(&mut record)?; // key
    Some((offset, split_counted(&mut record)?))
}

/// Bytes behind their number, which is -1 where they are missing.
fn split_counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = match varint(bytes)? {
        -1 => 0,
        length => usize::try_from(length).ok()?,
    };
    bytes.split_off(..length)
}

/// A number in groups of seven bits, the lowest first, its sign in the lowest bit of all.
fn varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = bytes.try_get_u8().ok()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
        }
    }
    None
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
    use kafka_protocol::records::RecordBatchDecoder;

    const MAGIC_AT: usize = 16;

    /// A batch at an offset, as a broker stores it.
    fn batch_with(at: i64, values: &[&str], change: impl Fn(&mut Record)) -> Vec<u8> {
        let records = RecordBatchDecoder::decode(&mut encode(b"").unwrap()).unwrap();
        let record = records.records[0].clone();
        let records: Vec<Record> = (0..)
            .zip(values)
            .map(|(delta, value)| {
                let mut record = Record {
                    offset: at + delta,
                    sequence: i32::try_from(delta).unwrap() - 1,
                    value: Some(Bytes::copy_from_slice(value.as_bytes())),
                    ..record.clone()
                };
                change(&mut record);
                record
            })
            .collect();
        let options = RecordEncodeOptions {
            version: 2,
            compression: Compression::None,
        };
        let mut batch = BytesMut::new();
        RecordBatchEncoder::encode(&mut batch, &records, &options).unwrap();
        batch.to_vec()
    }

    fn batch(at: i64, values: &[&str]) -> Vec<u8> {
        batch_with(at, values, |_| ())
    }

    fn read(bytes: &[u8], from: Offset) -> Records {
        decode(bytes, from, 100).unwrap()
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
    fn keys_and_headers_are_passed_over() {
        let bytes = batch_with(5, &["a", "b"], |record| {
            record.key = Some(Bytes::from_static(b"key"));
            let header = Some(Bytes::from_static(b"value"));
            record.headers.insert("header".to_owned().into(), header);
        });
        assert_eq!(values(&read(&bytes, 0)), [(5, "a"), (6, "b")]);
        let bytes = batch_with(5, &["a"], |record| record.value = None);
        assert_eq!(values(&read(&bytes, 0)), [(5, "")]);
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
        let mark = batch_with(5, &["x"], |record| record.control = true);
        let found = read(&mark, 5);
        assert_eq!((values(&found), found.next), (vec![], 6));
    }

    #[test]
    fn a_damaged_batch_is_an_error() {
        let whole = batch(3, &["abc"]);
        for at in LENGTH_END + 4..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            if at == MAGIC_AT {
                // Of another format, which has another checksum.
                assert_eq!(values(&read(&bytes, 3)), [(3, "")]);
                continue;
            }
            let error = decode(&bytes, 3, 100).unwrap_err();
            assert!(matches!(error, KafkaError::Unavailable(_)), "{at}: {error}");
        }
    }

    /// A batch whose checksum is right, whatever else is not.
    fn resigned(mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = crc32_iscsi(&bytes[21..]);
        bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn a_batch_of_a_liar_is_one_record_without_a_value() {
        let mut many = batch(3, &["abc"]);
        many[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
        let mut long = batch(3, &["abc"]);
        long[61] = 0x7e;
        let mut packed = batch(3, &["abc"]);
        packed[22] = 4;
        let mut old = batch(3, &["abc"]);
        old[16] = 1;
        for lie in [many, long, packed, old] {
            let bytes = [&resigned(lie)[..], &batch(4, &["d"])].concat();
            let found = read(&bytes, 0);
            assert_eq!((values(&found), found.next), (vec![(3, ""), (4, "d")], 5));
            assert_eq!(values(&read(&bytes, 4)), [(4, "d")]);
        }
        let mut far = batch(3, &["abc"]);
        far[..8].copy_from_slice(&i64::MAX.to_be_bytes());
        far[23..27].copy_from_slice(&1_i32.to_be_bytes());
        let error = decode(&resigned(far), 0, 100).unwrap_err();
        assert!(error.to_string().contains("too large an offset"), "{error}");
        let mut short = batch(3, &["abc"]);
        short[8..12].copy_from_slice(&7_i32.to_be_bytes());
        assert!(decode(&short, 0, 100).is_err());
    }

    /// The answer of no other value, and no panic, whatever byte is changed.
    #[test]
    fn changed_bytes_never_panic() {
        let whole = batch(3, &["abc", "d"]);
        for at in 0..whole.len() {
            for value in 0..=u8::MAX {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = decode(&resigned(bytes), 3, 100);
            }
        }
    }
}
