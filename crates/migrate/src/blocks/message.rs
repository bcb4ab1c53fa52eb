//! Remote write 1.0: series with their samples, bit for bit, stale marks too.

/// A message under way.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
    pub(super) samples: usize,
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

impl Message {
    /// Adds samples, values as bits, of the series with these labels.
    pub(super) fn put(&mut self, labels: &[(String, String)], samples: &[(i64, u64)]) {
        let (mut series, mut part) = (Vec::new(), Vec::new());
        for (name, value) in labels {
            part.clear();
            put_field(1, name.as_bytes(), &mut part);
            put_field(2, value.as_bytes(), &mut part);
            put_field(1, &part, &mut series);
        }
        for (at_ms, value) in samples {
            part.clear();
            part.push(1 << 3 | 1);
            part.extend_from_slice(&value.to_le_bytes());
            part.push(2 << 3);
            put_varint(*at_ms as u64, &mut part);
            put_field(2, &part, &mut series);
        }
        put_field(1, &series, &mut self.bytes);
        self.samples += samples.len();
    }

    /// Bytes so far, uncompressed.
    pub(super) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The compressed message; this one begins anew.
    pub(super) fn take(&mut self) -> Result<Vec<u8>, snap::Error> {
        let packed = snap::raw::Encoder::new().compress_vec(&self.bytes);
        *self = Self::default();
        packed
    }
}
