//! `TS.MADD {key timestamp|* value}...` adds samples to series that exist.
//! Reply: for each sample its timestamp or an error.
//!
//! Like TS.ADD, commands of ordinary size are taken off the wire by
//! `net/group.rs`; this serves the rest, in batches of the engine's size.

use super::add;
use super::call::{Call, Outcome};
use super::fault::{Fault, engine_text, refusal_text};
use super::keys::{Access, Keys, Run};
use super::roles;
use super::spec::Spec;
use crate::base::clock::now_ms;
use crate::messaging::Class;
use latewood_engine::{Append, Create, Scratch, Stage};
use latewood_model::limits::APPEND_BATCH_MAX;
use latewood_wire::resp::Reply;
use std::borrow::Cow;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["write", "denyoom", "module"])
    .named("ts.madd", apply)
    .words(-4, "key timestamp|* value [key timestamp|* value ...]")
    .keys(Keys(&[Run::from(1, 3, Access::ReadUpdate)]))
    .about("Append new samples to one or more time series");

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if !(args.len() - 1).is_multiple_of(3) {
        return Err(Fault::Arity);
    }
    let samples = (args.len() - 1) / 3;
    call.reply().array(samples);
    let mut scratch = Scratch::new();
    let mut parsed = Vec::new();
    let mut appends = Vec::new();
    scratch.lend(call.session.timing.take());
    for start in (0..samples).step_by(APPEND_BATCH_MAX) {
        let batch = start..samples.min(start + APPEND_BATCH_MAX);
        parsed.clear();
        appends.clear();
        for i in batch {
            let word = |offset: usize| args.word(1 + 3 * i + offset);
            let sample = add::sample(word(1), word(2), now_ms).map_err(Cow::Borrowed);
            let sample = sample.and_then(|(timestamp, value)| {
                add::check_time(call.shared, word(0), timestamp)?;
                Ok((timestamp, value))
            });
            parsed.push(sample.as_ref().map(|_| ()).map_err(Cow::clone));
            if let Ok((timestamp, value)) = sample {
                appends.push(Append {
                    key: word(0),
                    timestamp,
                    value,
                    on_duplicate: None,
                    create: Create::Never,
                });
            }
        }
        scratch.timer().end_for(Stage::Parse, parsed.len());
        answer(call, &parsed, &appends, start > 0, &mut scratch);
        if call.shared.events.is_listening() {
            for i in start..start + parsed.len() {
                let key = args.word(1 + 3 * i);
                call.shared.changed(Class::Module, add::EVENT, key);
            }
        }
        scratch.timer().end_for(Stage::Reply, parsed.len());
    }
    call.session.timing.note_replies(scratch.give_back(), 0);
    Ok(())
}

/// Applies one batch, the first of the command or a later one, and writes an answer for each of its
/// samples, those that could not be parsed included.
fn answer(
    call: &mut Call<'_>,
    parsed: &[Result<(), Cow<'static, str>>],
    appends: &[Append<'_>],
    is_later: bool,
    scratch: &mut Scratch,
) {
    let arrival = call.shared.observe.note_ages(appends);
    let failed = match call.shared.db.append(appends, scratch) {
        Ok(position) => {
            call.session.wrote(position);
            let observe = &call.shared.observe;
            let scratch = (&*scratch, &*call.shared.db);
            observe.note_batch(&arrival, appends, scratch, call.session.sender());
            None
        }
        Err(error) => {
            let (shared, slot) = (call.shared, call.session.slot());
            let is_begun = is_later || call.session.in_exec();
            let lost = roles::lost(shared, &error, slot, is_begun);
            Some(lost.map_or_else(|| engine_text(&error), Cow::Owned))
        }
    };
    let mut outcomes = appends.iter().zip(scratch.outcomes());
    let errors = &call.shared.observe.errors;
    let mut reply = Reply::new(call.out, call.session.protocol());
    for parsed in parsed {
        let refused: Cow<'_, str> = match (parsed, &failed) {
            (Err(line), _) => line.as_ref().into(),
            (Ok(()), Some(line)) => line.as_ref().into(),
            (Ok(()), None) => match outcomes.next() {
                Some((_, Ok(timestamp))) => {
                    reply.integer(*timestamp);
                    continue;
                }
                Some((append, Err(refusal))) => refusal_text(refusal, append.key, &call.shared.db),
                None => "ERR TSDB: internal error: no result for the sample".into(),
            },
        };
        errors.note(&refused, 1);
        reply.error(refused.as_bytes());
    }
}
