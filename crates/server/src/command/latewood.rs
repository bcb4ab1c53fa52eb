//! `LATEWOOD subcommand`: commands that only Latewood has.
//!
//! BACKUP copies the database into a folder while it is served: it replies at
//! once, INFO latewood shows the outcome.
//! SETTLE settles late samples into the chunks in memory and waits for it; CLOCK
//! ACCEPT trusts the wall clock for retention; QUARANTINE ACCEPT accepts what damaged
//! files have lost; MERGE is in [`super::merge`], DELETE in
//! [`super::delete`]; ADD, CREATE, ALTER and RANGE in [`super::exact`]; HELP lists the subcommands.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::Spec;
use crate::base::outside::require_outside;
use crate::state::Job;
use latewood_engine::tools::staging_dir;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of an unknown word that the error repeats.
const WORD_BYTES_MAX: usize = 128;

const SETTLE: Spec = Spec::of_group("latewood", &["admin"])
    .named("settle", settle)
    .arity(2)
    .about("Settles late samples into the chunks in memory and waits for it.");

const CLOCK: Spec = SETTLE
    .named("clock", clock)
    .words(3, "ACCEPT")
    .about("Trusts the wall clock: retention and expiry follow it at once.");

const QUARANTINE: Spec = SETTLE
    .named("quarantine", quarantine)
    .words(3, "ACCEPT")
    .about("Accepts what was lost with damaged files; returns how many.");

const BACKUP: Spec = SETTLE
    .named("backup", backup)
    .words(3, "path")
    .about("Starts a backup into an empty folder.");

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("latewood", &["admin"])
    .container(
        "latewood",
        "Commands that only Latewood has.",
        &[
            BACKUP,
            SETTLE,
            CLOCK,
            QUARANTINE,
            super::merge::SPEC,
            super::delete::MATCHING,
            super::exact::ADD,
            super::exact::CREATE,
            super::exact::ALTER,
            super::exact::RANGE,
            SETTLE.help(),
        ],
    )
    .syntax("BACKUP|SETTLE|MERGE|DELETE|CLOCK|QUARANTINE|ADD|CREATE|ALTER|RANGE|HELP")];

fn backup(call: &mut Call<'_>) -> Outcome {
    let path = PathBuf::from(OsStr::from_bytes(call.args.word(2)));
    if !path.is_absolute() {
        return Fault::refuse("ERR the path of a backup must be absolute");
    }
    let dir = call.shared.db.directory();
    let place = require_backup_place(dir, &path);
    place.map_err(|why| Fault::Line(format!("ERR {why}").into()))?;
    if !call.shared.jobs.begin_backup() {
        return Fault::refuse("ERR a backup is in progress");
    }
    call.shared.jobs.queue(Job::Backup(path));
    call.reply().simple("Backup started");
    Ok(())
}

fn settle(call: &mut Call<'_>) -> Outcome {
    call.shared.db.settle()?;
    call.ok()
}

fn clock(call: &mut Call<'_>) -> Outcome {
    if !call.args.is(2, "ACCEPT") {
        return Err(unknown_word(call, &CLOCK));
    }
    let before_ms = call.shared.db.floor();
    call.shared.db.accept_clock()?;
    let kept_from_ms = call.shared.db.floor();
    let user = String::from_utf8_lossy(&call.session.user().name).into_owned();
    tracing::warn!(
        user,
        before_ms,
        kept_from_ms,
        "the clock was accepted: samples before kept_from_ms are expired"
    );
    call.ok()
}

fn quarantine(call: &mut Call<'_>) -> Outcome {
    if !call.args.is(2, "ACCEPT") {
        return Err(unknown_word(call, &QUARANTINE));
    }
    let files = call.shared.db.accept_quarantine()?;
    if files > 0 {
        let user = String::from_utf8_lossy(&call.session.user().name).into_owned();
        tracing::warn!(user, files, "what damaged files have lost was accepted");
    }
    call.integer(files as i64)
}

/// Refuses the word after the subcommand `spec`, which takes one of a few.
pub(super) fn unknown_word(call: &Call<'_>, spec: &Spec) -> Fault {
    let word = call.args.word(2);
    let word = String::from_utf8_lossy(&word[..word.len().min(WORD_BYTES_MAX)]);
    let (name, words) = (spec.name.to_ascii_uppercase(), spec.syntax);
    let line = format!(
        "ERR unknown word '{word}' after LATEWOOD {name}: expected {words}. Try LATEWOOD HELP."
    );
    Fault::Line(line.into())
}

/// Refuses a folder inside `dir` for a backup of the data in `dir`, except the one
/// that uploads read from.
///
/// # Errors
/// Says where it lies.
fn require_backup_place(dir: &Path, path: &Path) -> Result<(), String> {
    let dir = std::path::absolute(dir).map_err(|error| error.to_string())?;
    if path == staging_dir(&dir) {
        return Ok(());
    }
    require_outside(&dir, path)
}
