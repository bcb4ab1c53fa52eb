//! `ACL subcommand`: users and what each may do.
//!
//! SETUSER name [rule...], GETUSER name, DELUSER name..., LIST, USERS, WHOAMI,
//! `CAT [category]`, `LOG [count|RESET]`, `GENPASS [bits]`, DRYRUN name command...,
//! SAVE, LOAD, HELP. The rules are those of Redis 7.4; `docs/compatibility.md`
//! lists what differs.

#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod reports;
#[cfg(test)]
mod tests;

use super::call::{Call, Outcome};
use super::fault::{Fault, NOT_AN_INTEGER};
use super::permission;
use super::spec::Spec;
use crate::acl::{BadRule, DEFAULT, file, join_selectors, password};
use latewood_wire::resp::number::parse_i64;

const SUB: Spec = Spec::of_group("server", &["admin", "noscript", "loading", "stale"]).arity(2);

/// Subcommands that tell nothing of other users.
const HARMLESS: Spec = SUB.flags(&["noscript", "loading", "stale"]);

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("server", &[]).container(
    "acl",
    "Manages users and their permissions.",
    &[
        HARMLESS
            .named("cat", reports::cat)
            .words(-2, "[category]")
            .about("Returns the categories, or the commands of one."),
        SUB.named("deluser", delete_user)
            .words(-3, "username [username ...]")
            .about("Deletes users and closes their connections."),
        SUB.named("dryrun", dry_run)
            .words(-4, "username command [argument ...]")
            .about("Checks whether a user may run a command, without running it."),
        HARMLESS
            .named("genpass", generate_password)
            .words(-2, "[bits]")
            .about("Generates a random password."),
        SUB.named("getuser", reports::get_user)
            .words(3, "username")
            .about("Returns the rules of a user."),
        SUB.named("list", reports::list)
            .about("Returns all users, each as a line of the ACL file."),
        SUB.named("load", load)
            .about("Loads all users from the ACL file; an invalid line changes nothing."),
        SUB.named("log", reports::log)
            .words(-2, "[count|RESET]")
            .about("Shows refused commands and logins, or clears the list."),
        SUB.named("save", save)
            .about("Writes all users to the ACL file."),
        SUB.named("setuser", set_user)
            .words(-3, "username [rule ...]")
            .about("Creates or changes a user; all rules are applied or none."),
        SUB.named("users", reports::users)
            .about("Returns the names of all users."),
        HARMLESS
            .named("whoami", who_am_i)
            .about("Returns the name of the connection's user."),
        SUB.flags(&["loading", "stale"]).help(),
    ],
)];

fn who_am_i(call: &mut Call<'_>) -> Outcome {
    let name = call.session.user().name.clone();
    call.reply().bulk(name);
    Ok(())
}

fn set_user(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let name = args.word(2);
    if name
        .iter()
        .any(|byte| byte.is_ascii_whitespace() || *byte == 0)
    {
        return Fault::refuse("ERR Usernames can't contain spaces or null characters");
    }
    let rules = join_selectors(args.from(3)).map_err(refused)?;
    let users = &call.shared.runtime.users;
    users.set(name, &rules).map_err(refused)?;
    call.ok()
}

fn refused(bad: BadRule) -> Fault {
    let line = match bad {
        BadRule::Word(word, reason) => {
            let word = String::from_utf8_lossy(&word);
            format!("ERR Error in ACL SETUSER modifier '{word}': {reason}")
        }
        BadRule::Unmatched(word) => {
            let word = String::from_utf8_lossy(&word);
            format!("ERR Unmatched parenthesis in acl selector starting at '{word}'.")
        }
        BadRule::Over(text) => format!("ERR {text}"),
    };
    Fault::Line(line.into())
}

fn delete_user(call: &mut Call<'_>) -> Outcome {
    let names = call.args.from(2);
    if names.clone().any(|name| name == DEFAULT) {
        return Fault::refuse("ERR The 'default' user cannot be removed");
    }
    let users = &call.shared.runtime.users;
    let removed = names.filter(|name| users.remove(name)).count();
    call.count(removed)
}

fn dry_run(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let name = args.word(2);
    let user = call.shared.runtime.users.get(name).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        Fault::Line(format!("ERR User '{name}' not found").into())
    })?;
    let refusal = permission::dry_run(call, &user, 3)?;
    match refusal {
        None => call.reply().ok(),
        Some(refusal) => {
            let text = refusal.dry_run_text(&user.name);
            call.reply().bulk(text);
        }
    }
    Ok(())
}

/// Bits of a password unless asked otherwise, and at most.
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4096;

fn generate_password(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let bits = match args.get(2) {
        _ if args.len() > 3 => return Err(wrong_words("GENPASS")),
        None => PASSWORD_BITS,
        Some(word) => parse_i64(word).ok_or(NOT_AN_INTEGER)?,
    };
    let bits = usize::try_from(bits)
        .ok()
        .filter(|_| (1..=PASSWORD_BITS_MAX).contains(&bits))
        .ok_or(Fault::line(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to 4096",
        ))?;
    let password = password::generate(bits)
        .map_err(|error| Fault::Line(format!("ERR cannot read random numbers: {error}").into()))?;
    call.reply().bulk(password);
    Ok(())
}

/// For words that the arity lets through.
fn wrong_words(subcommand: &str) -> Fault {
    let line = format!(
        "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try ACL HELP."
    );
    Fault::Line(line.into())
}

const NO_FILE: Fault = Fault::line(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users \
     with the option --user or its line in the configuration file",
);

fn load(call: &mut Call<'_>) -> Outcome {
    let shared = call.shared;
    let path = shared.settings.aclfile.as_ref().ok_or(NO_FILE)?;
    let users = file::load(path, shared.runtime.users.catalogue())
        .map_err(|text| Fault::Line(format!("ERR {text}").into()))?;
    let password = shared.runtime.password();
    shared.runtime.users.replace(users, &password);
    call.ok()
}

fn save(call: &mut Call<'_>) -> Outcome {
    let shared = call.shared;
    let path = shared.settings.aclfile.as_ref().ok_or(NO_FILE)?;
    let users = shared.runtime.users.all();
    file::save(path, users.iter().map(AsRef::as_ref)).map_err(|error| {
        let path = path.display();
        Fault::Line(
            format!("ERR There was an error trying to save the ACLs to {path}: {error}").into(),
        )
    })?;
    call.ok()
}
