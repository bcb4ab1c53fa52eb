//! `TS.DEL key from to` deletes the samples from `from` to `to`, both
//! included; `-` and `+` are the ends. Reply: how many were deleted.
//!
//! `LATEWOOD DELETE from to [DRYRUN] FILTER expr...` deletes them from every series that passes the
//! filter: from all or, where the user may not change one of them or a rule file owns it, from none.
//! It is done on a reader thread, one series after the other; it appears in no EXEC and in no CLIENT
//! PAUSE of others, goes on if its client leaves, and is on disk when it is answered. An error in between
//! says how many series are done. DRYRUN counts, and deletes nothing. Tested by
//! `tests/resp/delete_matching.rs`.

use super::call::{Call, Outcome};
use super::fault::{Fault, SYNTAX};
use super::filter;
use super::range_options::{from_timestamp, to_timestamp};
use super::spec::{Keys, Spec};
use super::work;
use crate::intake::{InPause, enter, removal};
use crate::labelled::raw;
use crate::messaging::Class;
use latewood_engine::query::Sink;
use latewood_engine::{Cancelled, Position, SeriesRef, is_cancelled, shown_key};
use latewood_model::Matcher;
use std::ops::ControlFlow;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["write", "module"])
    .named("ts.del", apply)
    .words(4, "key from to")
    .keys(Keys::ONE)
    .about("Delete all samples between two timestamps for a given time series");

pub(super) const MATCHING: Spec = Spec::of_group("latewood", &["write"])
    .named("delete", matching)
    .words(-6, "from to [DRYRUN] FILTER expression ...")
    .about("Same as TS.DEL for each series that matches a filter; DRYRUN counts the samples.");

/// Series that are looked at together.
const TOGETHER: usize = 1024;

fn apply(call: &mut Call<'_>) -> Outcome {
    let from = from_timestamp(call.args.word(2))?;
    let to = to_timestamp(call.args.word(3))?;
    let key = call.args.word(1);
    let (deleted, position) = call.shared.db.delete_range(key, from, to)?;
    call.session.wrote(position);
    call.shared.changed(Class::Module, "ts.del", key);
    call.count(deleted)
}

fn matching(call: &mut Call<'_>) -> Outcome {
    let span = (
        from_timestamp(call.args.word(2))?,
        to_timestamp(call.args.word(3))?,
    );
    let is_dry = call.args.is(4, "DRYRUN");
    let filter_at = 4 + usize::from(is_dry);
    if !call.args.is(filter_at, "FILTER") {
        return Err(SYNTAX);
    }
    let matchers = filter::matchers(call.args.from(filter_at + 1))?;
    call.finish(work::UNKNOWN, move |call| {
        let series = changeable(call, &matchers)?;
        let samples = if is_dry {
            count(call, &series, span)?
        } else {
            delete_all(call, &series, span)?
        };
        call.count(samples)
    })
}

/// The series that pass `matchers`, by id: what rests in files is read by the page.
fn changeable(call: &Call<'_>, matchers: &[Matcher]) -> Result<Vec<SeriesRef>, Fault> {
    let db = &call.shared.db;
    let mut series = db.select_until(matchers, call.cancelled)?;
    db.check_query(series.len())?;
    if is_cancelled(call.cancelled) {
        return Fault::refuse("ERR the client left before anything was deleted");
    }
    let user = call.session.user();
    let may_change = |one: &SeriesRef| user.may_change("latewood|delete", &one.key);
    if !series.iter().all(may_change) {
        return Fault::refuse(
            "NOPERM this user has no permission to change one or more keys that match the filter; \
             nothing was deleted",
        );
    }
    let keys = series.iter().map(|one| &*one.key);
    if let Some(text) = removal::owned(call.shared, keys) {
        return Fault::refuse(format!("ERR {text}"));
    }
    series.sort_unstable_by_key(|one| one.id);
    Ok(series)
}

fn delete_all(call: &mut Call<'_>, series: &[SeriesRef], span: (i64, i64)) -> Result<u64, Fault> {
    // EXEC holds the lock itself.
    let is_beside = call.cancelled.is_some();
    let mut written = Position::default();
    let samples = delete_each(call, series, span, is_beside, &mut written);
    call.session.wrote(written);
    if is_beside {
        // The connection does not learn what was written for it.
        call.shared
            .db
            .sync_to(written)
            .map_err(|error| match &samples {
                Ok(_) => error.into(),
                Err(before) => {
                    let text = before.text("latewood|delete");
                    Fault::Line(format!("{text}; not on disk: {error}").into())
                }
            })?;
    }
    samples
}

/// How many samples it deleted; `written` is how far, also where it ends early.
fn delete_each(
    call: &Call<'_>,
    series: &[SeriesRef],
    span: (i64, i64),
    is_beside: bool,
    written: &mut Position,
) -> Result<u64, Fault> {
    let (shared, mut samples) = (call.shared, 0);
    for (done, one) in series.iter().enumerate() {
        let _turn = is_beside.then(|| enter(shared, InPause::Wait));
        let deleted = removal::delete(shared, &one.key, Some(span));
        let (count, position) = deleted.map_err(|error| {
            let fault = Fault::about(error, &one.key);
            if done == 0 {
                return fault;
            }
            let (text, all) = (fault.text("latewood|delete"), series.len());
            let key = shown_key(&one.key);
            Fault::Line(format!("{text}; of {all} series {done} are done, '{key}' is not").into())
        })?;
        samples += count;
        *written = position.max(*written);
    }
    Ok(samples)
}

fn count(call: &Call<'_>, series: &[SeriesRef], span: (i64, i64)) -> Result<u64, Fault> {
    let query = raw(span.0, span.1);
    let mut counted = Counted {
        samples: 0,
        cancelled: call.cancelled,
    };
    for some in series.chunks(TOGETHER) {
        for one in call.shared.db.views(some, &query, false) {
            let read = one.view.run(&query, &mut counted);
            read.map_err(|error| Fault::about(error, &one.key))?;
        }
    }
    Ok(counted.samples)
}

struct Counted<'a> {
    samples: u64,
    cancelled: Cancelled<'a>,
}

impl Sink for Counted<'_> {
    fn rows(&mut self, timestamps: &[i64], _: &[f64], _: usize) -> ControlFlow<()> {
        self.samples += timestamps.len() as u64;
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        is_cancelled(self.cancelled)
    }
}
