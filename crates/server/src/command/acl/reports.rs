//! The subcommands of ACL that report: GETUSER, LIST, USERS, CAT, LOG.

use super::wrong_words;
use crate::acl::category;
use crate::base::clock::now_ms;
use crate::command::call::{Call, Outcome};
use crate::command::fault::{Fault, NOT_AN_INTEGER};
use latewood_wire::resp::{Protocol, number::parse_i64};

pub(crate) fn get_user(call: &mut Call<'_>) -> Outcome {
    let Some(user) = call.shared.runtime.users.get(call.args.word(2)) else {
        call.reply().null();
        return Ok(());
    };
    let mut reply = call.reply();
    reply.map(6);
    reply.bulk("flags");
    let flags = user.flags();
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag);
    }
    reply.bulk("passwords");
    let passwords: Vec<String> = user.password_hashes().collect();
    reply.bulks(passwords.into_iter());
    let root = std::iter::once(user.root());
    for (at, selector) in root.chain(user.selectors()).enumerate() {
        if at == 1 {
            reply.key("selectors").array(user.selectors().len());
        }
        if at > 0 {
            reply.map(3);
        }
        reply.key("commands").bulk(selector.describe_commands());
        reply.key("keys").bulk(selector.describe_keys());
        reply.key("channels").bulk(selector.describe_channels());
    }
    if user.selectors().is_empty() {
        reply.key("selectors").array(0);
    }
    Ok(())
}

pub(crate) fn list(call: &mut Call<'_>) -> Outcome {
    let users = call.shared.runtime.users.all();
    let mut reply = call.reply();
    reply.array(users.len());
    for user in users {
        reply.bulk(user.describe());
    }
    Ok(())
}

pub(crate) fn users(call: &mut Call<'_>) -> Outcome {
    let users = call.shared.runtime.users.all();
    let mut reply = call.reply();
    reply.array(users.len());
    for user in users {
        reply.bulk(&user.name);
    }
    Ok(())
}

pub(crate) fn cat(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let names: Vec<&str> = match args.get(2) {
        _ if args.len() > 3 => return Err(wrong_words("CAT")),
        None => category::NAMES.to_vec(),
        Some(name) => {
            let wanted = category::find(name).ok_or_else(|| {
                let name = String::from_utf8_lossy(name);
                Fault::Line(format!("ERR Unknown category '{name}'").into())
            })?;
            let entries = call.shared.runtime.users.catalogue().entries().iter();
            entries
                .filter(|entry| entry.categories & wanted != 0)
                .map(|entry| entry.name.as_str())
                .collect()
        }
    };
    let mut reply = call.reply();
    reply.bulks(names.into_iter());
    Ok(())
}

/// Entries that ACL LOG shows unless asked otherwise.
const SHOWN: usize = 10;

pub(crate) fn log(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let users = &call.shared.runtime.users;
    let count = match args.get(2) {
        _ if args.len() > 3 => return Err(wrong_words("LOG")),
        None => SHOWN,
        Some(_) if args.is(2, "RESET") => {
            users.log.clear();
            return call.ok();
        }
        Some(word) => {
            let count = parse_i64(word).ok_or(NOT_AN_INTEGER)?;
            usize::try_from(count).unwrap_or(0)
        }
    };
    let entries = users.log.newest(count);
    let now = now_ms();
    let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let mut reply = call.reply();
    reply.array(entries.len());
    for entry in entries {
        reply.map(10);
        reply.key("count").integer(int(entry.count));
        reply
            .key("reason")
            .bulk(entry.event.what.map_or("auth", |what| what.name()));
        let context = if entry.event.in_multi {
            "multi"
        } else {
            "toplevel"
        };
        reply.key("context").bulk(context);
        reply.key("object").bulk(&entry.event.object);
        reply.key("username").bulk(&entry.event.user);
        reply.bulk("age-seconds");
        let age_ms = now.saturating_sub(entry.created_ms).max(0);
        let age_s = age_ms as f64 / 1000.0;
        match reply.protocol() {
            Protocol::Resp2 => reply.bulk(age_s.to_string()),
            Protocol::Resp3 => reply.double(age_s),
        }
        reply.key("client-info").bulk(entry.client.trim_end());
        reply.key("entry-id").integer(int(entry.id));
        reply.key("timestamp-created").integer(entry.created_ms);
        reply
            .key("timestamp-last-updated")
            .integer(entry.updated_ms);
    }
    Ok(())
}
