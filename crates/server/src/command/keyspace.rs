//! Keys as such: `DEL key...`, `UNLINK key...`, `EXISTS key...`, `TYPE key`,
//! `DBSIZE`, `TOUCH key...`, `RANDOMKEY`, `FLUSHALL [ASYNC|SYNC]`, `FLUSHDB [ASYNC|SYNC]`.
//!
//! Every key is a series, so TYPE says `TSDB-TYPE` or `none`. ASYNC and SYNC
//! are the same here.

use super::call::{Call, Outcome};
use super::fault::SYNTAX;
use super::keys::{Access, Keys, Run};
use super::spec::Spec;
use crate::messaging::Class;

const FLUSHALL: Spec = Spec::of_group("keyspace", &["write"])
    .named("flushall", flush)
    .words(-1, "[ASYNC|SYNC]")
    .about("Deletes all series.");

const DEL: Spec = Spec::of_group("keyspace", &["write"])
    .named("del", delete)
    .words(-2, "key [key ...]")
    .keys(Keys(&[Run::from(1, 1, Access::Delete)]))
    .about("Removes series; returns how many existed.");

pub(crate) const SPECS: &[Spec] = &[
    DEL,
    DEL.called("unlink"),
    Spec::of_group("keyspace", &["readonly", "fast"])
        .named("exists", exists)
        .words(-2, "key [key ...]")
        .keys(Keys(&[Run::from(1, 1, Access::Look)]))
        .about("Returns how many of the keys exist; a repeated key counts each time."),
    Spec::of_group("keyspace", &["readonly", "fast"])
        .named("touch", exists)
        .words(-2, "key [key ...]")
        .keys(Keys(&[Run::from(1, 1, Access::Look)]))
        .about("Same as EXISTS: access times are not tracked."),
    Spec::of_group("keyspace", &["readonly"])
        .named("randomkey", random)
        .about("Returns a random key."),
    Spec::of_group("keyspace", &["readonly", "fast"])
        .named("type", kind)
        .words(2, "key")
        .keys(Keys(&[Run::at(1, Access::Look)]))
        .about("Returns the type of a key: TSDB-TYPE or none."),
    Spec::of_group("keyspace", &["readonly", "fast"])
        .named("dbsize", size)
        .about("Returns the number of series."),
    FLUSHALL,
    FLUSHALL.called("flushdb"),
];

/// What TYPE answers for a series.
pub(crate) const TYPE_NAME: &str = "TSDB-TYPE";

fn delete(call: &mut Call<'_>) -> Outcome {
    let (db, keys) = (&call.shared.db, call.args.from(1));
    let mut removed = 0;
    // Where one must not be removed, none is.
    if let Some(key) = call.args.from(1).find(|key| db.owner(key).is_some()) {
        db.remove(&[key])?;
    }
    for key in keys {
        let (was_there, position) = db.remove(&[key])?;
        call.session.wrote(position);
        if was_there > 0 {
            call.shared.changed(Class::Generic, "del", key);
        }
        removed += was_there;
    }
    call.count(removed)
}

fn exists(call: &mut Call<'_>) -> Outcome {
    let db = &call.shared.db;
    let is_there = |key: &&[u8]| {
        let is_there = db.contains(key);
        if !is_there {
            call.shared.events.missed(key);
        }
        is_there
    };
    let found = call.args.from(1).filter(is_there).count();
    call.count(found)
}

fn kind(call: &mut Call<'_>) -> Outcome {
    let key = call.args.word(1);
    let is_there = call.shared.db.contains(key);
    if !is_there {
        call.shared.events.missed(key);
    }
    call.reply()
        .simple(if is_there { TYPE_NAME } else { "none" });
    Ok(())
}

fn random(call: &mut Call<'_>) -> Outcome {
    match call.shared.db.random_key()? {
        Some(key) => call.reply().bulk(key),
        None => call.reply().null(),
    }
    Ok(())
}

fn size(call: &mut Call<'_>) -> Outcome {
    let series = call.shared.db.len();
    call.count(series)
}

fn flush(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let is_known = args.len() == 1 || args.is(1, "ASYNC") || args.is(1, "SYNC");
    if !is_known || args.len() > 2 {
        return Err(SYNTAX);
    }
    let (db, events) = (&call.shared.db, &call.shared.events);
    let listeners = events.flushing(|key| db.contains(key));
    let position = db.flush_all()?;
    events.flushed(&listeners);
    call.session.wrote(position);
    call.ok()
}
