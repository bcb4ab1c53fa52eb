//! Whether a session's user may run a command; refusals go to ACL LOG.

use super::{Args, Call, Fault, Spec, registry};
use crate::acl::{self, Refusal, User, log::Event};

/// Checks the command of `call`, whose full name is `name`.
///
/// # Errors
/// The error reply.
pub(crate) fn require(call: &Call<'_>, spec: &Spec, name: &str) -> Result<(), String> {
    let user = call.session.permit.user();
    acl::check(user, spec, name, call.args, 0).map_err(|refusal| {
        note(call, &refusal);
        refusal.text(&user.name)
    })
}

/// Checks once more, at EXEC, a command that was allowed when it was queued.
///
/// # Errors
/// The error that stands in its place in the reply of EXEC.
pub(crate) fn require_at_exec(call: &Call<'_>, spec: &Spec, name: &str) -> Result<(), String> {
    let user = call.session.permit.user();
    acl::check(user, spec, name, call.args, 0).map_err(|refusal| {
        note(call, &refusal);
        refusal.exec_text()
    })
}

/// Notes a refusal in ACL LOG.
#[cold]
fn note(call: &Call<'_>, refusal: &Refusal) {
    let session = &*call.session;
    let event = Event {
        what: Some(refusal.what),
        in_multi: session.in_exec() || session.transaction.is_some(),
        object: refusal.object.clone(),
        user: call.session.permit.user().name.to_vec(),
    };
    let mut client = String::new();
    call.session.info.describe(&mut client);
    call.shared.runtime.users.log.note(event, client);
}

/// Whether `user` may run the command that begins at word `name_at`.
///
/// # Errors
/// The command is none, or has too few or too many words.
pub(crate) fn dry_run(
    user: &User,
    args: Args<'_>,
    name_at: usize,
) -> Result<Option<Refusal>, Fault> {
    let not_found = || {
        let name = String::from_utf8_lossy(args.word(name_at));
        Fault::Line(format!("ERR Command '{name}' not found").into())
    };
    let spec = registry::find(args.word(name_at)).ok_or_else(not_found)?;
    let (spec, name) = match (args.get(name_at + 1), spec.subcommands()) {
        (None, _) | (_, []) => (spec, spec.name.to_owned()),
        (Some(sub), subcommands) => {
            let sub = registry::find_in(subcommands, sub).ok_or_else(not_found)?;
            (sub, format!("{}|{}", spec.name, sub.name))
        }
    };
    if !spec.takes(args.len() - name_at) {
        return Err(Fault::Line(Fault::Arity.text(&name)));
    }
    Ok(acl::check(user, spec, &name, args, name_at).err())
}
