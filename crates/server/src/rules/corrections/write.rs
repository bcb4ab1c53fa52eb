//! Writing what a comparison found, beside the live evaluation of the group.
//!
//! Nothing is evaluated under the group's lock: it is held for the rows of one batch. Where the
//! newest step is corrected, the live evaluation may have gone on meanwhile: then the marks of the
//! step behind it are mended too, as it did not know the corrected rows; and if it did not, what it
//! takes for the newest rows is set. Tested by `super::tests`.

use super::plan::Planned;
use super::rows::{Comparing, Rows, SeriesRows};
use crate::intake::{EngineIntake, InPause, enter};
use crate::labelled::key_of;
use crate::messaging::{ADD_EVENT, Class};
use crate::rules::group::Run;
use crate::rules::reader::{append, is_of_others};
use latewood_engine::ErrorKind;
use latewood_model::Sample;
use latewood_promql::labels::Labels;
use latewood_promql::source::STALE_BITS;
use latewood_rules::correct::compare::{Compared, Difference, gaps};
use latewood_rules::evaluate::Row;
use latewood_wire::series_name::SeriesName;

/// Rows that are written under one hold of the group's lock, and series that are looked at.
const BATCH_MAX: usize = 4096;

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) rows: u64,
    /// Rows that were there and are none.
    pub(super) deleted: u64,
    /// Rows that retention does not keep, or that another rule owns.
    pub(super) refused: u64,
}

impl Comparing<'_> {
    /// Writes what is not as it must be; `None` if the group is not evaluated any more.
    ///
    /// # Errors
    /// What kept rows from being written.
    pub(super) fn write(
        &self,
        intake: &mut EngineIntake,
        rows: Rows,
    ) -> Result<Option<Written>, String> {
        let mut written = Written::default();
        let compared = rows.compared;
        let is_newest = compared.to == compared.newest;
        let mut batch = Vec::new();
        let mut size = 0;
        for series in rows.series {
            let found = series.differences(&compared);
            if found.is_empty() && !is_newest {
                continue;
            }
            size += found.len().max(1);
            batch.push((series, found));
            if size >= BATCH_MAX {
                if !self.write_batch(intake, &compared, &mut batch, &mut written)? {
                    return Ok(None);
                }
                (size, batch) = (0, Vec::new());
            }
        }
        let is_there = self.write_batch(intake, &compared, &mut batch, &mut written)?;
        Ok(is_there.then_some(written))
    }

    fn write_batch(
        &self,
        intake: &mut EngineIntake,
        compared: &Compared,
        batch: &mut [(SeriesRows, Vec<Difference>)],
        written: &mut Written,
    ) -> Result<bool, String> {
        let group = &self.planned.group;
        let mut run = group.run.lock();
        if group.is_retired() {
            return Ok(false);
        }
        let newest = run.rules[self.planned.at]
            .newest_ms
            .unwrap_or(compared.newest);
        let is_newest = compared.to == compared.newest;
        if is_newest && newest > compared.newest {
            self.look_behind(compared, newest, batch)?;
        }
        for (series, found) in &*batch {
            self.write_series(intake, &run, compared, (series, found), written)?;
        }
        if is_newest && newest == compared.newest {
            for (series, _) in &*batch {
                self.see(&mut run, compared.to, series);
            }
        }
        Ok(true)
    }

    /// Compares again: the live evaluation has gone on.
    fn look_behind(
        &self,
        compared: &Compared,
        newest: i64,
        batch: &mut [(SeriesRows, Vec<Difference>)],
    ) -> Result<(), String> {
        let compared = Compared {
            newest,
            ..*compared
        };
        let (_, last) = compared.reach();
        let labels: Vec<&Labels> = batch.iter().map(|(series, _)| &series.labels).collect();
        let more = self.stored_of(&labels, compared.to.saturating_add(1), last)?;
        for ((series, found), more) in batch.iter_mut().zip(more) {
            series.stored.retain(|pair| pair.0 <= compared.to);
            series.stored.extend(more);
            *found = series.differences(&compared);
        }
        Ok(())
    }

    fn write_series(
        &self,
        intake: &mut EngineIntake,
        run: &Run,
        compared: &Compared,
        (series, found): (&SeriesRows, &[Difference]),
        written: &mut Written,
    ) -> Result<(), String> {
        if found.is_empty() {
            return Ok(());
        }
        let labels = &series.labels;
        let owners = &self.manager.owners;
        let id = run.rules[self.planned.at].id;
        let mut name = SeriesName::new();
        let is_own = !owners.has_other(id, labels)
            && key_of(&mut name, labels).is_ok()
            && !is_of_others(&self.shared.db, name.key(), labels);
        if !is_own {
            written.refused += found.len() as u64;
            return Ok(());
        }
        let rows = found.iter().filter_map(Difference::row);
        let mut rows: Vec<Sample> = rows
            .map(|(timestamp, value)| Sample { timestamp, value })
            .collect();
        let joins = compared.removes_between && series.is_of_rule;
        let gaps = gaps(found, &self.planned.grid, joins);
        let deleted = (found.len() - rows.len()) as u64;
        loop {
            let entered = enter(self.shared, InPause::Refuse);
            let entered = entered.map_err(|failure| failure.to_string())?;
            let replaced = self.shared.db.replace_rows(name.key(), &gaps, &rows);
            match replaced {
                Ok(done) => {
                    if self.shared.events.is_listening() {
                        self.shared.changed(Class::Module, ADD_EVENT, name.key());
                    }
                    written.rows += done.written as u64;
                    written.deleted += deleted;
                    written.refused += done.refused as u64;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::NoSuchKey && !rows.is_empty() => {
                    drop(entered);
                    // Its first row makes the series, as the live evaluation would.
                    let first = rows.remove(0);
                    let row = Row {
                        labels: labels.clone(),
                        at_ms: first.timestamp,
                        value: first.value,
                    };
                    let refused = append(intake, &self.shared.db, &[row], 0..1)?;
                    written.rows += 1 - refused.len() as u64;
                    written.refused += refused.len() as u64;
                    if rows.is_empty() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::NoSuchKey => return Ok(()),
                Err(error) => return Err(format!("{labels}: {error}")),
            }
        }
    }

    /// Sets what the live evaluation takes for the newest row of a series.
    fn see(&self, run: &mut Run, newest: i64, series: &SeriesRows) {
        let Planned { at, .. } = *self.planned;
        let value = series.given.last().filter(|_| series.is_last_own);
        let row = Row {
            labels: series.labels.clone(),
            at_ms: newest,
            value: value.map_or(f64::from_bits(STALE_BITS), |pair| pair.1),
        };
        // What another rule owns is not claimed.
        let (refused, _) = self.manager.owners.claim(run.rules[at].id, &[row]);
        run.running
            .see(at, &series.labels, value.is_some() && refused.is_empty());
    }
}
