//! The offline tools as an operator meets them: the built binary over
//! directories that a real server wrote, good and damaged ones.

mod backup;
mod look;
mod merge;
mod offsite;
mod rules;

use crate::harness::{Server, command};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// `latewood` with these words.
fn tool(words: &[&str]) -> Output {
    let surroundings = command(Path::new("unused"));
    Command::new(surroundings.get_program())
        .args(words)
        .output()
        .unwrap()
}

/// Standard output of a tool that must end with `status`.
fn said(words: &[&str], status: i32) -> String {
    words_in(tool(words), words, status)
}

/// The same of a tool that has run.
fn words_in(output: Output, words: &[&str], status: i32) -> String {
    let (out, err) = (output.stdout, output.stderr);
    let both = [&out[..], &err[..]].concat();
    let both = String::from_utf8(both).unwrap();
    assert_eq!(output.status.code(), Some(status), "{words:?}: {both}");
    match status {
        2 => String::from_utf8(err).unwrap(),
        _ => String::from_utf8(out).unwrap(),
    }
}

/// A directory of three series with ten samples each, stopped in order.
fn filled() -> TempDir {
    let server = Server::with(&[]);
    let mut client = server.client();
    for key in ["a", "b", "c"] {
        client.expect(&[(&format!("TS.CREATE {key} LABELS room {key}"), "+OK\r\n")]);
        for at in 1..=10 {
            client.expect(&[(&format!("TS.ADD {key} {at} {at}"), &format!(":{at}\r\n"))]);
        }
    }
    let (ended_well, dir) = server.terminate();
    assert!(ended_well);
    dir
}

fn words_of(dir: &TempDir) -> String {
    dir.path().to_str().unwrap().to_owned()
}
