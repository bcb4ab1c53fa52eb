//! The rows of a file of parked series that compaction rules tie to other series, and which these are:
//! its directory tells, so that a start knows the ends of all rules and reads no rows.
//!
//! The list stays in memory as it is stored. Tested below and with the files.

use crate::base::partition::first_of;
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::pages::low_bits;
use latewood_model::SeriesId;
use roaring::RoaringBitmap;

/// A linked row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) id: SeriesId,
    /// The source of the rule that writes to it.
    pub(crate) source: Option<SeriesId>,
    /// The destinations of its own rules, in their order.
    pub(crate) destinations: Vec<SeriesId>,
}

/// In the first number of a row, below how many destinations it has.
const HAS_SOURCE: u64 = 1;

/// The linked rows, ascending.
#[derive(Debug, Default)]
pub(super) struct LinkList {
    count: u64,
    bytes: Put,
    /// The low bits that the next row has at least, and the last id that was named: what comes next is
    /// told by the difference.
    next: (u32, u64),
}

impl LinkList {
    /// Adds a row, if it is linked.
    pub(super) fn note(&mut self, row: &SeriesRow) {
        let rules = row.source.iter().flat_map(|source| &source.rules);
        let count = rules.clone().count() as u64;
        let head = count << 1 | u64::from(row.link.is_some());
        if head == 0 {
            return;
        }
        let low = u32::from(low_bits(row.id));
        self.count += 1;
        self.bytes.number(u64::from(low - self.next.0));
        self.next.0 = low + 1;
        self.bytes.number(head);
        for id in row
            .link
            .into_iter()
            .chain(rules.map(|rule| rule.destination))
        {
            self.bytes.signed(id.0.wrapping_sub(self.next.1) as i64);
            self.next.1 = id.0;
        }
    }

    pub(super) fn put(&self, out: &mut Put) {
        out.number(self.count);
        out.raw(&self.bytes.0);
    }

    /// Reads the list of a file with these rows; `None` if it contradicts itself.
    pub(super) fn take(bytes: &mut Take<'_>, rows: &RoaringBitmap) -> Option<Self> {
        let count = bytes.count()? as u64;
        let (all, mut next) = (bytes.0, (0, 0));
        for _ in 0..count {
            let links = take_row(bytes, &mut next, 0)?;
            let is_sound = rows.contains(u32::from(low_bits(links.id)))
                && (links.source.is_some() || !links.destinations.is_empty());
            is_sound.then_some(())?;
        }
        let taken = all.len() - bytes.0.len();
        Some(Self {
            count,
            bytes: Put(all[..taken].to_vec()),
            next,
        })
    }

    /// The linked rows of a file of this partition.
    pub(super) fn iter(&self, partition: u32) -> impl Iterator<Item = Links> {
        let (mut bytes, mut next) = (Take(&self.bytes.0), (0, 0));
        let rows = 0..self.count;
        // All of it was read before, or written here.
        rows.map_while(move |_| take_row(&mut bytes, &mut next, first_of(partition).0))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.0.capacity()
    }
}

/// Reads the next row of a partition that begins with `first`.
fn take_row(bytes: &mut Take<'_>, next: &mut (u32, u64), first: u64) -> Option<Links> {
    let low = u64::from(next.0).checked_add(bytes.number()?)?;
    next.0 = u32::from(u16::try_from(low).ok()?) + 1;
    let head = bytes.number()?;
    let mut id = || {
        next.1 = next.1.wrapping_add(bytes.signed()? as u64);
        SeriesId::new(next.1)
    };
    let source = match head & HAS_SOURCE {
        0 => None,
        _ => Some(id()?),
    };
    let mut destinations = Vec::new();
    for _ in 0..head >> 1 {
        destinations.push(id()?);
    }
    let id = SeriesId(first + low);
    Some(Links {
        id,
        source,
        destinations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimRandom;
    use crate::storage::files::chance::{give_links, random_rows};

    #[test]
    fn links_come_back_and_no_part_of_them_is_taken_for_all() {
        for seed in 0..40 {
            println!("seed {seed}");
            let random = SimRandom::new(seed);
            let mut rows = random_rows(&random, 3, random.below(200) as u32);
            give_links(&random, &mut rows);
            let mut list = LinkList::default();
            rows.iter().for_each(|row| list.note(row));
            let mut out = Put::default();
            list.put(&mut out);
            let lows = rows.iter().map(|row| u32::from(low_bits(row.id)));
            let lows: RoaringBitmap = lows.collect();
            let mut bytes = Take(&out.0);
            let again = LinkList::take(&mut bytes, &lows).unwrap();
            assert!(bytes.is_empty());
            assert_eq!(format!("{again:?}"), format!("{list:?}"));
            let expected = rows.iter().map(|row| Links {
                id: row.id,
                source: row.link,
                destinations: row
                    .source
                    .iter()
                    .flat_map(|source| &source.rules)
                    .map(|rule| rule.destination)
                    .collect(),
            });
            let expected =
                expected.filter(|one| one.source.is_some() || !one.destinations.is_empty());
            assert!(again.iter(3).eq(expected));
            for cut in (0..out.0.len()).step_by(1 + out.0.len() / 50) {
                assert!(LinkList::take(&mut Take(&out.0[..cut]), &lows).is_none());
            }
        }
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        let rows: RoaringBitmap = [3, 7].into_iter().collect();
        let taken = |numbers: &[u64]| {
            let mut out = Put::default();
            numbers.iter().for_each(|&number| out.number(number));
            LinkList::take(&mut Take(&out.0), &rows).is_some()
        };
        assert!(taken(&[0]));
        assert!(taken(&[2, 3, 1, 10, 3, 4, 2, 2]));
        assert!(!taken(&[1, 4, 1, 10]), "no such row");
        assert!(!taken(&[1, 3, 0, 10]), "no end");
        assert!(!taken(&[1, 3, 1, 1]), "no id is below 0");
        assert!(!taken(&[1, 3, u64::MAX, 1]));
        assert!(!taken(&[1, u64::MAX, 1, 1]));
        assert!(!taken(&[3, 3, 1, 10, 3, 1, 10]));
    }
}
