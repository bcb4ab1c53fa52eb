//! Channels: `SUBSCRIBE channel...`, `PSUBSCRIBE pattern...`,
//! `SSUBSCRIBE channel...`, their opposites `UNSUBSCRIBE`, `PUNSUBSCRIBE` and
//! `SUNSUBSCRIBE` (without a word: all), `PUBLISH channel message`,
//! `SPUBLISH channel message`, `PUBSUB subcommand`.
//!
//! Each name has a reply of its own, which in RESP3 is a push. A message is
//! sent to the clients of this server; the reply says to how many.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use crate::base::glob::Glob;
use crate::messaging::Kind;
use latewood_model::limits::CHANNEL_BYTES_MAX;

const SUBSCRIBE: Spec = Spec::of_group("pubsub", &["pubsub", "noscript", "loading", "stale"])
    .named("subscribe", |call| {
        subscribe(call, Kind::Channel, "subscribe")
    })
    .words(-2, "channel [channel ...]")
    .about("Subscribes to channels.");

const UNSUBSCRIBE: Spec = SUBSCRIBE
    .named("unsubscribe", |call| {
        unsubscribe(call, Kind::Channel, "unsubscribe")
    })
    .words(-1, "[channel ...]")
    .about("Unsubscribes from channels, or from all.");

const PUBLISH: Spec = SUBSCRIBE
    .flags(&["pubsub", "loading", "stale", "fast"])
    .named("publish", publish)
    .words(3, "channel message")
    .about("Publishes a message; returns the number of receivers.");

const SUB: Spec = Spec::of_group("pubsub", &["pubsub", "loading", "stale"]).arity(-2);

pub(crate) const SPECS: &[Spec] = &[
    SUBSCRIBE,
    SUBSCRIBE
        .named("psubscribe", |call| {
            subscribe(call, Kind::Pattern, "psubscribe")
        })
        .syntax("pattern [pattern ...]")
        .about("Subscribes to channels that match glob patterns."),
    SUBSCRIBE
        .named("ssubscribe", |call| {
            subscribe(call, Kind::Shard, "ssubscribe")
        })
        .about("Subscribes to shard channels."),
    UNSUBSCRIBE,
    UNSUBSCRIBE
        .named("punsubscribe", |call| {
            unsubscribe(call, Kind::Pattern, "punsubscribe")
        })
        .syntax("[pattern ...]")
        .about("Unsubscribes from patterns, or from all."),
    UNSUBSCRIBE
        .named("sunsubscribe", |call| {
            unsubscribe(call, Kind::Shard, "sunsubscribe")
        })
        .about("Unsubscribes from shard channels, or from all."),
    PUBLISH,
    PUBLISH
        .named("spublish", publish_to_shard)
        .about("Publishes a message to a shard channel; returns the number of receivers."),
    Spec::of_group("pubsub", &[]).container(
        "pubsub",
        "Reports subscriptions.",
        &[
            SUB.named("channels", |call| channels(call, Kind::Channel))
                .syntax("[pattern]")
                .about("Returns the channels with subscribers."),
            SUB.named("numsub", |call| subscribers(call, Kind::Channel))
                .syntax("[channel ...]")
                .about("Returns the number of subscribers of channels, patterns not counted."),
            SUB.named("numpat", patterns)
                .arity(2)
                .about("Returns the number of patterns with subscribers."),
            SUB.named("shardchannels", |call| channels(call, Kind::Shard))
                .syntax("[pattern]")
                .about("Returns the shard channels with subscribers."),
            SUB.named("shardnumsub", |call| subscribers(call, Kind::Shard))
                .syntax("[channel ...]")
                .about("Returns the number of subscribers of shard channels."),
            SUB.flags(&["loading", "stale"]).help(),
        ],
    ),
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
        let own = call.session.subscriptions();
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
    let own = call.session.subscriptions();
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
    reply.count(left);
}

/// The channel of a message. Its length bounds what matching it costs.
fn channel<'a>(call: &Call<'a>) -> Result<&'a [u8], Fault> {
    let channel = call.args.word(1);
    if channel.len() > CHANNEL_BYTES_MAX {
        let text = format!("ERR a channel must be at most {CHANNEL_BYTES_MAX} bytes");
        return Fault::refuse(text);
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
        return Fault::refuse(format!(
            "ERR unknown subcommand or wrong number of arguments for '{sub}'. Try PUBSUB HELP."
        ));
    }
    let glob = args.get(2).map(Glob::new).transpose()?;
    let is_wanted = |name: &[u8]| glob.as_ref().is_none_or(|glob| glob.matches(name));
    let names = call.shared.channels().names(kind, is_wanted);
    let mut reply = call.reply();
    reply.bulks(names.into_iter());
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
    call.reply().count(number);
}
