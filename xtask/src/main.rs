//! `cargo run -p xtask`: the house rules that the compiler does not check.
//!
//! Reads every Rust file git knows or would take, prints each breach as
//! `file:line: rule` and exits with 1 if there is any. The rules stand in
//! [`rules::check_file`], one `if` each.

mod rules;

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.rs",
        ])
        .output();
    let files = match listed {
        Ok(output) if output.status.success() => output.stdout,
        _ => {
            eprintln!("xtask: git does not list the files of this folder");
            return ExitCode::FAILURE;
        }
    };
    let mut breaches = 0;
    let mut checked = 0;
    for file in String::from_utf8_lossy(&files).lines() {
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
