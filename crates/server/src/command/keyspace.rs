//! Keys as such: `DEL key...`, `UNLINK key...`, `EXISTS key...`, `TYPE key`,
//! `DBSIZE`, `TOUCH key...`, `RANDOMKEY`, `FLUSHALL [ASYNC|SYNC]`, `FLUSHDB [ASYNC|SYNC]`.
//!
//! Every key is a series, so TYPE says `TSDB-TYPE` or `none`. ASYNC and SYNC
//! are the same here.

use super::call::{Call, Outcome};
use super::fault::SYNTAX;
use super::keys::{Access, Keys, Run};
use super::spec::{Action, Spec};
use crate::messaging::Class;

const FLUSHALL: Spec = Spec {
    name: "flushall",
    arity: -1,
    flags: &["write"],
    keys: Keys::NONE,
    group: "keyspace",
    syntax: "[ASYNC|SYNC]",
    summary: "Deletes all series.",
    action: Action::Apply(flush),
};

const DEL: Spec = Spec {
    name: "del",
    arity: -2,
    flags: &["write"],
    keys: Keys(&[Run::from(1, 1, Access::Delete)]),
    group: "keyspace",
    syntax: "key [key ...]",
    summary: "Removes series; returns how many existed.",
    action: Action::Apply(delete),
};

pub(crate) const SPECS: &[Spec] = &[
    DEL,
    Spec {
        name: "unlink",
        ..DEL
    },
    Spec {
        name: "exists",
        arity: -2,
        flags: &["readonly", "fast"],
        keys: Keys(&[Run::from(1, 1, Access::Look)]),
        group: "keyspace",
        syntax: "key [key ...]",
        summary: "Returns how many of the keys exist; a repeated key counts each time.",
        action: Action::Apply(exists),
    },
    Spec {
        name: "touch",
        arity: -2,
        flags: &["readonly", "fast"],
        keys: Keys(&[Run::from(1, 1, Access::Look)]),
        group: "keyspace",
        syntax: "key [key ...]",
        summary: "Same as EXISTS: access times are not tracked.",
        action: Action::Apply(exists),
    },
    Spec {
        name: "randomkey",
        arity: 1,
        flags: &["readonly"],
        keys: Keys::NONE,
        group: "keyspace",
        syntax: "",
        summary: "Returns a random key.",
        action: Action::Apply(random),
    },
    Spec {
        name: "type",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: Keys(&[Run::at(1, Access::Look)]),
        group: "keyspace",
        syntax: "key",
        summary: "Returns the type of a key: TSDB-TYPE or none.",
        action: Action::Apply(kind),
    },
    Spec {
        name: "dbsize",
        arity: 1,
        flags: &["readonly", "fast"],
        keys: Keys::NONE,
        group: "keyspace",
        syntax: "",
        summary: "Returns the number of series.",
        action: Action::Apply(size),
    },
    FLUSHALL,
    Spec {
        name: "flushdb",
        ..FLUSHALL
    },
];

/// What TYPE answers for a series.
pub(crate) const TYPE_NAME: &str = "TSDB-TYPE";

fn delete(call: &mut Call<'_>) -> Outcome {
    let (db, keys) = (&call.shared.db, call.args.from(1));
    let mut removed = 0;
    for key in keys {
        let (was_there, position) = db.remove(&[key])?;
        call.session.wrote(position);
        if was_there > 0 {
            call.shared.changed(Class::Generic, "del", key);
        }
        removed += was_there;
    }
    call.reply()
        .integer(i64::try_from(removed).unwrap_or(i64::MAX));
    Ok(())
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
    call.reply()
        .integer(i64::try_from(found).unwrap_or(i64::MAX));
    Ok(())
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
    match call.shared.db.random_key() {
        Some(key) => call.reply().bulk(key),
        None => call.reply().null(),
    }
    Ok(())
}

fn size(call: &mut Call<'_>) -> Outcome {
    let series = call.shared.db.len();
    call.reply()
        .integer(i64::try_from(series).unwrap_or(i64::MAX));
    Ok(())
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
    call.reply().ok();
    Ok(())
}
