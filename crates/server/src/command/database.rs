//! Databases by number; there is only database 0: `SELECT 0`, `MOVE key 0`,
//! `SWAPDB 0 0`.

use super::call::{Call, Outcome};
use super::fault::{Fault, NOT_AN_INTEGER};
use super::spec::{Keys, Spec};
use latewood_wire::resp::number::parse_i64;

pub(crate) const SPECS: &[Spec] = &[
    Spec::of_group("connection", &["fast"])
        .named("select", select)
        .words(2, "index")
        .about("Selects a database; only 0 exists."),
    Spec::of_group("keyspace", &["write", "fast"])
        .named("move", move_key)
        .words(3, "key index")
        .keys(Keys::ONE)
        .about("Not supported: there is only one database."),
    Spec::of_group("server", &["write", "fast"])
        .named("swapdb", swap)
        .words(3, "index1 index2")
        .about("Swaps database 0 with itself; no other exists."),
];

/// A key was to go where it is.
pub(crate) const SAME: Fault = Fault::line("ERR source and destination objects are the same");

/// Refuses every database but 0.
pub(crate) fn check(index: &[u8]) -> Result<(), Fault> {
    let index = parse_i64(index).ok_or(NOT_AN_INTEGER)?;
    match i32::try_from(index) {
        Ok(0) => Ok(()),
        Ok(_) => Fault::refuse("ERR DB index is out of range"),
        Err(_) => Fault::refuse(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ),
    }
}

fn select(call: &mut Call<'_>) -> Outcome {
    check(call.args.word(1))?;
    call.ok()
}

fn move_key(call: &mut Call<'_>) -> Outcome {
    check(call.args.word(2))?;
    Err(SAME)
}

fn swap(call: &mut Call<'_>) -> Outcome {
    let number = |at| parse_i64(call.args.word(at)).and_then(|index| i32::try_from(index).ok());
    let first = number(1).ok_or(Fault::line("ERR invalid first DB index"))?;
    let second = number(2).ok_or(Fault::line("ERR invalid second DB index"))?;
    if (first, second) != (0, 0) {
        return Fault::refuse("ERR DB index is out of range");
    }
    call.ok()
}
