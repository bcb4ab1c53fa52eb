//! The snapshot that a source sends to a replica, as the first copy of `import redis --psync`.

use super::replica::Replica;
use super::{Entry, Import, Verdict};
use crate::error::{Error, Result, shown};
use crate::keys::Keys;
use crate::rdb_file::{Sending, damaged};
use crate::redis_import::state::Step;
use crate::series::{Info, Shape};

impl Import<'_> {
    /// Copies what the snapshot has of `keys`; the others, and those that may not be changed, are
    /// left to the copy by commands.
    pub(super) fn copy_snapshot(&mut self, keys: &Keys) -> Result<Replica> {
        let mut replica = Replica::open(self.options)?;
        let file = &mut replica.file;
        let of_file = |error: latewood_rdb::Error| Error::Failed(format!("the snapshot: {error}"));
        while let Some(entry) = file.next_entry().map_err(of_file)? {
            let latewood_rdb::Entry::Series { key, db, .. } = entry else {
                continue;
            };
            let is_wanted = db == u64::from(self.options.db) && keys.series.contains(&key);
            let step = self.state.step(&key);
            if !is_wanted || step == Some(Step::Copied) {
                continue;
            }
            let is_ours = step.is_some() || self.options.overwrite;
            let replaces = Info::ask(&mut self.target, &key)?.is_some();
            if replaces && !is_ours {
                continue;
            }
            self.state.note(&key, Step::Begun)?;
            let series = file.series();
            let (series, samples) =
                series.map_err(|error| damaged("the snapshot", &key, &error))?;
            let mut sending = Sending {
                target: &mut self.target,
                rate: &mut self.rate,
                from: "the snapshot",
                replaces,
            };
            let verdict = match sending.copy(&key, &series, samples)? {
                Ok(tally) => {
                    self.state.note(&key, Step::Copied)?;
                    self.progress.add(tally.samples as usize);
                    Verdict::Copied
                }
                Err(text) => {
                    self.progress.say(&format!("{}: {text}", shown(&key)));
                    Verdict::Refused(text)
                }
            };
            let entry = Entry {
                verdict,
                shape: Shape::default(),
                rules: Vec::new(),
            };
            self.series.insert(key, entry);
        }
        Ok(replica)
    }
}
