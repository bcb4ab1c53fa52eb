//! The connection itself: `PING [message]`, `ECHO message`, `SELECT 0`,
//! `QUIT`, `RESET`.

use super::fault::NOT_AN_INTEGER;
use super::registry::{Action, Keys, Spec};
use super::{Call, Fault, Outcome};
use latewood_wire::resp::Protocol;
use latewood_wire::resp::number::parse_i64;

const PING: Spec = Spec {
    name: "ping",
    arity: -1,
    flags: &["fast"],
    keys: Keys::NONE,
    group: "connection",
    syntax: "[message]",
    summary: "Answers PONG, or the message.",
    action: Action::Apply(ping),
};

pub(crate) const SPECS: &[Spec] = &[
    PING,
    Spec {
        name: "echo",
        arity: 2,
        syntax: "message",
        summary: "Answers the message.",
        action: Action::Apply(echo),
        ..PING
    },
    Spec {
        name: "select",
        arity: 2,
        syntax: "index",
        summary: "Selects a database; there is one, 0.",
        action: Action::Apply(select),
        ..PING
    },
    Spec {
        name: "quit",
        flags: &["noscript", "loading", "stale", "fast", "no_auth"],
        syntax: "",
        summary: "Answers OK and closes the connection.",
        action: Action::Apply(quit),
        ..PING
    },
    Spec {
        name: "reset",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth"],
        syntax: "",
        summary: "Puts the connection back into the state it began with.",
        action: Action::Apply(reset),
        ..PING
    },
];

fn ping(call: &mut Call<'_>) -> Outcome {
    if call.session.protocol == Protocol::Resp2 && call.session.is_subscriber() {
        // A message among messages.
        let text = call.args.get(1).unwrap_or_default();
        let mut reply = call.reply();
        reply.array(2);
        reply.bulk("pong");
        reply.bulk(text);
        return Ok(());
    }
    match call.args.len() {
        1 => call.reply().simple("PONG"),
        2 => return echo(call),
        _ => return Err(Fault::Arity),
    }
    Ok(())
}

fn echo(call: &mut Call<'_>) -> Outcome {
    let message = call.args.word(1);
    call.reply().bulk(message);
    Ok(())
}

fn select(call: &mut Call<'_>) -> Outcome {
    match parse_i64(call.args.word(1)) {
        Some(0) => call.reply().ok(),
        Some(_) => return Err(Fault::line("ERR DB index is out of range")),
        None => return Err(NOT_AN_INTEGER),
    }
    Ok(())
}

fn quit(call: &mut Call<'_>) -> Outcome {
    call.session.closing = true;
    call.reply().ok();
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Outcome {
    call.session.reset(call.shared);
    call.reply().simple("RESET");
    Ok(())
}
