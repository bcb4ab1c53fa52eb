//! `CLIENT subcommand`: what a connection says and learns about itself.
//!
//! Here: GETNAME, SETNAME name, ID, INFO, SETINFO LIB-NAME|LIB-VER text,
//! REPLY ON|OFF|SKIP, NO-EVICT ON|OFF, NO-TOUCH ON|OFF, HELP, and Latewood's
//! own `DURABILITY [sync|interval|none]`: what a reply to a write promises on
//! this connection; without a word it answers the mode. What concerns other
//! connections has files of its own.

mod hold;
mod select;
mod tracking;

use super::call::{Call, Outcome};
use super::fault::{Fault, SYNTAX};
use super::spec::Spec;
use crate::clients::Flag;
use latewood_engine::Durability;
use latewood_model::Compatibility;
use latewood_model::limits::NAME_BYTES_MAX;

const SUB: Spec = Spec::of_group("connection", &["noscript", "loading", "stale"]).arity(2);

const ADMIN: Spec = SUB.flags(&["admin", "noscript", "loading", "stale"]);

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("connection", &[]).container(
    "client",
    "Reads and changes the state of connections.",
    &[
        SUB.named("getname", get_name)
            .about("Returns the name of the connection."),
        SUB.named("setname", set_name)
            .words(3, "name")
            .about("Sets the name of the connection."),
        SUB.named("id", id)
            .about("Returns the ID of the connection."),
        SUB.named("info", info)
            .about("Returns information about the connection."),
        ADMIN
            .named("list", select::list)
            .words(-2, "[TYPE normal|master|replica|pubsub] [ID id ...]")
            .about("Returns information about all connections, one per line."),
        ADMIN
            .named("kill", select::kill)
            .words(
                -3,
                "addr:port | [ID id] [ADDR addr:port] [LADDR addr:port] [USER name] \
                     [TYPE normal|master|replica|pubsub] [MAXAGE seconds] [SKIPME yes|no]",
            )
            .about("Closes connections."),
        ADMIN
            .named("pause", hold::pause)
            .words(-3, "milliseconds [WRITE|ALL]")
            .about("Suspends writes, or all commands, for some time."),
        ADMIN
            .named("unpause", hold::unpause)
            .about("Ends CLIENT PAUSE."),
        ADMIN
            .named("unblock", hold::unblock)
            .words(-3, "id [TIMEOUT|ERROR]")
            .about("Unblocks a connection that waits in TS.READ, WAIT or WAITAOF."),
        SUB.named("tracking", tracking::tracking)
            .words(-3, "ON|OFF")
            .about("Client-side caching is not supported; only OFF is accepted."),
        SUB.named("caching", tracking::caching)
            .words(3, "YES|NO")
            .about("Client-side caching is not supported."),
        SUB.named("trackinginfo", tracking::info)
            .about("Reports that client-side caching is off."),
        SUB.named("getredir", |call| call.integer(-1))
            .about("Returns -1: client-side caching is off."),
        SUB.named("setinfo", set_info)
            .words(4, "LIB-NAME|LIB-VER text")
            .about("Sets the name or version of the client library."),
        SUB.named("maint_notifications", maint_notifications)
            .words(-3, "ON|OFF [parameter value ...]")
            .about("Accepted: Latewood moves no endpoints, so there is nothing to notify of."),
        SUB.named("reply", reply)
            .words(3, "ON|OFF|SKIP")
            .about("Turns replies on or off, or off for the next command."),
        SUB.named("durability", durability)
            .words(-2, "[sync|interval|none]")
            .about("Returns or sets whether replies to writes wait for the disk."),
        SUB.named("tsversion", ts_version)
            .words(-2, "[1.12|8.10|default]")
            .about("Returns or sets the version of RedisTimeSeries that answers are like."),
        ADMIN
            .named("no-evict", |call| switch(call, Flag::NoEvict))
            .words(3, "ON|OFF")
            .about("Accepted without effect: connections are never evicted."),
        SUB.named("no-touch", |call| switch(call, Flag::NoTouch))
            .words(3, "ON|OFF")
            .about("Accepted without effect: reads change nothing."),
        SUB.help(),
    ],
)];

/// A name that fits in a line of CLIENT LIST.
pub(crate) fn checked_name(name: &[u8], what: &str) -> Result<String, Fault> {
    if name.len() > NAME_BYTES_MAX {
        let line = format!("ERR {what} must be at most {NAME_BYTES_MAX} bytes");
        return Fault::refuse(line);
    }
    if name.iter().all(|byte| matches!(byte, b'!'..=b'~')) {
        return Ok(String::from_utf8_lossy(name).into_owned());
    }
    let line = format!("ERR {what} cannot contain spaces, newlines or special characters.");
    Fault::refuse(line)
}

fn get_name(call: &mut Call<'_>) -> Outcome {
    let name = call.session.info.name();
    if name.is_empty() {
        call.reply().null()
    } else {
        call.reply().bulk(name)
    }
    Ok(())
}

fn set_name(call: &mut Call<'_>) -> Outcome {
    let name = checked_name(call.args.word(2), "Client names")?;
    call.session.info.set_name(name);
    call.ok()
}

fn id(call: &mut Call<'_>) -> Outcome {
    let id = i64::try_from(call.session.info.id).unwrap_or(i64::MAX);
    call.integer(id)
}

fn info(call: &mut Call<'_>) -> Outcome {
    let mut text = String::new();
    call.session.info.describe(&mut text);
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

fn set_info(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let info = &call.session.info;
    if args.is(2, "LIB-NAME") {
        info.set_library(checked_name(args.word(3), "LIB-NAME")?);
    } else if args.is(2, "LIB-VER") {
        info.set_library_version(checked_name(args.word(3), "LIB-VER")?);
    } else {
        let option = String::from_utf8_lossy(args.word(2));
        return Fault::refuse(format!("ERR Unrecognized option '{option}'"));
    }
    call.ok()
}

fn reply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if call.session.in_exec() {
        // The array that EXEC has begun must be filled.
        return Fault::refuse("ERR CLIENT REPLY is not allowed inside EXEC");
    }
    if args.is(2, "ON") {
        call.session.replies.turn_on();
        call.reply().ok();
    } else if args.is(2, "OFF") {
        call.session.replies.turn_off();
    } else if args.is(2, "SKIP") {
        call.session.replies.skip_next();
    } else {
        return Err(SYNTAX);
    }
    Ok(())
}

/// Clients of Redis ask for these at each connection.
fn maint_notifications(call: &mut Call<'_>) -> Outcome {
    if !(call.args.is(2, "ON") || call.args.is(2, "OFF")) {
        return Err(SYNTAX);
    }
    call.ok()
}

fn durability(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        2 => {
            let mode = call.session.writes.durability().name();
            call.reply().simple(mode);
        }
        3 => {
            let mode = Durability::of_name(call.args.word(2));
            let mode = mode.ok_or(Fault::line("ERR durability must be sync, interval or none"))?;
            call.session.writes.set_durability(mode);
            call.reply().ok();
        }
        _ => return Err(Fault::Arity),
    }
    Ok(())
}

fn ts_version(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        2 => {
            let version = call.compatibility().name();
            call.reply().simple(version);
        }
        3 if call.args.is(2, "DEFAULT") => {
            call.session.compatibility = None;
            call.reply().ok();
        }
        3 => {
            let version = Compatibility::of_name(call.args.word(2));
            let wrong = Fault::line("ERR the version must be 1.12, 8.10 or default");
            call.session.compatibility = Some(version.ok_or(wrong)?);
            call.reply().ok();
        }
        _ => return Err(Fault::Arity),
    }
    Ok(())
}

fn switch(call: &mut Call<'_>, flag: Flag) -> Outcome {
    let is_on = call.args.is(2, "ON");
    if !is_on && !call.args.is(2, "OFF") {
        return Err(SYNTAX);
    }
    call.session.info.figures.set(flag, is_on);
    call.ok()
}
