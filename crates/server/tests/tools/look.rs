//! `check`, `inspect` and `stats`.

use crate::harness::{Server, command};
use crate::tools::{filled, said, words_in, words_of};
use serde_json::Value;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const SEGMENT: &str = "wal/segment-0000000000000001.wal";

#[test]
fn a_good_directory_is_well() {
    let dir = filled();
    let before = std::fs::read(dir.path().join(SEGMENT)).unwrap();
    let text = said(&["check", &words_of(&dir)], 0);
    assert!(
        text.contains("34 log groups with 30 samples: no damage"),
        "{text}"
    );
    assert!(!text.contains("damage:"), "{text}");
    assert_eq!(std::fs::read(dir.path().join(SEGMENT)).unwrap(), before);
}

#[test]
fn every_flipped_byte_of_the_log_is_damage() {
    let dir = filled();
    let path = dir.path().join(SEGMENT);
    let good = std::fs::read(&path).unwrap();
    let used = good.iter().rposition(|&byte| byte != 0).unwrap();
    for at in (8192..used - 24).step_by(101) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x20;
        std::fs::write(&path, &bytes).unwrap();
        let text = said(&["check", &words_of(&dir)], 1);
        let line = text
            .lines()
            .find(|line| line.starts_with("damage: "))
            .unwrap();
        assert!(line.contains("segment-0000000000000001.wal"), "{text}");
        assert!(text.contains("1 damaged"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing is changed");
    }
}

#[test]
fn what_cannot_be_checked_is_said() {
    let empty = tempfile::tempdir().unwrap();
    let text = said(&["check", &words_of(&empty)], 2);
    assert!(text.contains("there is no database"), "{text}");
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
    let server = Server::with(&[]);
    let text = said(&["check", server.dir().to_str().unwrap()], 2);
    assert!(text.contains("in use by another process"), "{text}");
    assert!(text.contains("the backup checked"), "{text}");
    let text = said(&["inspect", server.dir().to_str().unwrap()], 2);
    assert!(text.contains("`latewood stats`"), "{text}");
    let later = filled();
    std::fs::write(later.path().join("FORMAT"), "latewood directory format 2\n").unwrap();
    for tool in ["check", "stats"] {
        let text = said(&[tool, &words_of(&later)], 2);
        assert!(text.contains("format version 2"), "{text}");
    }
}

#[test]
fn without_a_format_no_server_starts() {
    let dir = filled();
    let (format, path) = (dir.path().join("FORMAT"), words_of(&dir));
    for bad in [Some("latewood directory farmat 1\n"), Some(""), None] {
        match bad {
            Some(text) => std::fs::write(&format, text).unwrap(),
            None => std::fs::remove_file(&format).unwrap(),
        }
        let text = said(&["check", &path], 3);
        assert!(text.contains("damage: the directory"), "{text}");
        assert!(text.contains("refuses to start"), "{text}");
        let start = command(dir.path())
            .args(["--listen", "127.0.0.1:0"])
            .output();
        assert!(!start.unwrap().status.success());
    }
}

#[test]
fn a_segment_is_told_as_text_and_json() {
    let dir = filled();
    let path = dir.path().join(SEGMENT).to_str().unwrap().to_owned();
    let text = said(&["inspect", &path], 0);
    for line in [
        "file: log segment",
        "groups: 34",
        "samples: 30",
        "creations: 3",
    ] {
        assert!(text.lines().any(|told| told == line), "{line} in {text}");
    }
    let json: Value = serde_json::from_str(&said(&["inspect", &path, "--json"], 0)).unwrap();
    assert_eq!(json["samples"], 30);
    let text = said(&["inspect", dir.path().join("FORMAT").to_str().unwrap()], 2);
    assert!(text.contains("not a log segment"), "{text}");
    let mut bytes = std::fs::read(&path).unwrap();
    (bytes[8], bytes[4104]) = (9, 9);
    std::fs::write(&path, bytes).unwrap();
    let text = said(&["inspect", &path], 2);
    assert!(text.contains("format version 9"), "{text}");
}

#[test]
fn totals_are_those_that_were_written() {
    let dir = filled();
    let json: Value =
        serde_json::from_str(&said(&["stats", &words_of(&dir), "--json"], 0)).unwrap();
    let stored = &json["base"]["samples"];
    let logged = &json["log"]["samples"];
    assert_eq!(stored.as_u64().unwrap().max(logged.as_u64().unwrap()), 30);
    assert_eq!(json["log"]["closed_in_order"], "yes");
    let text = said(&["stats", &words_of(&dir)], 0);
    assert!(text.contains("  samples: 30"), "{text}");
}

#[test]
fn a_stretch_of_the_log_in_quarantine_says_what_it_is() {
    let dir = filled();
    let path = dir.path().join(SEGMENT);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8300] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let server = Server::over(dir, &[]);
    let held = std::fs::read_dir(server.dir().join("quarantine")).unwrap();
    // Beside it lies the file that says that nobody has accepted the damage.
    let mut held = held.map(|entry| entry.unwrap().path());
    let held = held.find(|path| !path.ends_with("UNACCEPTED")).unwrap();
    let offset = held.to_str().unwrap().rsplit("at-").next().unwrap();
    let json = said(&["inspect", "--json", held.to_str().unwrap()], 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["file"], "damaged stretch of a log segment");
    assert_eq!(json["segment"], 1);
    assert_eq!(json["offset"].to_string(), offset);
    let bytes = std::fs::metadata(&held).unwrap().len();
    assert_eq!(json["bytes"], bytes);
}

/// Takes every right to write from a directory and what is in it.
fn make_read_only(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            make_read_only(&path)
        } else {
            std::fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap()
        }
    }
    std::fs::set_permissions(dir, Permissions::from_mode(0o555)).unwrap();
}

/// Gives it back, so that the directory can be removed.
fn make_writable(dir: &Path) {
    std::fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            make_writable(&path);
        }
    }
}

/// What a user says who is bound by the rights of files, as root is not: where
/// this is root, somebody else, with a copy of the binary in `home`.
fn said_to_reader(home: &Path, words: &[&str]) -> String {
    let surroundings = command(Path::new("unused"));
    let mut tool = Command::new(surroundings.get_program());
    if rustix::process::geteuid().is_root() {
        let program = home.join("latewood");
        if !program.exists() {
            // By another process: what a test beside this one starts would inherit
            // the file open for writing, and no such file can be run.
            let mut copy = Command::new("cp");
            let copied = copy.arg(surroundings.get_program()).arg(&program).status();
            assert!(copied.unwrap().success());
        }
        tool = Command::new(program);
        tool.uid(65_534).gid(65_534);
    }
    words_in(tool.args(words).output().unwrap(), words, 0)
}

#[test]
fn what_may_only_be_read_is_looked_at_all_the_same() {
    let dir = filled();
    let path = words_of(&dir);
    let segment = dir.path().join(SEGMENT).to_str().unwrap().to_owned();
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
    for has_lock_file in [true, false] {
        let lock = dir.path().join("LOCK");
        // Another reader, which keeps nobody out.
        let other = has_lock_file.then(|| File::open(&lock).unwrap());
        match &other {
            Some(file) => file.try_lock_shared().unwrap(),
            None => std::fs::remove_file(&lock).unwrap(),
        }
        make_read_only(dir.path());
        let target = home.path().join(format!("copy-{has_lock_file}"));
        let target = target.to_str().unwrap();
        let said = |words: &[&str]| said_to_reader(home.path(), words);
        assert!(said(&["check", &path]).contains("no damage"));
        assert!(said(&["stats", &path]).contains("30"));
        assert!(said(&["inspect", &segment]).contains("log segment"));
        assert!(said(&["restore", &path, target]).contains("restored"));
        assert_eq!(lock.exists(), has_lock_file);
        make_writable(dir.path());
    }
}
