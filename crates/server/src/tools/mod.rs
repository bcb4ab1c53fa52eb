//! `latewood check|inspect|stats|merge|backup|restore|cluster|test|rules`: what is done to data and rules
//! beside serving them.
//!
//! The work is the engine's (`latewood_engine::tools`); here are the words
//! around it and the exit status; that of `cluster` is `latewood_cluster`'s. Results go to standard output, errors to
//! standard error. Tested by `tests/tools` on the
//! built binary.

mod ask;
mod backup;
mod cluster;
mod cluster_init;
mod cluster_restore;
mod cluster_stats;
mod corrections;
mod merge;
mod offsite;
mod output;
mod rules;
mod survey;

pub(crate) use backup::{Backup, Restore, backup, restore};
pub(crate) use cluster::{Cluster, cluster};
pub(crate) use corrections::{Rules, rules as ask_rules};
pub(crate) use merge::{Merge, merge};
pub(crate) use rules::{Test, test};

use clap::Args;
use latewood_engine::io::Env;
use latewood_engine::{Detail, ErrorKind, Result, tools};
use output::{failed, json, say, tell};
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit status where damage was found.
const DAMAGED: u8 = 1;
/// Exit status where a server refuses to start over the damage.
const REFUSED: u8 = 3;

/// Options of `latewood check`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Check {
    #[command(subcommand)]
    other: Option<rules::CheckOther>,
    /// Directory of the data; no server may be running on it. One that is called rules
    /// is named ./rules
    #[arg(required = true)]
    dir: Option<PathBuf>,
}

/// Options of `latewood inspect`.
#[derive(Args, Debug)]
pub(crate) struct Inspect {
    /// A log segment, block, series file or manifest, quarantined ones too
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `latewood stats`.
#[derive(Args, Debug)]
pub(crate) struct Stats {
    /// Directory of the data; no server may be running on it
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `latewood check`: a line for each finding, then what was read. 0 where
/// no damage, 1 where something is damaged and the rest can be served, 3 where
/// a server refuses to start over it, 2 where it could not be checked.
pub(crate) fn check(options: &Check) -> ExitCode {
    if let Some(rules::CheckOther::Rules(options)) = &options.other {
        return rules::check(options);
    }
    let Some(dir) = &options.dir else {
        return failed(&"there is no directory to check");
    };
    match tools::check(&Env::real(), dir, &mut tell) {
        Ok(checked) => {
            say(&format!(
                "checked {} blocks with {} samples, {} series in files, {} log groups with {} samples: {}",
                checked.blocks,
                checked.block_samples,
                checked.series,
                checked.groups,
                checked.log_samples,
                verdict(&checked)
            ));
            match (checked.damage, checked.is_refused) {
                (_, true) => ExitCode::from(REFUSED),
                (0, false) => ExitCode::SUCCESS,
                (_, false) => ExitCode::from(DAMAGED),
            }
        }
        // FORMAT itself: there is nothing that a server could begin with.
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            say(&format!("damage: {error}"));
            say("nothing was checked: 1 damaged; the server refuses to start");
            ExitCode::from(REFUSED)
        }
        Err(error) if error.kind() == ErrorKind::Locked => failed(&format!(
            "{error}; what is being served is backed up, and the backup checked"
        )),
        Err(error) => failed(&error),
    }
}

fn verdict(checked: &tools::Checked) -> String {
    match (checked.damage, checked.is_refused) {
        (0, false) => "no damage".to_owned(),
        (damage, false) => {
            format!(
                "{damage} damaged; the server serves the rest, but may refuse to start with --strict"
            )
        }
        (damage, true) => format!("{damage} damaged; the server refuses to start"),
    }
}

/// Runs `latewood inspect`: 0, or 2 where the file cannot be read.
pub(crate) fn inspect(options: &Inspect) -> ExitCode {
    if options.path.is_dir() {
        return failed(&format!(
            "{} is a folder: `latewood stats` counts what a database holds, `inspect` shows one file",
            options.path.display()
        ));
    }
    show(tools::inspect(&Env::real(), &options.path), options.json)
}

/// Runs `latewood stats`: 0, or 2 where the directory cannot be read.
pub(crate) fn stats(options: &Stats) -> ExitCode {
    show(tools::totals(&Env::real(), &options.dir), options.json)
}

fn show(detail: Result<Detail>, as_json: bool) -> ExitCode {
    match detail {
        Ok(detail) => {
            if as_json {
                say(&json(&detail).to_string())
            } else {
                say(detail.to_string().trim_end())
            }
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}
