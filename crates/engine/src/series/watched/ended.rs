//! Series that ended by their own retention, as far as readers must hear of it.
//!
//! What they showed is no change, but steps that read it are final: computed again, they would miss
//! it. One look of each watch set is enough for that, with all that ended in its mark. Where watch
//! sets are not known, in a replay or on a node that follows, looks are kept one by one until the log
//! says what was pending when they were known. Those that are too many are joined: steps of all
//! readers are final then, and none of them is computed wrongly.
//!
//! Tested with [`super`] and by `recovery/tests/ended_watched.rs`.

use super::{GoneLook, Looks, MARKS_MAX, Mark, WatchSet};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct EndedLooks {
    by_set: HashMap<WatchSet, GoneLook, FixedState>,
    unknown: Looks<GoneLook>,
    any: Option<Mark>,
}

impl EndedLooks {
    /// Notes that a series ended; `look` gives what it looked like, with a mark. Those of unknown
    /// watch sets may take `bytes_max`.
    pub(super) fn note(
        &mut self,
        set: WatchSet,
        mark: Mark,
        look: impl FnOnce(Mark) -> GoneLook,
        bytes_max: usize,
    ) {
        if set == WatchSet::UNKNOWN {
            self.note_unknown(look(mark), bytes_max);
            return;
        }
        match self.by_set.entry(set) {
            Entry::Occupied(mut held) => held.get_mut().mark.add_all(&mark),
            Entry::Vacant(free) => drop(free.insert(look(mark))),
        }
    }

    fn note_unknown(&mut self, look: GoneLook, bytes_max: usize) {
        let (mark, beside) = (look.mark, look.bytes_beside());
        let is_full = self.unknown.all.len() >= MARKS_MAX;
        if is_full || self.unknown.add(look, beside, bytes_max).is_err() {
            let any = self.any.get_or_insert(mark);
            any.add_all(&mark);
        }
    }

    /// The numbers of watch sets count no more.
    pub(super) fn forget_sets(&mut self, bytes_max: usize) {
        for (_, look) in std::mem::take(&mut self.by_set) {
            self.note_unknown(look, bytes_max);
        }
    }

    /// What is noted up to a position of the log is pending for its readers already.
    pub(super) fn forget_up_to(&mut self, position: u64, bytes_max: usize) {
        self.any = self.any.filter(|any| any.newest > position);
        for look in self.unknown.take() {
            if look.mark.newest > position {
                self.note_unknown(look, bytes_max);
            }
        }
    }

    /// Takes all of it: the looks, and a mark of those of any series.
    pub(super) fn take(&mut self) -> (Vec<GoneLook>, Option<Mark>) {
        let mut looks = self.unknown.take();
        looks.extend(self.by_set.drain().map(|(_, look)| look));
        (looks, self.any.take())
    }
}
