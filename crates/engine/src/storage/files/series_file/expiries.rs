//! When rows of a file of parked series expire, as its directory lists it: a start keeps these times in
//! memory and reads no rows. Tested with the files.

use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::pages::low_bits;
use roaring::RoaringBitmap;

/// What the field of the directory begins with.
const FIELD: u8 = 1;

/// The low bits of the ids of rows that expire, ascending, and when they do. As their bytes in the
/// directory: a start looks at them once.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    count: u64,
    last: (u16, i64),
    bytes: Put,
}

impl Expiries {
    pub(super) fn note(&mut self, row: &SeriesRow) {
        if let Some(at_ms) = row.expires_at_ms {
            self.push(low_bits(row.id), at_ms);
        }
    }

    fn push(&mut self, low: u16, at_ms: i64) {
        self.bytes.number(u64::from(low - self.last.0));
        self.bytes.step(self.last.1, at_ms);
        self.last = (low, at_ms);
        self.count += 1;
    }

    /// Nothing where no row expires.
    pub(super) fn put(&self, out: &mut Put) {
        if self.count > 0 {
            out.byte(FIELD);
            out.number(self.count);
            out.raw(&self.bytes.0);
        }
    }

    /// Reads the field, if it is there; `None` if it contradicts itself or the rows, which have `ids`.
    pub(super) fn take(bytes: &mut Take<'_>, ids: &RoaringBitmap) -> Option<Self> {
        let mut expiries = Self::default();
        if bytes.0.first() != Some(&FIELD) {
            return Some(expiries);
        }
        bytes.byte()?;
        for number in 0..bytes.count().filter(|&count| count > 0)? {
            let step = bytes.number().filter(|&step| number == 0 || step > 0)?;
            let low = u64::from(expiries.last.0).checked_add(step)?;
            let low = u16::try_from(low).ok()?;
            let at_ms = bytes.step(expiries.last.1)?;
            if at_ms <= 0 || !ids.contains(u32::from(low)) {
                return None;
            }
            expiries.push(low, at_ms);
        }
        expiries.bytes.0.shrink_to_fit();
        Some(expiries)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, i64)> {
        let (mut bytes, mut last) = (Take(&self.bytes.0), (0, 0));
        std::iter::from_fn(move || {
            let step = u16::try_from(bytes.number()?).ok()?;
            last = (last.0 + step, bytes.step(last.1)?);
            Some(last)
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.0.capacity()
    }
}
