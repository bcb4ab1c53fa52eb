//! `TS.QUERYLABELS LABELS | VALUES label [FILTER expr...]` gives the names of
//! the labels there are, or the values that one label has, in the order of
//! their bytes; with FILTER only those of the series that pass it. Series that
//! the user may not read are passed over. Reply: an array, in RESP3 a set; no
//! more of them are gathered than a reply may have.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::reply_limit::ReplyLimit;
use super::spec::Spec;
use super::{filter, work};
use latewood_engine::{ErrorKind, MaySee};
use latewood_model::Matcher;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.querylabels", apply)
    .words(-2, "LABELS | VALUES label [FILTER expression ...]")
    .about("Get all label names, or all values of a given label, for time series matching a filter list, or all series");

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let (wanted, at) = if args.is(1, "LABELS") {
        (None, 2)
    } else if args.is(1, "VALUES") {
        (Some(args.get(2).ok_or(Fault::Arity)?.to_vec()), 3)
    } else {
        return Fault::refuse("ERR TSDB: unknown subtype, must be one of LABELS|VALUES");
    };
    let matchers = match args.get(at) {
        None => Vec::new(),
        Some(_) if !args.is(at, "FILTER") => {
            return Fault::refuse("ERR TSDB: unknown argument, expected FILTER");
        }
        Some(_) if args.len() == at + 1 => {
            return Fault::refuse("ERR TSDB: FILTER given with no filter expressions");
        }
        Some(_) => filter::matchers(args.from(at + 1))?,
    };
    let is_restricted = !call.session.user().is_unrestricted;
    // Which of the pairs are of the name is not known.
    let mut about = work::of_names(call.shared.db.label_pairs());
    if is_restricted || !matchers.is_empty() {
        about += call.work_of_finding(&matchers);
    }
    call.finish(about, move |call| list(call, wanted.as_deref(), &matchers))
}

fn list(call: &mut Call<'_>, wanted: Option<&[u8]>, matchers: &[Matcher]) -> Outcome {
    let readable = |key: &[u8]| call.readable(key);
    let may_see: Option<MaySee<'_>> = if call.session.user().is_unrestricted {
        None
    } else {
        Some(&readable)
    };
    let (db, limit) = (&call.shared.db, ReplyLimit::of(call.shared));
    let answers = match wanted {
        None => db.label_names(matchers, may_see, None, limit.bytes, call.cancelled),
        Some(name) => db.label_values(name, matchers, may_see, None, limit.bytes, call.cancelled),
    };
    let answers = answers.map_err(|error| match error.kind() {
        ErrorKind::Limit => limit.refuse(
            "the reply has more names than fit in",
            "; ask for fewer with FILTER",
        ),
        _ => error.into(),
    })?;
    let mut reply = call.reply();
    reply.set(answers.len());
    for answer in answers.iter() {
        reply.bulk(answer);
    }
    Ok(())
}
