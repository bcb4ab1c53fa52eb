//! `backup --to URL` and `restore URL DIR`, into folders by `file://`.

use crate::harness::{Server, command};
use crate::tools::{filled, said, tool, words_of};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn url(dir: &TempDir, name: &str) -> String {
    format!("file://{}/{name}", dir.path().display())
}

fn refused(words: &[&str]) -> String {
    let output = tool(words);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

#[test]
fn a_served_database_is_uploaded_and_comes_back() {
    let server = Server::over(filled(), &[]);
    let mut client = server.client();
    client.expect(&[("SAVE", "+OK\r\n"), ("TS.ADD a 11 11", ":11\r\n")]);
    let store = tempfile::tempdir().unwrap();
    let (url, home) = (url(&store, "monday"), tempfile::tempdir().unwrap());
    let words = ["backup", "--to", &url, "--server", server.address()];
    let text = said(&words, 0);
    assert!(text.starts_with(&format!("backed up to {url}: ")), "{text}");
    assert!(!server.dir().join("upload").exists());
    let target = home.path().join("restored");
    let text = said(&["restore", &url, target.to_str().unwrap()], 0);
    assert!(text.contains("every checksum was verified"), "{text}");
    assert!(said(&["check", target.to_str().unwrap()], 0).contains("no damage"));
    let (asked, given) = (
        "TS.RANGE a 10 +",
        "*2\r\n*2\r\n:10\r\n+10\r\n*2\r\n:11\r\n+11\r\n",
    );
    client.expect(&[(asked, given)]);
    let place = tempfile::tempdir().unwrap();
    fs::rename(&target, place.path()).unwrap();
    Server::over(place, &[]).client().expect(&[(asked, given)]);
    // Only where nothing is.
    let text = refused(&words);
    assert!(text.contains("is not empty: it contains"), "{text}");
    assert!(!server.dir().join("upload").exists());
}

#[test]
fn an_upload_that_is_killed_is_no_backup_and_in_nobodys_way() {
    let server = Server::over(filled(), &[]);
    server.client().expect(&[("SAVE", "+OK\r\n")]);
    let store = tempfile::tempdir().unwrap();
    let (first, second) = (url(&store, "first"), url(&store, "second"));
    let program = command(Path::new("unused"));
    // The system ends a process that writes a file beyond this.
    let killed = Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(["backup", "--to", &first, "--server", server.address()])
        .output()
        .unwrap();
    assert_eq!(killed.status.code(), None, "{killed:?}");
    assert!(server.dir().join("upload").exists());
    let target = store.path().join("restored");
    let text = refused(&["restore", &first, target.to_str().unwrap()]);
    assert!(text.contains("no backup at"), "{text}");
    assert!(!target.exists());
    let words = ["backup", "--server", server.address(), "--to"];
    let text = refused(&[&words[..], &[&first]].concat());
    assert!(text.contains("is not empty"), "{text}");
    said(&[&words[..], &[&second]].concat(), 0);
    assert!(!server.dir().join("upload").exists());
    said(&["restore", &second, target.to_str().unwrap()], 0);
}

/// The files of a finished upload are a database; those of an unfinished one
/// are not, whoever takes them for a folder.
#[test]
fn a_folder_that_was_uploaded_to_is_a_database_only_when_it_is_whole() {
    let (source, store) = (filled(), tempfile::tempdir().unwrap());
    let whole = url(&store, "whole");
    said(&["backup", "--dir", &words_of(&source), "--to", &whole], 0);
    let folder = store.path().join("whole");
    let (from, to) = (folder.to_str().unwrap(), store.path().join("restored"));
    said(&["restore", from, to.to_str().unwrap()], 0);
    let program = command(Path::new("unused"));
    let cut = store.path().join("cut");
    let killed = Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args([
            "backup",
            "--dir",
            &words_of(&source),
            "--to",
            &url(&store, "cut"),
        ])
        .output()
        .unwrap();
    assert_eq!(killed.status.code(), None, "{killed:?}");
    assert!(cut.read_dir().unwrap().count() > 0 && !cut.join("FORMAT").exists());
    let text = refused(&["restore", cut.to_str().unwrap(), to.to_str().unwrap()]);
    assert!(
        text.contains("no database") || text.contains("FORMAT is missing"),
        "{text}"
    );
}

#[test]
fn a_directory_at_rest_is_uploaded_if_it_is_whole() {
    let (source, store) = (filled(), tempfile::tempdir().unwrap());
    let (url, bad) = (url(&store, "good"), url(&store, "bad"));
    said(&["backup", "--dir", &words_of(&source), "--to", &url], 0);
    let target = store.path().join("restored");
    let text = said(&["restore", &url, target.to_str().unwrap()], 0);
    assert!(
        text.contains("30 samples in blocks") || text.contains("30 more"),
        "{text}"
    );
    let segment = source.path().join("wal/segment-0000000000000001.wal");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[8300] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let text = refused(&["backup", "--dir", &words_of(&source), "--to", &bad]);
    assert!(
        text.contains("the database is damaged in one place"),
        "{text}"
    );
    assert!(!store.path().join("bad").exists());
}

#[test]
fn a_url_that_names_no_place_is_refused_in_words() {
    let source = filled();
    let dir = words_of(&source);
    for (url, wanted) in [
        ("ftp://host/backup", "unsupported URL"),
        ("memory:///backup", "unsupported URL"),
        ("s3://bucket/backup?region=moon", "environment variables"),
        ("https://backups.example/monday", "for restore only"),
    ] {
        let text = refused(&["backup", "--dir", &dir, "--to", url]);
        assert!(text.contains(wanted), "{url}: {text}");
    }
    let target = source.path().join("restored");
    let text = refused(&[
        "restore",
        "file:///nowhere/at/all",
        target.to_str().unwrap(),
    ]);
    assert!(text.contains("no backup at"), "{text}");
    assert!(!target.exists());
}
