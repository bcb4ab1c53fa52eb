//! Channels: `SUBSCRIBE channel...`, `PSUBSCRIBE pattern...`,
//! `SSUBSCRIBE channel...`, their opposites `UNSUBSCRIBE`, `PUNSUBSCRIBE` and
//! `SUNSUBSCRIBE` (without a word: all), `PUBLISH channel message`,
//! `SPUBLISH channel message`, `PUBSUB subcommand`.
//!
//! Each name has a reply of its own, which in RESP3 is a push. A message is
//! sent to the clients of this server; the reply says to how many.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::{Action, Keys, Spec};
use crate::base::glob::Glob;
use crate::messaging::Kind;
use latewood_model::limits::CHANNEL_BYTES_MAX;

const SUBSCRIBE: Spec = Spec {
    name: "subscribe",
    arity: -2,
    flags: &["pubsub", "noscript", "loading", "stale"],
    keys: Keys::NONE,
    group: "pubsub",
    syntax: "channel [channel ...]",
    summary: "Subscribes to channels.",
    action: Action::Apply(|call| subscribe(call, Kind::Channel, "subscribe")),
};

const UNSUBSCRIBE: Spec = Spec {
    name: "unsubscribe",
    arity: -1,
    syntax: "[channel ...]",
    summary: "Unsubscribes from channels, or from all.",
    action: Action::Apply(|call| unsubscribe(call, Kind::Channel, "unsubscribe")),
    ..SUBSCRIBE
};

const PUBLISH: Spec = Spec {
    name: "publish",
    arity: 3,
    flags: &["pubsub", "loading", "stale", "fast"],
    syntax: "channel message",
    summary: "Publishes a message; returns the number of receivers.",
    action: Action::Apply(publish),
    ..SUBSCRIBE
};

const SUB: Spec = Spec {
    name: "",
    arity: -2,
    flags: &["pubsub", "loading", "stale"],
    keys: Keys::NONE,
    group: "pubsub",
    syntax: "",
    summary: "",
    action: Action::Apply(help),
};

pub(crate) const SPECS: &[Spec] = &[
    SUBSCRIBE,
    Spec {
        name: "psubscribe",
        syntax: "pattern [pattern ...]",
        summary: "Subscribes to channels that match glob patterns.",
        action: Action::Apply(|call| subscribe(call, Kind::Pattern, "psubscribe")),
        ..SUBSCRIBE
    },
    Spec {
        name: "ssubscribe",
        summary: "Subscribes to shard channels.",
        action: Action::Apply(|call| subscribe(call, Kind::Shard, "ssubscribe")),
        ..SUBSCRIBE
    },
    UNSUBSCRIBE,
    Spec {
        name: "punsubscribe",
        syntax: "[pattern ...]",
        summary: "Unsubscribes from patterns, or from all.",
        action: Action::Apply(|call| unsubscribe(call, Kind::Pattern, "punsubscribe")),
        ..UNSUBSCRIBE
    },
    Spec {
        name: "sunsubscribe",
        summary: "Unsubscribes from shard channels, or from all.",
        action: Action::Apply(|call| unsubscribe(call, Kind::Shard, "sunsubscribe")),
        ..UNSUBSCRIBE
    },
    PUBLISH,
    Spec {
        name: "spublish",
        summary: "Publishes a message to a shard channel; returns the number of receivers.",
        action: Action::Apply(publish_to_shard),
        ..PUBLISH
    },
    Spec {
        name: "pubsub",
        arity: -2,
        flags: &[],
        keys: Keys::NONE,
        group: "pubsub",
        syntax: "subcommand [argument ...]",
        summary: "Reports subscriptions.",
        action: Action::Container(&[
            Spec {
                name: "channels",
                syntax: "[pattern]",
                summary: "Returns the channels with subscribers.",
                action: Action::Apply(|call| channels(call, Kind::Channel)),
                ..SUB
            },
            Spec {
                name: "numsub",
                syntax: "[channel ...]",
                summary: "Returns the number of subscribers of channels, patterns not counted.",
                action: Action::Apply(|call| subscribers(call, Kind::Channel)),
                ..SUB
            },
            Spec {
                name: "numpat",
                arity: 2,
                summary: "Returns the number of patterns with subscribers.",
                action: Action::Apply(patterns),
                ..SUB
            },
            Spec {
                name: "shardchannels",
                syntax: "[pattern]",
                summary: "Returns the shard channels with subscribers.",
                action: Action::Apply(|call| channels(call, Kind::Shard)),
                ..SUB
            },
            Spec {
                name: "shardnumsub",
                syntax: "[channel ...]",
                summary: "Returns the number of subscribers of shard channels.",
                action: Action::Apply(|call| subscribers(call, Kind::Shard)),
                ..SUB
            },
            Spec {
                name: "help",
                arity: 2,
                flags: &["loading", "stale"],
                summary: "Lists the subcommands.",
                ..SUB
            },
        ]),
    },
];

fn subscribe(call: &mut Call<'_>, kind: Kind, word: &str) -> Outcome {
    let args = call.args;
    for name in args.from(1) {
        call.session.subscribe(call.shared, kind, name)?;
        confirm(call, kind, word, Some(name));
    }
    Ok(())
}

fn unsubscribe(call: &mut Call<'_>, kind: Kind, word: &str) -> Outcome {
    let args = call.args;
    for name in args.from(1) {
        call.session.unsubscribe(call.shared, kind, name);
        confirm(call, kind, word, Some(name));
    }
    if call.args.len() == 1 {
        let own = call.session.subscriptions.as_ref();
        let names = own.map(|own| own.names(kind)).unwrap_or_default();
        for name in &names {
            call.session.unsubscribe(call.shared, kind, name);
            confirm(call, kind, word, Some(name));
        }
        if names.is_empty() {
            confirm(call, kind, word, None);
        }
    }
    Ok(())
}

/// The reply for one name: what was done to it, and what is left.
fn confirm(call: &mut Call<'_>, kind: Kind, word: &str, name: Option<&[u8]>) {
    let own = call.session.subscriptions.as_ref();
    let left = |kind| own.map_or(0, |own| own.len(kind));
    let left = match kind {
        Kind::Shard => left(Kind::Shard),
        _ => left(Kind::Channel) + left(Kind::Pattern),
    };
    let mut reply = call.reply();
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(i64::try_from(left).unwrap_or(i64::MAX));
}

/// The channel of a message. Its length bounds what matching it costs.
fn channel<'a>(call: &Call<'a>) -> Result<&'a [u8], Fault> {
    let channel = call.args.word(1);
    if channel.len() > CHANNEL_BYTES_MAX {
        let text = format!("ERR a channel must be at most {CHANNEL_BYTES_MAX} bytes");
        return Err(Fault::Line(text.into()));
    }
    Ok(channel)
}

fn publish(call: &mut Call<'_>) -> Outcome {
    let (channel, message) = (channel(call)?, call.args.word(2));
    let receivers = call.shared.channels().publish(channel, message);
    count(call, receivers);
    Ok(())
}

fn publish_to_shard(call: &mut Call<'_>) -> Outcome {
    let (channel, message) = (channel(call)?, call.args.word(2));
    let receivers = call.shared.channels().publish_to_shard(channel, message);
    count(call, receivers);
    Ok(())
}

fn channels(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let args = call.args;
    if args.len() > 3 {
        let sub = String::from_utf8_lossy(args.word(1));
        return Err(Fault::Line(
            format!(
                "ERR unknown subcommand or wrong number of arguments for '{sub}'. Try PUBSUB HELP."
            )
            .into(),
        ));
    }
    let glob = args.get(2).map(Glob::new).transpose()?;
    let is_wanted = |name: &[u8]| glob.as_ref().is_none_or(|glob| glob.matches(name));
    let names = call.shared.channels().names(kind, is_wanted);
    let mut reply = call.reply();
    reply.array(names.len());
    for name in names {
        reply.bulk(name);
    }
    Ok(())
}

fn subscribers(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let args = call.args;
    call.reply().array((args.len() - 2) * 2);
    for name in args.from(2) {
        call.reply().bulk(name);
        let subscribers = call.shared.channels().subscribers(kind, name);
        count(call, subscribers);
    }
    Ok(())
}

fn patterns(call: &mut Call<'_>) -> Outcome {
    let patterns = call.shared.channels().len(Kind::Pattern);
    count(call, patterns);
    Ok(())
}

fn count(call: &mut Call<'_>, number: usize) {
    call.reply()
        .integer(i64::try_from(number).unwrap_or(i64::MAX));
}

fn help(call: &mut Call<'_>) -> Outcome {
    super::docs::reply_help(call, "pubsub");
    Ok(())
}
