//! Whether a session's user may run a command; refusals go to ACL LOG.

use super::args::Args;
use super::call::Call;
use super::fault::Fault;
use super::spec::{Spec, find_in};
use crate::acl::catalogue::Catalogue;
use crate::acl::{Denied, Refusal, Request, User, log::Event};

/// Checks the command of `call`, whose full name is `name`; at EXEC once more.
///
/// # Errors
/// The error reply, or what stands in its place in the reply of EXEC.
pub(crate) fn require(call: &Call<'_>, spec: &Spec, name: &str) -> Result<(), String> {
    let user = call.session.user();
    let catalogue = call.shared.runtime.users.catalogue();
    let checked = check(catalogue, user, spec, name, call.args, 0);
    checked.map_err(|refusal| {
        note(call, &refusal);
        if call.session.in_exec() {
            refusal.exec_text()
        } else {
            refusal.text(&user.name)
        }
    })
}

/// Notes a refusal in ACL LOG.
#[cold]
fn note(call: &Call<'_>, refusal: &Refusal) {
    let session = &*call.session;
    let event = Event {
        what: Some(refusal.what),
        in_multi: session.in_exec() || session.in_multi(),
        object: refusal.object.clone(),
        user: call.session.user().name.to_vec(),
    };
    let mut client = String::new();
    call.session.info.describe(&mut client);
    call.shared.runtime.users.log.note(event, client);
}

/// Whether `user` may run the command that begins at word `name_at`.
///
/// # Errors
/// The command is unknown, or has too few or too many words.
pub(crate) fn dry_run(
    call: &Call<'_>,
    user: &User,
    name_at: usize,
) -> Result<Option<Refusal>, Fault> {
    let args = call.args;
    let not_found = || {
        let name = String::from_utf8_lossy(args.word(name_at));
        Fault::Line(format!("ERR Command '{name}' not found").into())
    };
    let spec = call
        .commands
        .find(args.word(name_at))
        .ok_or_else(not_found)?;
    let (spec, name) = match (args.get(name_at + 1), spec.subcommands()) {
        (None, _) | (_, []) => (spec, spec.name.to_owned()),
        (Some(sub), subcommands) => {
            let sub = find_in(subcommands, sub).ok_or_else(not_found)?;
            (sub, format!("{}|{}", spec.name, sub.name))
        }
    };
    if !spec.takes(args.len() - name_at) {
        return Err(Fault::Line(Fault::Arity.text(&name)));
    }
    let catalogue = call.shared.runtime.users.catalogue();
    Ok(check(catalogue, user, spec, &name, args, name_at).err())
}

/// Whether `user` may run the command at word `name_at` of `args`, whose full
/// name is `full_name`.
///
/// Cost: nothing for a user that may do everything; else one lookup of the
/// name and, per key, the glob patterns.
///
/// # Errors
/// What is not allowed.
fn check(
    catalogue: &Catalogue,
    user: &User,
    spec: &Spec,
    full_name: &str,
    args: Args<'_>,
    name_at: usize,
) -> Result<(), Refusal> {
    if user.is_unrestricted || spec.flags.contains(&"no_auth") {
        return Ok(());
    }
    let Some(number) = catalogue.number(full_name) else {
        let what = Denied::Command;
        let object = full_name.as_bytes().to_vec();
        return Err(Refusal { what, object });
    };
    let places = spec.keys.places(args, name_at, spec.flags);
    // A wrong number of keys is the command's own error to tell.
    let places = places.unwrap_or_default().into_iter();
    let keys = places
        .map(|(at, access)| (args.word(at), access.reads(), access.writes()))
        .collect();
    let (channels, channels_are_patterns) = match full_name {
        "publish" | "spublish" => (args.from(name_at + 1).take(1).collect(), false),
        "subscribe" | "ssubscribe" => (args.from(name_at + 1).collect(), false),
        "psubscribe" => (args.from(name_at + 1).collect(), true),
        _ => (Vec::new(), false),
    };
    user.check(&Request {
        number,
        keys,
        channels,
        channels_are_patterns,
    })
}
