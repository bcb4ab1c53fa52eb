//! `cargo run -p xtask`: the house rules that the compiler does not check.
//!
//! Reads every Rust file that git tracks or would add, prints each breach as
//! `file:line: rule` and exits with 1 if there is any. [`rules::check_file`] holds
//! the rules of single files, [`floors`] those of imports;
//! `-- floors CRATE [ENTRY...]` lists the imports of one crate.
//! `-- instructions` counts instructions, see [`instructions`].

mod floors;
mod instructions;
mod rules;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

use instructions::Anything;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => check_files(),
        ["floors", name, order @ ..] => {
            read_files().map(|files| println!("{}", floors::show(&files, name, order)))
        }
        ["instructions"] => instructions::run(false),
        ["instructions", "--record"] => instructions::run(true),
        _ => Err("usage: xtask [floors CRATE [ENTRY...] | instructions [--record]]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The Rust files that git tracks or would add, one per line.
///
/// # Errors
/// The error of git, or of starting it.
fn list_files() -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let output = git.arg("*.rs").output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(format!(
        "git does not list the files of this folder: {said}"
    ))
}

/// The Rust files by path; one deleted but not yet committed is listed, but left out.
fn read_files() -> Anything<BTreeMap<String, String>> {
    let list = list_files()?;
    let read = |file: &str| Some((file.to_owned(), std::fs::read_to_string(file).ok()?));
    Ok(list.lines().filter_map(read).collect())
}

/// The manifests of the crates in the table of floors.
fn read_manifests() -> Anything<BTreeMap<String, String>> {
    let mut manifests = BTreeMap::new();
    for folder in std::fs::read_dir("crates")? {
        let folder = folder?;
        let manifest = std::fs::read_to_string(folder.path().join("Cargo.toml"))?;
        manifests.insert(folder.file_name().to_string_lossy().into_owned(), manifest);
    }
    Ok(manifests)
}

fn check_files() -> Anything {
    let files = read_files()?;
    let manifests = read_manifests()?;
    let mut breaches = floors::check(&files, &manifests);
    breaches.extend(rules::left_out(&files, &manifests));
    for (file, text) in &files {
        let found = rules::check_file(file, text).into_iter();
        breaches.extend(found.map(|breach| format!("{file}:{}: {}", breach.line, breach.rule)));
    }
    for breach in &breaches {
        println!("{breach}");
    }
    println!("{} files checked, {} breaches", files.len(), breaches.len());
    if breaches.is_empty() && !files.is_empty() {
        Ok(())
    } else {
        Err("the house rules are broken".into())
    }
}
