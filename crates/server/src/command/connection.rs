//! The connection itself: `PING [message]`, `ECHO message`, `QUIT`,
//! `RESET`.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::{Action, Keys, Spec};
use latewood_wire::resp::Protocol;

const PING: Spec = Spec {
    name: "ping",
    arity: -1,
    flags: &["fast"],
    keys: Keys::NONE,
    group: "connection",
    syntax: "[message]",
    summary: "Returns PONG, or the message.",
    action: Action::Apply(ping),
};

pub(crate) const SPECS: &[Spec] = &[
    PING,
    Spec {
        name: "echo",
        arity: 2,
        syntax: "message",
        summary: "Returns the message.",
        action: Action::Apply(echo),
        ..PING
    },
    Spec {
        name: "quit",
        flags: &["noscript", "loading", "stale", "fast", "no_auth"],
        syntax: "",
        summary: "Returns OK and closes the connection.",
        action: Action::Apply(quit),
        ..PING
    },
    Spec {
        name: "reset",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth"],
        syntax: "",
        summary: "Resets the connection to its initial state.",
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
