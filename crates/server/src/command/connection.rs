//! The connection itself: `PING [message]`, `ECHO message`, `QUIT`,
//! `RESET`.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use latewood_wire::resp::Protocol;

const PING: Spec = Spec::of_group("connection", &["fast"])
    .named("ping", ping)
    .words(-1, "[message]")
    .about("Returns PONG, or the message.");

pub(crate) const SPECS: &[Spec] = &[
    PING,
    PING.named("echo", echo)
        .words(2, "message")
        .about("Returns the message."),
    PING.flags(&["noscript", "loading", "stale", "fast", "no_auth"])
        .named("quit", quit)
        .syntax("")
        .about("Returns OK and closes the connection."),
    PING.flags(&["noscript", "loading", "stale", "fast", "no_auth"])
        .named("reset", reset)
        .words(1, "")
        .about("Resets the connection to its initial state."),
];

fn ping(call: &mut Call<'_>) -> Outcome {
    if call.session.protocol() == Protocol::Resp2 && call.session.is_subscriber() {
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
    call.session.close();
    call.ok()
}

fn reset(call: &mut Call<'_>) -> Outcome {
    call.session.reset(call.shared);
    call.reply().simple("RESET");
    Ok(())
}
