//! Keys with a time to live.
//!
//! ```text
//! EXPIRE key seconds [NX|XX|GT|LT ...]     TTL key   PTTL key
//! PEXPIRE key milliseconds [...]           EXPIRETIME key   PEXPIRETIME key
//! EXPIREAT key unix-seconds [...]          PERSIST key
//! PEXPIREAT key unix-milliseconds [...]
//! ```
//!
//! A time that has passed removes the series at once. TTL and its like answer
//! -2 for no key and -1 for a series that stays.

use super::args::Args;
use super::call::{Call, Outcome};
use super::fault::{Fault, NOT_AN_INTEGER, REPEATED_BYTES_MAX};
use super::keys::{Access, Keys, Run};
use super::spec::Spec;
use crate::messaging::Class;
use latewood_engine::{ErrorKind, ExpireIf, Expiry};
use latewood_wire::resp::number::parse_i64;

const EXPIRING: Spec = Spec::of_group("keyspace", &["write", "fast"])
    .arity(-3)
    .keys(Keys(&[Run::at(1, Access::Update)]));

const ASKING: Spec = Spec::of_group("keyspace", &["readonly", "fast"])
    .words(2, "key")
    .keys(Keys(&[Run::at(1, Access::Look)]));

pub(crate) const SPECS: &[Spec] = &[
    EXPIRING
        .named("expire", |call| {
            expire(call, "expire", Unit::Seconds, call.shared.db.now_ms())
        })
        .syntax("key seconds [NX|XX|GT|LT]")
        .about("Makes a series expire after seconds."),
    EXPIRING
        .named("pexpire", |call| {
            expire(call, "pexpire", Unit::Milliseconds, call.shared.db.now_ms())
        })
        .syntax("key milliseconds [NX|XX|GT|LT]")
        .about("Makes a series expire after milliseconds."),
    EXPIRING
        .named("expireat", |call| {
            expire(call, "expireat", Unit::Seconds, 0)
        })
        .syntax("key unix-seconds [NX|XX|GT|LT]")
        .about("Makes a series expire at a Unix time in seconds."),
    EXPIRING
        .named("pexpireat", |call| {
            expire(call, "pexpireat", Unit::Milliseconds, 0)
        })
        .syntax("key unix-milliseconds [NX|XX|GT|LT]")
        .about("Makes a series expire at a Unix time in milliseconds."),
    ASKING
        .named("ttl", |call| left(call, Unit::Seconds))
        .about("Returns the seconds until a series expires."),
    ASKING
        .named("pttl", |call| left(call, Unit::Milliseconds))
        .about("Returns the milliseconds until a series expires."),
    ASKING
        .named("expiretime", |call| {
            answer(call, |at_ms| rounded(at_ms, Unit::Seconds))
        })
        .about("Returns when a series expires, as Unix time in seconds."),
    ASKING
        .named("pexpiretime", |call| answer(call, |at_ms| at_ms))
        .about("Returns when a series expires, as Unix time in milliseconds."),
    EXPIRING
        .named("persist", persist)
        .words(2, "key")
        .about("Removes the expiry of a series."),
];

/// What a number counts.
#[derive(Clone, Copy)]
enum Unit {
    Seconds = 1000,
    Milliseconds = 1,
}

fn expire(call: &mut Call<'_>, name: &'static str, unit: Unit, since_ms: i64) -> Outcome {
    let args = call.args;
    let only = conditions(args)?;
    let time = parse_i64(args.word(2)).ok_or(NOT_AN_INTEGER)?;
    let at_ms = time
        .checked_mul(unit as i64)
        .and_then(|time_ms| time_ms.checked_add(since_ms))
        .ok_or_else(|| {
            Fault::Line(format!("ERR invalid expire time in '{name}' command").into())
        })?;
    let key = args.word(1);
    let done = match call.shared.db.expire(key, at_ms, only) {
        Ok((expiry, position)) => {
            call.session.wrote(position);
            expiry
        }
        Err(error) if error.kind() == ErrorKind::NoSuchKey => Expiry::Kept,
        Err(error) => return Err(error.into()),
    };
    match done {
        Expiry::Set => call.shared.changed(Class::Generic, "expire", key),
        Expiry::Removed => call.shared.changed(Class::Generic, "del", key),
        Expiry::Kept => {}
    }
    call.integer(i64::from(done != Expiry::Kept))
}

/// Reads the words behind the time.
fn conditions(args: Args<'_>) -> Result<ExpireIf, Fault> {
    let mut only = ExpireIf::default();
    for (at, word) in (3..).zip(args.from(3)) {
        if args.is(at, "NX") {
            only.unset = true;
        } else if args.is(at, "XX") {
            only.set = true;
        } else if args.is(at, "GT") {
            only.later = true;
        } else if args.is(at, "LT") {
            only.sooner = true;
        } else {
            let word = String::from_utf8_lossy(&word[..word.len().min(REPEATED_BYTES_MAX)]);
            return Fault::refuse(format!("ERR Unsupported option {word}"));
        }
    }
    if only.unset && (only.set || only.later || only.sooner) {
        return Fault::refuse(
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        );
    }
    if only.later && only.sooner {
        return Fault::refuse("ERR GT and LT options at the same time are not compatible");
    }
    Ok(only)
}

fn left(call: &mut Call<'_>, unit: Unit) -> Outcome {
    let now_ms = call.shared.db.now_ms();
    answer(call, |at_ms| {
        rounded(at_ms.saturating_sub(now_ms).max(0), unit)
    })
}

/// To the nearest unit, as Redis rounds.
fn rounded(time_ms: i64, unit: Unit) -> i64 {
    let unit = unit as i128;
    let rounded = (i128::from(time_ms) + unit / 2) / unit;
    i64::try_from(rounded).unwrap_or(i64::MAX)
}

/// Answers with what `show` makes of the expiry time.
fn answer(call: &mut Call<'_>, show: impl FnOnce(i64) -> i64) -> Outcome {
    let key = call.args.word(1);
    let number = match call.shared.db.expires_at(key) {
        Ok(Some(at_ms)) => show(at_ms),
        Ok(None) => -1,
        Err(_) => {
            call.shared.events.missed(key);
            -2
        }
    };
    call.integer(number)
}

fn persist(call: &mut Call<'_>) -> Outcome {
    let key = call.args.word(1);
    let persisted = match call.shared.db.persist(key) {
        Ok((persisted, position)) => {
            call.session.wrote(position);
            persisted
        }
        Err(error) if error.kind() == ErrorKind::NoSuchKey => false,
        Err(error) => return Err(error.into()),
    };
    if persisted {
        call.shared.changed(Class::Generic, "persist", key);
    }
    call.integer(i64::from(persisted))
}
