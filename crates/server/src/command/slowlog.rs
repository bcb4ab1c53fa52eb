//! `SLOWLOG GET [count]`, `SLOWLOG LEN`, `SLOWLOG RESET`, `SLOWLOG HELP`: the
//! commands that took long.
//!
//! What an entry holds is said in `observe/slowlog.rs`; a group of samples
//! that were applied together has one entry.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use latewood_wire::resp::number::parse_i64;

const SUB: Spec = Spec::of_group("server", &["loading", "stale"]).help();

const ADMIN: Spec = SUB.flags(&["admin", "loading", "stale"]);

pub(crate) const SPECS: &[Spec] = &[SUB.flags(&[]).container(
    "slowlog",
    "Reads and clears the list of slow commands.",
    &[
        ADMIN
            .named("get", get)
            .words(-2, "[count]")
            .about("Returns the newest slow commands: 10 by default, all with -1."),
        ADMIN
            .named("len", len)
            .about("Returns the number of entries."),
        ADMIN.named("reset", reset).about("Deletes the entries."),
        SUB,
    ],
)];

/// Entries without a count.
const COUNT: usize = 10;

fn get(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let count = match args.get(2) {
        _ if args.len() > 3 => {
            return Fault::refuse(
                "ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.",
            );
        }
        None => COUNT,
        Some(word) => match parse_i64(word) {
            Some(-1) => usize::MAX,
            Some(count) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
            _ => {
                return Fault::refuse("ERR count should be greater than or equal to -1");
            }
        },
    };
    let entries = call.shared.observe.slowlog.newest(count);
    let mut reply = call.reply();
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(entry.id);
        reply.integer(entry.time_s);
        reply.integer(entry.duration_us);
        reply.array(entry.words.len());
        for word in &entry.words {
            reply.bulk(word);
        }
        reply.bulk(&entry.peer);
        reply.bulk(&entry.name);
    }
    Ok(())
}

fn len(call: &mut Call<'_>) -> Outcome {
    let len = call.shared.observe.slowlog.len();
    call.count(len)
}

fn reset(call: &mut Call<'_>) -> Outcome {
    call.shared.observe.slowlog.reset();
    call.ok()
}
