//! What rules read and write: the series of the database as any reader by label sees them, and the
//! way that samples of remote write go.
//!
//! Rules run as no user: they read and write all series. Tested by the tests of the folder above.

use super::corrections::plan::Plan;
use super::manager::Manager;
use super::owners::RuleId;
use crate::intake::EngineIntake;
use crate::labelled::{self, Named, Reader, Views, key_of};
use crate::state::Shared;
use latewood_engine::{Db, Error, ErrorKind};
use latewood_promql::labels::Labels;
use latewood_promql::source::{Interrupt, Matcher, Source, SourceError};
use latewood_rules::evaluate::{Refused, Row, Storage};
use latewood_wire::intake::{Intake, Moment, Reason, Refused as NotTaken, Slot};
use latewood_wire::series_name::SeriesName;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Refused rows that are told one by one; of more it is not known which they are.
const TOLD_MAX: usize = 1000;

/// Reads for one evaluation of a rule.
pub(super) struct RuleReader {
    pub(super) shared: Arc<Shared>,
    pub(super) deadline: Instant,
    /// The group is not evaluated any more.
    pub(super) is_retired: Arc<AtomicBool>,
}

impl Reader for RuleReader {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn find(&self, matchers: &[Matcher], span: (i64, i64)) -> Result<Arc<[Named]>, SourceError> {
        let db = &self.shared.db;
        let refused = |error: Error| SourceError(error.to_string());
        let find = || {
            let retired: &AtomicBool = &self.is_retired;
            let found =
                labelled::select(db, matchers, Some(span), Some(retired)).map_err(refused)?;
            db.check_query(found.len()).map_err(refused)?;
            let hold = &mut |_| ControlFlow::Continue(());
            let mut named = labelled::named(db, found, true, hold).map_err(refused)?;
            labelled::retain_matching(&mut named, &[matchers.to_vec()]);
            // What was found by halves is not kept.
            self.check().map_err(|_| labelled::interrupted())?;
            Ok(named)
        };
        let found = self.shared.recent.get_or_find(db, matchers, span, find)?;
        db.check_query(found.named.len()).map_err(refused)?;
        Ok(found.named)
    }

    fn failed(&self, error: &Error, key: &[u8]) -> SourceError {
        SourceError(format!("{}: {error}", labelled::text(key)))
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn check(&self) -> Result<(), Interrupt> {
        let is_over = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is_over(&self.is_retired) || is_over(&self.shared.lifetime.stopping) {
            Err(Interrupt::Canceled)
        } else if Instant::now() >= self.deadline {
            Err(Interrupt::Timeout)
        } else {
            Ok(())
        }
    }
}

/// Where one rule reads and writes.
pub(super) struct RuleStorage<'a> {
    pub(super) manager: &'a Manager,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) intake: &'a mut EngineIntake,
    pub(super) rule: RuleId,
    pub(super) deadline: Instant,
    pub(super) is_retired: &'a Arc<AtomicBool>,
    /// An alert whose state is not known yet: nothing is written.
    pub(super) holds_back: bool,
}

impl Storage for RuleStorage<'_> {
    fn source(&self) -> Result<Box<dyn Source + '_>, String> {
        Ok(Box::new(Views::new(RuleReader {
            shared: Arc::clone(self.shared),
            deadline: self.deadline,
            is_retired: Arc::clone(self.is_retired),
        })))
    }

    fn write(&mut self, rows: &[Row]) -> Result<Vec<Refused>, String> {
        if self.holds_back {
            return Ok(Vec::new());
        }
        if self.is_retired.load(Ordering::Relaxed) {
            return Err("the group was changed or removed meanwhile".to_owned());
        }
        let owners = &self.manager.owners;
        let (mut refused, new) = owners.claim(self.rule, rows);
        self.manager.protect(self.shared);
        let denied: Vec<usize> = refused.iter().map(|one| one.row).collect();
        let taken = (0..rows.len()).filter(|row| denied.binary_search(row).is_err());
        match append(self.intake, &self.shared.db, rows, taken) {
            Ok(more) => {
                // What has no row is nobody's.
                let without = more.iter().map(|one| rows[one.row].labels.clone());
                owners.release(self.rule, without.collect());
                self.manager.protect(self.shared);
                refused.extend(more);
                refused.sort_by_key(|one| one.row);
                Ok(refused)
            }
            Err(why) => {
                owners.release(self.rule, new);
                self.manager.protect(self.shared);
                Err(why)
            }
        }
    }
}

impl Manager {
    /// Keeps others from writing the series that rules write, and lets them write again what no rule
    /// does. What a rule made before stays its own: that a row of it was not written changes nothing.
    pub(super) fn protect(&self, shared: &Shared) {
        let mut name = SeriesName::new();
        let (db, plan) = (&shared.db, self.corrections.plan());
        self.owners.tell(|labels, rule| {
            // What has no name is no series.
            if key_of(&mut name, labels).is_err() {
                return;
            }
            let made = db.resolve(name.key()).ok();
            let is_of_rule = |series: &_| db.is_of_rule(series).unwrap_or(false);
            let made = made.filter(|series| rule.is_none() && is_of_rule(series));
            let writer = made.and_then(|_| Some(plan.writer(labels)?.name()));
            db.own(name.key(), rule.or(writer.as_deref()));
        });
    }
}

/// Keeps others from writing what rules made before, where a rule of `plan` may write it again; what
/// no rule may write is free.
///
/// # Errors
/// Where it is not known what rules made.
pub(super) fn protect_made(shared: &Shared, plan: &Plan) -> Result<(), Error> {
    let db = &shared.db;
    for key in db.owned() {
        let series = db.resolve(&key).ok();
        let labels = series.and_then(|series| db.labels(&series).ok()?);
        let labels = labels.map(|labels| labelled::shown(&labels, &key));
        if labels.is_some_and(|labels| plan.writer(&labels).is_none()) {
            db.own(&key, None);
        }
    }
    for output in plan.rules.iter().flat_map(|planned| &planned.outputs) {
        for series in labelled::select(db, &output.matchers(), None, None)? {
            if db.owner(&series.key).is_some() || !db.is_of_rule(&series)? {
                continue;
            }
            let labels = db.labels(&series)?;
            let labels = labels.map(|labels| labelled::shown(&labels, &series.key));
            if let Some(writer) = labels.and_then(|labels| plan.writer(&labels)) {
                db.own(&series.key, Some(&writer.name()));
            }
        }
    }
    Ok(())
}

/// Writes those of `rows` that `which` names. Returns those that were refused.
///
/// # Errors
/// What kept rows from being written that are not at fault.
pub(super) fn append(
    intake: &mut EngineIntake,
    db: &Db,
    rows: &[Row],
    which: impl Iterator<Item = usize>,
) -> Result<Vec<Refused>, String> {
    intake.begin();
    let mut name = SeriesName::new();
    for at in which {
        let row = &rows[at];
        // Rows of a rule are far below 2^32.
        let line = at as u32 + 1;
        match slot(intake, db, &mut name, &row.labels) {
            Ok(slot) => intake.sample(slot, Moment::whole(row.at_ms), row.value, line),
            Err(why) => intake.refuse(line, why.reason, format_args!("{}", why.text)),
        }
    }
    let report = intake.finish();
    if let Some(failure) = report.told_failure() {
        return Err(failure);
    }
    let told = report.told(TOLD_MAX);
    if report.refused_lines() > told.len() as u64 {
        let first = told.first().map_or("", |line| &line.text);
        let all = report.refused_lines();
        return Err(format!("{all} rows were refused; the first one: {first}"));
    }
    let refused = told.into_iter().map(|line| Refused {
        row: line.number.saturating_sub(1) as usize,
        why: line.text,
    });
    Ok(refused.collect())
}

/// The series with these labels.
fn slot(
    intake: &mut EngineIntake,
    db: &Db,
    name: &mut SeriesName,
    labels: &Labels,
) -> Result<Slot, NotTaken> {
    let row = intake.row(labels.as_bytes());
    if let Some(slot) = intake.field(row, 0, b"") {
        return Ok(slot);
    }
    key_of(name, labels)?;
    if is_of_others(db, name.key(), labels) {
        return Err(NotTaken {
            reason: Reason::Name,
            text: "the key of this series is that of one with other labels".to_owned(),
        });
    }
    intake.learn(row, b"", name)
}

/// Whether the key that the series with these labels would have is that of another one.
pub(super) fn is_of_others(db: &Db, key: &[u8], labels: &Labels) -> bool {
    let held = match db.resolve(key) {
        Err(error) if error.kind() == ErrorKind::NoSuchKey => return false,
        series => series.and_then(|series| db.labels(&series)),
    };
    // One that cannot be read may be that of others.
    held.map_or(true, |held| {
        held.is_some_and(|held| labelled::shown(&held, key) != *labels)
    })
}
