//! The queue of label changes that wait for the index.
//!
//! A writer only copies the labels, a few bytes, or that a file has them, to the queue under its shard's
//! lock; the index is updated in batches, on another thread if there is one. A
//! batch stays readable while it is applied, so that the labels of a series are
//! available at any moment.

use latewood_model::Labels;
use std::sync::Arc;

/// Bytes of labels for which an emptied batch keeps its memory.
const KEPT_BYTES: usize = 1024 * 1024;
/// Changes for which it keeps its memory.
const KEPT_CHANGES: usize = 8 * 1024;

/// Where the labels of a series are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held<T> {
    /// In memory: these.
    Here(T),
    /// In a file of parked series.
    Filed,
    /// Nowhere: there is no such series.
    Gone,
}

impl<T> Held<T> {
    pub(crate) fn map<U>(self, with: impl FnOnce(T) -> U) -> Held<U> {
        match self {
            Self::Here(labels) => Held::Here(with(labels)),
            Self::Filed => Held::Filed,
            Self::Gone => Held::Gone,
        }
    }
}

/// Changes in the order they happened.
#[derive(Default)]
pub(crate) struct Batch {
    changes: Vec<Change>,
    /// The labels of all changes, end to end.
    bytes: Vec<u8>,
}

struct Change {
    id: u64,
    held: Held<()>,
    /// The end of its labels in `bytes`; they begin at the end of the previous
    /// ones.
    end: usize,
}

impl Batch {
    /// Records where the labels of a series are from now on.
    pub(crate) fn push(&mut self, id: u64, held: Held<&Labels>) {
        let held = held.map(|labels| self.bytes.extend_from_slice(labels.as_bytes()));
        self.changes.push(Change {
            id,
            held,
            end: self.bytes.len(),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The changes in `range`, each a series and where its labels are.
    pub(crate) fn changes(
        &self,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (u64, Held<&[u8]>)> {
        range.map(|at| (self.changes[at].id, self.held_at(at)))
    }

    /// The newest change of a series, if any.
    fn find(&self, id: u64) -> Option<Held<Labels>> {
        let at = self.changes.iter().rposition(|change| change.id == id)?;
        // They were valid labels when they were recorded.
        let labels = |bytes| Labels::from_bytes(bytes).unwrap_or_default();
        Some(self.held_at(at).map(labels))
    }

    fn held_at(&self, at: usize) -> Held<&[u8]> {
        let change = &self.changes[at];
        let start = at
            .checked_sub(1)
            .map_or(0, |before| self.changes[before].end);
        let held = change.held.clone();
        held.map(|()| &self.bytes[start..change.end])
    }

    /// Empties it, keeping some of its memory.
    fn clear(&mut self) {
        self.changes.clear();
        self.changes.shrink_to(KEPT_CHANGES);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

/// The changes of one shard that are not yet in the index.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) waiting: Batch,
    /// The batch that is being applied; older than `waiting`.
    applying: Arc<Batch>,
    /// An empty batch with allocated memory.
    spare: Batch,
    /// Changes that were ever noted.
    pub(crate) noted: u64,
}

impl Queue {
    /// Forgets all changes, as one.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            noted: self.noted + 1,
            ..Self::default()
        };
    }

    /// Takes the waiting changes, to apply them to the index. Only for the holder
    /// of the indexer's lock.
    pub(crate) fn begin(&mut self) -> Option<Arc<Batch>> {
        if self.waiting.changes.is_empty() {
            return None;
        }
        let spare = std::mem::take(&mut self.spare);
        self.applying = Arc::new(std::mem::replace(&mut self.waiting, spare));
        Some(self.applying.clone())
    }

    /// The batch taken last is applied.
    pub(crate) fn finish(&mut self, batch: Arc<Batch>) {
        self.applying = Arc::default();
        if let Ok(mut batch) = Arc::try_unwrap(batch) {
            batch.clear();
            self.spare = batch;
        }
    }

    /// The newest change of a series, if any.
    pub(crate) fn find(&self, id: u64) -> Option<Held<Labels>> {
        self.waiting.find(id).or_else(|| self.applying.find(id))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        [&self.waiting, &*self.applying, &self.spare]
            .iter()
            .map(|batch| batch.bytes.capacity() + batch.changes.capacity() * size_of::<Change>())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(value: &str) -> Labels {
        Labels::new([(&b"x"[..], value.as_bytes())]).unwrap()
    }

    #[test]
    fn the_newest_change_counts_while_a_batch_is_applied() {
        let mut queue = Queue::default();
        queue.waiting.push(1, Held::Here(&labels("old")));
        queue.waiting.push(2, Held::Here(&labels("two")));
        queue.waiting.push(4, Held::Filed);
        let batch = queue.begin().unwrap();
        queue.waiting.push(1, Held::Gone);
        assert_eq!(queue.find(1), Some(Held::Gone));
        assert_eq!(queue.find(2), Some(Held::Here(labels("two"))));
        assert_eq!(queue.find(3), None);
        assert_eq!(queue.find(4), Some(Held::Filed));
        let told: Vec<_> = batch.changes(0..3).collect();
        assert_eq!(told[0], (1, Held::Here(labels("old").as_bytes())));
        assert_eq!(told[2], (4, Held::Filed));
        queue.finish(batch);
        assert_eq!(queue.find(2), None);
        assert_eq!(queue.find(1), Some(Held::Gone));
    }
}
