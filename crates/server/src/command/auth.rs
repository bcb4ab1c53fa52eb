//! Who a client is: `AUTH [user] password` and
//! `HELLO [2|3 [AUTH user password] [SETNAME name]]`.
//!
//! Without a name the user is `default`, whose password `--requirepass` gives.
//! Refused logins stand in ACL LOG.

use super::call::{Call, Outcome};
use super::client::checked_name;
use super::fault::{Fault, SYNTAX};
use super::module::reply_modules;
use super::spec::Spec;
use crate::acl::{DEFAULT, log::Event};
use crate::state::Shared;
use latewood_model::Compatibility;
use latewood_wire::resp::{Protocol, number::parse_i64};

pub(crate) const SPECS: &[Spec] = &[
    Spec::of_group(
        "connection",
        &["noscript", "loading", "stale", "fast", "no_auth"],
    )
    .named("auth", auth)
    .words(-2, "[username] password")
    .about("Authenticates the connection."),
    Spec::of_group(
        "connection",
        &["noscript", "loading", "stale", "fast", "no_auth"],
    )
    .named("hello", hello)
    .words(-1, "[2|3 [AUTH username password] [SETNAME name]]")
    .about("Selects RESP2 or RESP3 and returns information about the server."),
];

const WRONG: Fault = Fault::line("WRONGPASS invalid username-password pair or user is disabled.");
/// The version of Redis whose commands this server's are like; clients choose
/// what they send by it.
pub(crate) fn redis_version(compatibility: Compatibility) -> &'static str {
    match compatibility {
        Compatibility::V1_12 => "7.4.1",
        Compatibility::V8_10 => "8.10.0",
    }
}

/// The version of RedisTimeSeries, as clients read it from the module list.
pub(crate) fn module_version(compatibility: Compatibility) -> i64 {
    match compatibility {
        Compatibility::V1_12 => 11_202,
        Compatibility::V8_10 => 81_000,
    }
}

fn auth(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    match args.len() {
        2 if call.shared.runtime.users.default_user().nopass => {
            return Fault::refuse(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            );
        }
        2 => log_in(call, DEFAULT, args.word(1), "AUTH")?,
        3 => log_in(call, args.word(1), args.word(2), "AUTH")?,
        _ => return Err(SYNTAX),
    }
    call.ok()
}

fn log_in(call: &mut Call<'_>, name: &[u8], password: &[u8], command: &str) -> Outcome {
    let users = &call.shared.runtime.users;
    match users.get(name) {
        Some(user) if user.accepts(password) => {
            call.session.log_in(user, users);
            Ok(())
        }
        _ => {
            let event = Event {
                what: None,
                in_multi: false,
                object: command.as_bytes().to_vec(),
                user: name.to_vec(),
            };
            let mut client = String::new();
            call.session.info.describe(&mut client);
            users.log.note(event, client);
            Err(WRONG)
        }
    }
}

fn hello(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut protocol = call.session.protocol();
    if let Some(version) = args.get(1) {
        protocol = match parse_i64(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Fault::refuse("NOPROTO unsupported protocol version"),
            None => {
                return Fault::refuse("ERR Protocol version is not an integer or out of range");
            }
        };
    }
    let (mut credentials, mut name) = (None, None);
    let mut at = 2;
    while let Some(option) = args.get(at) {
        if args.is(at, "AUTH") && at + 2 < args.len() {
            credentials = Some((args.word(at + 1), args.word(at + 2)));
            at += 3;
        } else if args.is(at, "SETNAME") && at + 1 < args.len() {
            name = Some(checked_name(args.word(at + 1), "Client names")?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(option);
            let line = format!("ERR Syntax error in HELLO option '{option}'");
            return Fault::refuse(line);
        }
    }
    if let Some((user, password)) = credentials {
        log_in(call, user, password, "HELLO")?;
    }
    if !call.session.is_authenticated() {
        return Fault::refuse(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        );
    }
    if let Some(name) = name {
        call.session.info.set_name(name);
    }
    call.session.set_protocol(protocol);
    greet(call);
    Ok(())
}

/// What clients call a server with or without others.
pub(super) fn mode(shared: &Shared) -> &'static str {
    shared.node.get().map_or("standalone", |_| "cluster")
}

fn greet(call: &mut Call<'_>) {
    let id = i64::try_from(call.session.info.id).unwrap_or(i64::MAX);
    let mode = mode(call.shared);
    let role = ["replica", "master"][usize::from(call.shared.is_owner())];
    let compatibility = call.compatibility();
    let mut reply = call.reply();
    let version = if reply.protocol() == Protocol::Resp3 {
        3
    } else {
        2
    };
    reply.map(7);
    reply.key("server").bulk("redis");
    reply.key("version").bulk(redis_version(compatibility));
    reply.key("proto").integer(version);
    reply.key("id").integer(id);
    reply.key("mode").bulk(mode);
    reply.key("role").bulk(role);
    reply.bulk("modules");
    reply_modules(&mut reply, compatibility);
}
