//! Users as lines of text: `user NAME RULE...`, in the ACL file and in the
//! configuration.
//!
//! The file is read as a whole or not at all. It is written beside itself,
//! synced and renamed, so that a crash leaves the old one or the new one.

use super::catalogue::Catalogue;
use super::user::{BadRule, User, join_selectors, split};
use super::users::check_all;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Longest ACL file that is read.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads users, one a line; empty lines are skipped. `source` is named in
/// errors.
///
/// # Errors
/// A sentence for each wrong line, in Redis' words.
pub(crate) fn parse(
    text: &[u8],
    source: &str,
    catalogue: &'static Catalogue,
) -> Result<Vec<User>, String> {
    let mut users: Vec<User> = Vec::new();
    let mut names = HashSet::new();
    let mut errors = String::new();
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let number = at + 1;
        let mut words = split(line);
        let Some(first) = words.next() else {
            continue;
        };
        let name = words.next().filter(|_| first.eq_ignore_ascii_case(b"user"));
        let Some(name) = name else {
            errors.push_str(&format!(
                "{source}:{number} should start with user keyword followed by the username. "
            ));
            continue;
        };
        if !names.insert(name) {
            let name = String::from_utf8_lossy(name);
            errors.push_str(&format!(
                "WARNING: Duplicate user '{name}' found on line {number}. "
            ));
            continue;
        }
        // An identity is given when the users are taken in.
        let user =
            join_selectors(words).and_then(|rules| User::new(name, 0, catalogue).with(&rules));
        match user {
            Ok(user) => users.push(user),
            Err(BadRule::Unmatched(_)) => errors.push_str(&format!(
                "{source}:{number}: Unmatched parenthesis in selector definition. "
            )),
            Err(BadRule::Word(word, reason)) => {
                let word = String::from_utf8_lossy(&word);
                errors.push_str(&format!(
                    "{source}:{number}: Error in applying operation '{word}': {reason}. "
                ));
            }
            Err(BadRule::Over(text)) => errors.push_str(&format!("{source}:{number}: {text}. ")),
        }
    }
    if let Err(text) = check_all(users.iter()) {
        errors.push_str(&format!("{source}: {text}. "));
    }
    if errors.is_empty() {
        return Ok(users);
    }
    Err(format!(
        "{errors}WARNING: ACL errors detected, no change to the previously active ACL rules was \
         performed"
    ))
}

/// Reads the users of the file at `path`.
///
/// # Errors
/// A sentence that says what is wrong with the file.
pub(crate) fn load(path: &Path, catalogue: &'static Catalogue) -> Result<Vec<User>, String> {
    let shown = path.display();
    let unreadable =
        |error: io::Error| format!("Error loading ACLs, opening file '{shown}': {error}");
    let bytes = fs::metadata(path).map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(format!(
            "Error loading ACLs, file '{shown}' has more than {FILE_BYTES_MAX} bytes"
        ));
    }
    let text = fs::read(path).map_err(unreadable)?;
    parse(&text, &shown.to_string(), catalogue)
}

/// Puts `users` in the place of the file at `path`.
///
/// # Errors
/// What the system says; the file is as it was then.
pub(crate) fn save<'a>(path: &Path, users: impl Iterator<Item = &'a User>) -> io::Result<()> {
    let mut text = Vec::new();
    for user in users {
        text.extend_from_slice(&user.describe());
        text.push(b'\n');
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp-{}", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write(&temporary, &text).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // What is left of it is of no use; the error says why.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a file that only its owner may read: it holds hashes of passwords.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)?;
    file.sync_all()
}
