//! `MONITOR` shows the connection every command that the server runs, a line
//! each: seconds since the epoch, database, client and words. RESET ends it.
//!
//! What administers the server is left out, and words that are passwords are
//! replaced. While somebody monitors, samples take the general path.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use super::words::is_secret;
use crate::messaging::Kind;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const SPEC: Spec = Spec::of_group("server", &["admin", "noscript", "loading", "stale"])
    .named("monitor", apply)
    .about("Streams every command that the server runs.");

fn apply(call: &mut Call<'_>) -> Outcome {
    if call.session.in_exec() {
        return Fault::refuse("ERR MONITOR isn't allowed for DENY BLOCKING client");
    }
    if !call.session.is_monitor() {
        call.session.subscribe(call.shared, Kind::Monitor, b"")?;
        call.reply().ok();
    }
    Ok(())
}

/// Shows a command that is about to be run to those who monitor.
#[inline]
pub(super) fn tell(call: &Call<'_>, spec: &Spec) {
    // EXEC comes behind the commands that it runs.
    if call.shared.channels().has_monitors() && spec.name != "exec" {
        tell_of(call, spec);
    }
}

/// Shows that EXEC has run.
pub(super) fn tell_of_exec(call: &Call<'_>) {
    if call.shared.channels().has_monitors()
        && let Some(spec) = call.commands.find(b"exec")
    {
        tell_of(call, spec);
    }
}

fn tell_of(call: &Call<'_>, spec: &Spec) {
    if !spec.flags.contains(&"admin") {
        call.shared.channels().tell_monitors(&line(call, spec));
    }
}

#[cold]
fn line(call: &Call<'_>, spec: &Spec) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_us = now.unwrap_or_default().as_micros();
    let (seconds, rest_us) = (now_us / 1_000_000, now_us % 1_000_000);
    let peer = &call.session.info.peer;
    let mut line = format!("{seconds}.{rest_us:06} [0 {peer}]");
    for (i, word) in call.args.from(0).enumerate() {
        if is_secret(spec.name, call.args, i) {
            line.push_str(" \"(redacted)\"");
            continue;
        }
        line.push_str(" \"");
        quote(&mut line, word);
        line.push('"');
    }
    line
}

/// Appends a word so that it stays on its line and can be read back.
fn quote(line: &mut String, word: &[u8]) {
    for &byte in word {
        match byte {
            b'"' | b'\\' => line.extend(['\\', char::from(byte)]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            b' '..=b'~' => line.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_like_redis_does() {
        let mut line = String::new();
        quote(&mut line, b"a \"b\\c\n\x01\xc3\xa9\x07");
        assert_eq!(line, "a \\\"b\\\\c\\n\\x01\\xc3\\xa9\\a");
    }
}
