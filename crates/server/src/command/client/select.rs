//! Which clients: the filters of `CLIENT LIST` and `CLIENT KILL`.
//!
//! `CLIENT LIST [TYPE normal|master|replica|pubsub | ID id...]` describes them,
//! `CLIENT KILL addr:port` and `CLIENT KILL {ID|ADDR|LADDR|USER|TYPE|MAXAGE|
//! SKIPME value}...` closes those that pass every filter.

use crate::clients::{ClientInfo, Flag};
use crate::command::args::Args;
use crate::command::call::{Call, Outcome};
use crate::command::fault::{Fault, SYNTAX};
use crate::messaging::Message;
use latewood_wire::resp::number::parse_i64;

/// A condition on a client.
enum Filter {
    Id(u64),
    Peer(Vec<u8>),
    Local(Vec<u8>),
    User(Vec<u8>),
    Type(Type),
    MinAge(u64),
}

/// The types of clients; there are no masters and no replicas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Normal,
    Subscriber,
    Absent,
}

impl Type {
    fn parse(name: &[u8]) -> Result<Self, Fault> {
        match name.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(Self::Normal),
            b"pubsub" => Ok(Self::Subscriber),
            b"master" | b"replica" | b"slave" => Ok(Self::Absent),
            _ => {
                let name = String::from_utf8_lossy(name);
                Fault::refuse(format!("ERR Unknown client type '{name}'"))
            }
        }
    }

    fn of(client: &ClientInfo) -> Self {
        if client.figures.has(Flag::Subscriber) {
            Self::Subscriber
        } else {
            Self::Normal
        }
    }
}

impl Filter {
    fn takes(&self, client: &ClientInfo) -> bool {
        match self {
            Self::Id(id) => client.id == *id,
            Self::Peer(peer) => client.peer.as_bytes() == peer,
            Self::Local(local) => client.local.as_bytes() == local,
            Self::User(user) => client.user().as_bytes() == user,
            Self::Type(wanted) => Type::of(client) == *wanted,
            Self::MinAge(age_s) => client.age_s() >= *age_s,
        }
    }
}

pub(super) fn list(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut ids = None;
    let mut wanted = None;
    if args.is(2, "TYPE") && args.len() == 4 {
        wanted = Some(Type::parse(args.word(3))?);
    } else if args.is(2, "ID") && args.len() > 3 {
        let parsed = args.from(3).map(parse_i64).collect::<Option<Vec<_>>>();
        ids = Some(parsed.ok_or(Fault::line("ERR Invalid client ID"))?);
    } else if args.len() > 2 {
        return Err(SYNTAX);
    }
    let mut text = String::new();
    for client in call.shared.clients.all() {
        let is_named = |ids: &Vec<i64>| ids.iter().any(|id| u64::try_from(*id) == Ok(client.id));
        let is_of_type = wanted.is_none_or(|wanted| Type::of(&client) == wanted);
        if ids.as_ref().is_none_or(is_named) && is_of_type {
            client.describe(&mut text);
        }
    }
    call.reply().verbatim(*b"txt", text);
    Ok(())
}

pub(super) fn kill(call: &mut Call<'_>) -> Outcome {
    if call.args.len() == 3 {
        let filter = Filter::Peer(call.args.word(2).to_vec());
        if close(call, &[filter], false) == 0 {
            return Fault::refuse("ERR No such client");
        }
        return call.ok();
    }
    let (filters, skip_me) = filters(call)?;
    let closed = close(call, &filters, skip_me);
    call.count(closed)
}

fn filters(call: &Call<'_>) -> Result<(Vec<Filter>, bool), Fault> {
    let args = call.args;
    if !args.len().is_multiple_of(2) {
        return Err(SYNTAX);
    }
    let (mut filters, mut skip_me) = (Vec::new(), true);
    for at in (2..args.len()).step_by(2) {
        let value = args.word(at + 1);
        if args.is(at, "SKIPME") {
            skip_me = yes_or_no(args, at + 1)?;
            continue;
        }
        filters.push(if args.is(at, "ID") {
            let id = parse_i64(value).filter(|id| *id > 0);
            let id = id.ok_or(Fault::line("ERR client-id should be greater than 0"))?;
            Filter::Id(id.unsigned_abs())
        } else if args.is(at, "MAXAGE") {
            let age_s = parse_i64(value)
                .ok_or(Fault::line("ERR maxage is not an integer or out of range"))?;
            if age_s <= 0 {
                return Fault::refuse("ERR maxage should be greater than 0");
            }
            Filter::MinAge(age_s.unsigned_abs())
        } else if args.is(at, "TYPE") {
            Filter::Type(Type::parse(value)?)
        } else if args.is(at, "ADDR") {
            Filter::Peer(value.to_vec())
        } else if args.is(at, "LADDR") {
            Filter::Local(value.to_vec())
        } else if args.is(at, "USER") {
            if call.shared.runtime.users.get(value).is_none() {
                let user = String::from_utf8_lossy(value);
                return Fault::refuse(format!("ERR No such user '{user}'"));
            }
            Filter::User(value.to_vec())
        } else {
            return Err(SYNTAX);
        });
    }
    Ok((filters, skip_me))
}

fn yes_or_no(args: Args<'_>, at: usize) -> Result<bool, Fault> {
    match (args.is(at, "yes"), args.is(at, "no")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(SYNTAX),
    }
}

/// Closes the clients that pass all filters; how many. The caller itself is
/// closed behind its reply.
fn close(call: &mut Call<'_>, filters: &[Filter], skip_me: bool) -> usize {
    let me = call.session.info.id;
    let mut closed = 0;
    for client in call.shared.clients.all() {
        let is_wanted = filters.iter().all(|filter| filter.takes(&client));
        if !is_wanted || (skip_me && client.id == me) {
            continue;
        }
        closed += 1;
        if client.id == me {
            call.session.close();
        } else {
            let mailboxes = call.shared.channels().mailboxes();
            mailboxes.send(client.event_loop, Message::Close(client.id));
        }
    }
    closed
}
