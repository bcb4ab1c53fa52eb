//! `COPY source destination [DB 0] [REPLACE]`: copies a series.
//!
//! Samples, options, labels and expiry go along, rules do not. The copy is of
//! one moment and appears whole. A long one is made on a reader thread; it appears
//! in no EXEC and in no CLIENT PAUSE of others, and is on disk when it is answered.
//! Tested by `tests/resp/copies.rs` and `tests/resp/long_copies.rs`.

use super::args::Args;
use super::call::{Call, Outcome};
use super::fault::{Fault, SYNTAX};
use super::keys::{Access, Keys, Run};
use super::spec::Spec;
use super::{database, work};
use crate::intake::{self, InPause};
use crate::messaging::Class;
use latewood_engine::{CopySource, ErrorKind};

pub(crate) const SPEC: Spec = Spec::of_group("keyspace", &["write", "denyoom"])
    .named("copy", copy)
    .words(-3, "source destination [DB index] [REPLACE]")
    .keys(Keys(&[
        Run::at(1, Access::Read),
        Run::at(2, Access::Overwrite),
    ]))
    .about("Copies a series to another key.");

fn copy(call: &mut Call<'_>) -> Outcome {
    let replace = parse(call.args)?;
    let (from, to) = (call.args.word(1), call.args.word(2));
    if from == to {
        return Err(database::SAME);
    }
    match call.shared.db.copy_source(from) {
        Ok(source) => {
            let about = source.samples().saturating_mul(work::SAMPLES_PER_COPIED);
            let about = call.work_in((i64::MIN, i64::MAX), about);
            call.finish(about, move |call| make(call, source, replace))
        }
        Err(error) if error.kind() == ErrorKind::NoSuchKey => {
            call.shared.events.missed(from);
            call.integer(0)
        }
        Err(error) => Err(Fault::about(error, from)),
    }
}

fn make(call: &mut Call<'_>, source: CopySource, replace: bool) -> Outcome {
    let (from, to, shared) = (call.args.word(1), call.args.word(2), call.shared);
    let is_beside = call.cancelled.is_some();
    // Held until all is told of the copy.
    let mut turn = None;
    let made = shared.db.copy_from(source, to, replace, || {
        turn = is_beside.then(|| intake::enter(shared, InPause::Wait));
    });
    let (copied, position) = made.map_err(|error| {
        let is_source = error.is_damage() || error.is_away();
        let key = if is_source { from } else { to };
        Fault::about(error, key)
    })?;
    if copied {
        shared.events.created(to);
        shared.changed(Class::Generic, "copy_to", to);
    }
    drop(turn);
    if is_beside {
        // The connection does not learn what was written for it.
        shared.db.sync_to(position)?
    } else {
        call.session.wrote(position)
    }
    call.integer(i64::from(copied))
}

/// Whether to replace what is there.
fn parse(args: Args<'_>) -> Result<bool, Fault> {
    let (mut replace, mut at) = (false, 3);
    while at < args.len() {
        if args.is(at, "REPLACE") {
            replace = true;
        } else if args.is(at, "DB")
            && let Some(index) = args.get(at + 1)
        {
            database::check(index)?;
            at += 1;
        } else {
            return Err(SYNTAX);
        }
        at += 1;
    }
    Ok(replace)
}
