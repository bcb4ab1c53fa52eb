//! The series whose labels are in files of parked series, and what these files say of them.
//!
//! Of each there is a bit here. A read takes a copy under the lock of the index, in which sets and
//! files are shared, and reads the files without any lock. An id counts in the newest file that has a
//! row of it, so each file is asked for those ids alone that no newer one has.
//!
//! Invariant: the newest of `files` that has a row of a series in `ids` has its labels. Files are
//! replaced ([`Filed::set_files`]) once all changes are applied that were noted before: a merge of
//! files drops the row of a series only if it was awake or gone, which had been noted then, and that a
//! series is filed is noted only after its file is here.
//!
//! Tested by `tests/labels_model.rs`, `tests/labels_meanwhile.rs` and `recovery/tests/labels.rs`.

use super::ids::{Ids, bitmap_bytes};
use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::Result;
use crate::base::partition::{PARTITION_BITS, first_of};
use crate::storage::files::parked::{ParkedFile, ParkedFiles, no_row};
use latewood_model::{Matcher, SeriesId, Test};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Called with a partition, a value, and the low bits of the ids of the series that carry it.
type EachValue<'a> = &'a mut dyn FnMut(u32, &[u8], &RoaringBitmap) -> ControlFlow<()>;

/// Whether more is to be read.
type Flow = Result<ControlFlow<()>>;

/// See the module's invariant.
#[derive(Clone, Default)]
pub(crate) struct Filed {
    /// The low bits of the ids by partition. No set is empty; a copy of it may be in use.
    ids: BTreeMap<u32, Arc<RoaringBitmap>>,
    files: Arc<ParkedFiles>,
}

impl Filed {
    /// Adds a series, of which one of the files has a row.
    pub(super) fn insert(&mut self, id: u64) {
        let (partition, low) = split(id);
        let ids = self.ids.entry(partition).or_default();
        if !ids.contains(low) {
            Arc::make_mut(ids).insert(low);
        }
    }

    /// Takes a series out, if it is there.
    pub(super) fn remove(&mut self, id: u64) {
        let (partition, low) = split(id);
        if let Some(ids) = self.ids.get_mut(&partition)
            && ids.contains(low)
        {
            Arc::make_mut(ids).remove(low);
            if ids.is_empty() {
                self.ids.remove(&partition);
            }
        }
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        let (partition, low) = split(id);
        let ids = self.ids.get(&partition);
        ids.is_some_and(|ids| ids.contains(low))
    }

    pub(crate) fn len(&self) -> u64 {
        self.ids.values().map(|ids| ids.len()).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Replaces the files; the old ones come back. The ids, of which most are runs, are made small.
    pub(super) fn set_files(&mut self, files: Arc<ParkedFiles>) -> Arc<ParkedFiles> {
        for ids in self.ids.values_mut().filter_map(Arc::get_mut) {
            ids.optimize();
        }
        std::mem::replace(&mut self.files, files)
    }

    /// Estimated bytes of memory of the ids.
    pub(super) fn memory_bytes(&self) -> usize {
        self.ids.values().map(|ids| bitmap_bytes(ids)).sum()
    }

    /// The label pairs of the files, one that is in several counted for each.
    pub(crate) fn pair_count(&self) -> u64 {
        self.files.all().map(|file| file.pair_count()).sum()
    }

    /// The partitions that have some.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = u32> {
        self.ids.keys().copied()
    }

    /// Leaves out the partitions, with their files, of which `keep` is not true.
    pub(crate) fn retain(&mut self, keep: impl Fn(u32, &[Arc<ParkedFile>]) -> bool) {
        let files = &self.files;
        self.ids
            .retain(|&partition, _| keep(partition, files.of_partition(partition)));
    }

    /// The series that pass all `matchers`. Once `cancelled` is true, it returns early, with any
    /// series.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if the labels in a file cannot be read.
    pub(crate) fn select(&self, matchers: &[Matcher], cancelled: Cancelled<'_>) -> Result<Ids> {
        let mut matchers: Vec<Matcher> = matchers.to_vec();
        for matcher in &mut matchers {
            if let Test::AnyOf(values) | Test::NoneOf(values) = &mut matcher.test {
                values.sort_unstable();
            }
        }
        matchers.sort_by_key(|matcher| cost(&matcher.test));
        let mut found = Ids::default();
        for (&partition, ids) in &self.ids {
            if matchers.is_empty() {
                found.add_partition(partition, ids);
                continue;
            }
            let mut passed = RoaringBitmap::new();
            let ended =
                self.each_file(partition, (**ids).clone(), cancelled, |file, mut here| {
                    narrow(file, &matchers, &mut here)?;
                    passed |= here;
                    Ok(ControlFlow::Continue(()))
                })?;
            found.add_partition(partition, &passed);
            if ended.is_break() {
                break;
            }
        }
        Ok(found)
    }

    /// Calls `each` with the label names of the series, of those of `among` if there is a set, in byte
    /// order file by file.
    ///
    /// # Errors
    /// As [`Filed::select`].
    pub(crate) fn names(
        &self,
        among: Option<&Ids>,
        cancelled: Cancelled<'_>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_part(among, cancelled, |_, file, here| {
            let mut ended = ControlFlow::Continue(());
            file.names(&mut |name, rows| {
                if !here.is_disjoint(rows) {
                    ended = each(name);
                }
                ended
            })?;
            Ok(ended)
        })
    }

    /// The same with the values of the label `name`.
    ///
    /// # Errors
    /// As [`Filed::select`].
    pub(crate) fn values(
        &self,
        name: &[u8],
        among: Option<&Ids>,
        cancelled: Cancelled<'_>,
        each: EachValue<'_>,
    ) -> Result<()> {
        self.each_part(among, cancelled, |partition, file, here| {
            let mut ended = ControlFlow::Continue(());
            file.values(name, &mut |value, rows| {
                let rows = &here & rows;
                if !rows.is_empty() {
                    ended = each(partition, value, &rows);
                }
                ended
            })?;
            Ok(ended)
        })
    }

    /// The same with those of the values of the label `name` that are in `values`, which ascend. A
    /// partition that cannot be read keeps none of the others from it.
    ///
    /// # Errors
    /// As [`Filed::select`], the first one.
    pub(crate) fn carrying(
        &self,
        name: &[u8],
        values: &[Box<[u8]>],
        each: EachValue<'_>,
    ) -> Result<()> {
        let mut failure = Ok(());
        for (&partition, ids) in &self.ids {
            let read = self.each_file(partition, (**ids).clone(), None, |file, here| {
                let mut ended = ControlFlow::Continue(());
                file.carry_each(name, values, &mut |value, rows| {
                    let rows = &here & rows;
                    if !rows.is_empty() {
                        ended = each(partition, value, &rows);
                    }
                    ended
                })?;
                Ok(ended)
            });
            failure = failure.and(read.map(drop));
        }
        failure
    }

    /// Calls `each` with every partition, each of its files that counts for some series, of `among` if
    /// there is a set, and the low bits of their ids.
    fn each_part(
        &self,
        among: Option<&Ids>,
        cancelled: Cancelled<'_>,
        mut each: impl FnMut(u32, &ParkedFile, RoaringBitmap) -> Flow,
    ) -> Result<()> {
        for (&partition, ids) in &self.ids {
            let wanted = match among {
                None => (**ids).clone(),
                Some(among) => among.in_partition(partition) & &**ids,
            };
            let each = |file: &ParkedFile, here| each(partition, file, here);
            if self
                .each_file(partition, wanted, cancelled, each)?
                .is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// Calls `each` with each file of a partition that counts for some of the series `left`, and with
    /// these.
    fn each_file(
        &self,
        partition: u32,
        mut left: RoaringBitmap,
        cancelled: Cancelled<'_>,
        mut each: impl FnMut(&ParkedFile, RoaringBitmap) -> Flow,
    ) -> Flow {
        for file in self.files.of_partition(partition).iter().rev() {
            if left.is_empty() {
                break;
            }
            if is_cancelled(cancelled) {
                return Ok(ControlFlow::Break(()));
            }
            let here = &left & file.low_ids();
            if here.is_empty() {
                continue;
            }
            left -= &here;
            if each(file, here)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match left.min() {
            None => Ok(ControlFlow::Continue(())),
            Some(low) => Err(no_row(SeriesId(first_of(partition).0 + u64::from(low)))),
        }
    }
}

/// Partition and low bits of an id.
fn split(id: u64) -> (u32, u32) {
    let low = id & ((1 << PARTITION_BITS) - 1);
    ((id >> PARTITION_BITS) as u32, low as u32)
}

/// Positive matchers come first, and those that are likely to leave fewer series. How many they leave
/// only the file knows.
fn cost(test: &Test) -> (u8, usize) {
    match test {
        Test::AnyOf(values) => (0, values.len()),
        Test::Present => (1, 0),
        Test::NoneOf(_) | Test::Absent => (2, 0),
    }
}

/// Keeps in `here` only rows of a file that pass all matchers, whose values ascend.
fn narrow(file: &ParkedFile, matchers: &[Matcher], here: &mut RoaringBitmap) -> Result<()> {
    for Matcher { name, test } in matchers {
        if here.is_empty() {
            break;
        }
        match test {
            Test::AnyOf(values) => *here &= file.carry_any(name, values)?,
            Test::Present => *here &= file.carry(name)?,
            Test::NoneOf(values) => *here -= file.carry_any(name, values)?,
            Test::Absent => *here -= file.carry(name)?,
        }
    }
    Ok(())
}
