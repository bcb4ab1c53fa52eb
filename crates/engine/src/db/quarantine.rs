//! Damage that the operator has not accepted yet; see [`crate::storage::files::doubt`].

use crate::base::error::Result;
use crate::base::names;
use crate::db::Db;
use crate::index::SeriesRef;
use crate::storage::files::doubt::{self, Doubt, DoubtKind};
use latewood_model::Timestamp;
use std::sync::Arc;

impl Db {
    /// What starts found damaged, and nobody has accepted yet.
    pub fn doubts(&self) -> Arc<[Doubt]> {
        self.core.store.doubts.lock().clone()
    }

    /// The first of [`Db::doubts`] that concerns one of `series` between `from` and `to`,
    /// both included, or series that are not there.
    pub fn doubt_of(&self, series: &[SeriesRef], from: Timestamp, to: Timestamp) -> Option<Doubt> {
        let doubts = self.doubts();
        let concerned = |doubt: &&Doubt| {
            doubt.kind == DoubtKind::Log
                || series.iter().any(|one| doubt.concerns(one.id, from, to))
        };
        doubts.iter().find(concerned).cloned()
    }

    /// Accepts all of [`Db::doubts`], for later starts too; how many. The quarantined files
    /// stay.
    ///
    /// # Errors
    /// `Io`: then nothing is accepted.
    pub fn accept_quarantine(&self) -> Result<usize> {
        let core = &self.core;
        let mut doubts = core.store.doubts.lock();
        if !doubts.is_empty() {
            doubt::remove(&core.env, &names::quarantine_dir(core.store.dir()))?;
        }
        let accepted = doubts.len();
        *doubts = Arc::default();
        Ok(accepted)
    }
}
