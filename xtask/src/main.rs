//! `cargo run -p xtask`: the house rules that the compiler does not check.
//!
//! Reads every Rust file git knows or would take, prints each breach as
//! `file:line: rule` and exits with 1 if there is any. The rules stand in
//! [`rules::check_file`], one `if` each. `-- instructions` counts instructions
//! instead, see [`instructions`].

mod instructions;
mod rules;

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let counted = match words.as_slice() {
        [] => return check_files(),
        ["instructions"] => instructions::run(false),
        ["instructions", "--record"] => instructions::run(true),
        _ => Err("usage: xtask [instructions [--record]]".into()),
    };
    match counted {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The Rust files that git knows or would take, one a line.
///
/// # Errors
/// What git says, or why it does not run.
fn list_files() -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let output = git.arg("*.rs").output();
    let output = output.map_err(|error| format!("git does not run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(format!(
        "git does not list the files of this folder: {said}"
    ))
}

fn check_files() -> ExitCode {
    let files = match list_files() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut breaches = 0;
    let mut checked = 0;
    for file in files.lines() {
        // A file deleted but not yet committed is still listed.
        let Ok(text) = std::fs::read_to_string(Path::new(file)) else {
            continue;
        };
        checked += 1;
        for breach in rules::check_file(file, &text) {
            println!("{file}:{}: {}", breach.line, breach.rule);
            breaches += 1;
        }
    }
    println!("{checked} files checked, {breaches} breaches");
    if breaches == 0 && checked > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
