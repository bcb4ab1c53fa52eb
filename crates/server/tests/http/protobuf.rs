//! Messages of Prometheus, field by field.

/// A field of protobuf with bytes in it.
pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    append_varint(&mut out, bytes.len() as u64);
    [&out, bytes].concat()
}

pub(crate) fn append_varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A sample of a series.
pub(crate) fn sample(value: f64, timestamp_ms: u64) -> Vec<u8> {
    let mut out = vec![1 << 3 | 1];
    out.extend_from_slice(&value.to_bits().to_le_bytes());
    out.push(2 << 3);
    append_varint(&mut out, timestamp_ms);
    field(2, &out)
}

/// The labels of a series.
pub(crate) fn labels(pairs: &[(&str, &str)]) -> Vec<u8> {
    let label = |(name, value): &(&str, &str)| {
        field(
            1,
            &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat(),
        )
    };
    pairs.iter().flat_map(label).collect()
}
