//! Forgetting who wrote series that are gone.
//!
//! The database keeps who owns a series by its key, also while there is none, so that a rule that goes
//! on finds it its own. Series that end would fill that list: those that are gone and that no rule
//! writes are taken out of it now and then. Tested by `tests/gone.rs`.

use super::manager::Manager;
use crate::labelled::key_of;
use crate::state::Shared;
use latewood_wire::series_name::SeriesName;
use std::collections::HashSet;

impl Manager {
    /// Lets anybody write under the keys of series that are gone and that no rule writes.
    pub(super) fn forget_gone(&self, shared: &Shared) {
        let db = &shared.db;
        let owned = db.owned();
        if owned.is_empty() {
            return;
        }
        // A rule that takes a series meanwhile is told after this.
        let (_turn, written) = self.owners.written();
        let mut name = SeriesName::new();
        let keys = written.iter().filter_map(|labels| {
            key_of(&mut name, labels).ok()?;
            Some(Box::<[u8]>::from(name.key()))
        });
        let written: HashSet<Box<[u8]>> = keys.collect();
        for key in owned {
            if !written.contains(&key) && !db.contains(&key) {
                db.own(&key, None);
            }
        }
    }
}
