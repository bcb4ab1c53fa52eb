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
use super::fault::Fault;
use super::fault::SYNTAX;
use super::spec::{Action, Keys, Spec};
use crate::client::ReplyMode;
use crate::clients::Flag;
use latewood_engine::Durability;
use latewood_model::limits::NAME_BYTES_MAX;

const SUB: Spec = Spec {
    name: "",
    arity: 2,
    flags: &["noscript", "loading", "stale"],
    keys: Keys::NONE,
    group: "connection",
    syntax: "",
    summary: "",
    action: Action::Apply(help),
};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "client",
    arity: -2,
    flags: &[],
    keys: Keys::NONE,
    group: "connection",
    syntax: "subcommand [argument ...]",
    summary: "Reads and changes the state of connections.",
    action: Action::Container(&[
        Spec {
            name: "getname",
            summary: "Returns the name of the connection.",
            action: Action::Apply(get_name),
            ..SUB
        },
        Spec {
            name: "setname",
            arity: 3,
            syntax: "name",
            summary: "Sets the name of the connection.",
            action: Action::Apply(set_name),
            ..SUB
        },
        Spec {
            name: "id",
            summary: "Returns the ID of the connection.",
            action: Action::Apply(id),
            ..SUB
        },
        Spec {
            name: "info",
            summary: "Returns information about the connection.",
            action: Action::Apply(info),
            ..SUB
        },
        Spec {
            name: "list",
            arity: -2,
            flags: &["admin", "noscript", "loading", "stale"],
            syntax: "[TYPE normal|master|replica|pubsub] [ID id ...]",
            summary: "Returns information about all connections, one per line.",
            action: Action::Apply(select::list),
            ..SUB
        },
        Spec {
            name: "kill",
            arity: -3,
            flags: &["admin", "noscript", "loading", "stale"],
            syntax: "addr:port | [ID id] [ADDR addr:port] [LADDR addr:port] [USER name] \
                     [TYPE normal|master|replica|pubsub] [MAXAGE seconds] [SKIPME yes|no]",
            summary: "Closes connections.",
            action: Action::Apply(select::kill),
            ..SUB
        },
        Spec {
            name: "pause",
            arity: -3,
            flags: &["admin", "noscript", "loading", "stale"],
            syntax: "milliseconds [WRITE|ALL]",
            summary: "Suspends writes, or all commands, for some time.",
            action: Action::Apply(hold::pause),
            ..SUB
        },
        Spec {
            name: "unpause",
            flags: &["admin", "noscript", "loading", "stale"],
            summary: "Ends CLIENT PAUSE.",
            action: Action::Apply(hold::unpause),
            ..SUB
        },
        Spec {
            name: "unblock",
            arity: -3,
            flags: &["admin", "noscript", "loading", "stale"],
            syntax: "id [TIMEOUT|ERROR]",
            summary: "Unblocks a connection that waits for samples.",
            action: Action::Apply(hold::unblock),
            ..SUB
        },
        Spec {
            name: "tracking",
            arity: -3,
            syntax: "ON|OFF",
            summary: "Client-side caching is not supported; only OFF is accepted.",
            action: Action::Apply(tracking::tracking),
            ..SUB
        },
        Spec {
            name: "caching",
            arity: 3,
            syntax: "YES|NO",
            summary: "Client-side caching is not supported.",
            action: Action::Apply(tracking::caching),
            ..SUB
        },
        Spec {
            name: "trackinginfo",
            summary: "Reports that client-side caching is off.",
            action: Action::Apply(tracking::info),
            ..SUB
        },
        Spec {
            name: "getredir",
            summary: "Returns -1: client-side caching is off.",
            action: Action::Apply(tracking::redirection),
            ..SUB
        },
        Spec {
            name: "setinfo",
            arity: 4,
            syntax: "LIB-NAME|LIB-VER text",
            summary: "Sets the name or version of the client library.",
            action: Action::Apply(set_info),
            ..SUB
        },
        Spec {
            name: "maint_notifications",
            arity: -3,
            syntax: "ON|OFF [parameter value ...]",
            summary: "Accepted: Latewood moves no endpoints, so there is nothing to notify of.",
            action: Action::Apply(maint_notifications),
            ..SUB
        },
        Spec {
            name: "reply",
            arity: 3,
            syntax: "ON|OFF|SKIP",
            summary: "Turns replies on or off, or off for the next command.",
            action: Action::Apply(reply),
            ..SUB
        },
        Spec {
            name: "durability",
            arity: -2,
            syntax: "[sync|interval|none]",
            summary: "Returns or sets whether replies to writes wait for the disk.",
            action: Action::Apply(durability),
            ..SUB
        },
        Spec {
            name: "no-evict",
            arity: 3,
            syntax: "ON|OFF",
            flags: &["admin", "noscript", "loading", "stale"],
            summary: "Accepted without effect: connections are never evicted.",
            action: Action::Apply(|call| switch(call, Flag::NoEvict)),
            ..SUB
        },
        Spec {
            name: "no-touch",
            arity: 3,
            syntax: "ON|OFF",
            summary: "Accepted without effect: reads change nothing.",
            action: Action::Apply(|call| switch(call, Flag::NoTouch)),
            ..SUB
        },
        Spec {
            name: "help",
            summary: "Lists the subcommands.",
            ..SUB
        },
    ]),
}];

/// A name that fits in a line of CLIENT LIST.
pub(crate) fn checked_name(name: &[u8], what: &str) -> Result<String, Fault> {
    if name.len() > NAME_BYTES_MAX {
        let line = format!("ERR {what} must be at most {NAME_BYTES_MAX} bytes");
        return Err(Fault::Line(line.into()));
    }
    if name.iter().all(|byte| matches!(byte, b'!'..=b'~')) {
        return Ok(String::from_utf8_lossy(name).into_owned());
    }
    let line = format!("ERR {what} cannot contain spaces, newlines or special characters.");
    Err(Fault::Line(line.into()))
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
    call.reply().ok();
    Ok(())
}

fn id(call: &mut Call<'_>) -> Outcome {
    let id = i64::try_from(call.session.info.id).unwrap_or(i64::MAX);
    call.reply().integer(id);
    Ok(())
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
        return Err(Fault::Line(
            format!("ERR Unrecognized option '{option}'").into(),
        ));
    }
    call.reply().ok();
    Ok(())
}

fn reply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if call.session.in_exec() {
        // The array that EXEC has begun must be filled.
        return Err(Fault::line("ERR CLIENT REPLY is not allowed inside EXEC"));
    }
    if args.is(2, "ON") {
        call.session.reply_mode = ReplyMode::On;
        call.session.reply_turned_on = true;
        call.reply().ok();
    } else if args.is(2, "OFF") {
        call.session.reply_mode = ReplyMode::Off;
    } else if args.is(2, "SKIP") {
        if call.session.reply_mode == ReplyMode::On {
            call.session.reply_mode = ReplyMode::SkipNext;
        }
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
    call.reply().ok();
    Ok(())
}

fn durability(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        2 => {
            let mode = call.session.durability.name();
            call.reply().simple(mode);
        }
        3 => {
            let mode = Durability::parse(call.args.word(2));
            call.session.durability =
                mode.ok_or(Fault::line("ERR durability must be sync, interval or none"))?;
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
    call.reply().ok();
    Ok(())
}

fn help(call: &mut Call<'_>) -> Outcome {
    super::docs::reply_help(call, "client");
    Ok(())
}
