//! `backup` under load and `restore`.

use crate::harness::{Client, Server};
use crate::tools::{filled, said, tool, words_of};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;

const KEYS: usize = 3;

/// Timestamps of a key, each of which must carry its own number as value.
fn timestamps(client: &mut Client, key: &str) -> Vec<u64> {
    let reply = client.ask(&format!("TS.RANGE {key} - +"));
    let mut lines = reply.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(timestamp) = line.strip_prefix(':') {
            let timestamp = timestamp.parse().unwrap();
            assert_eq!(lines.next().unwrap(), format!("+{timestamp}"));
            found.push(timestamp);
        }
    }
    found
}

fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_backup_under_load_holds_all_that_was_acknowledged_before() {
    let server = Server::with(&["--ts-duplicate-policy", "last"]);
    let copies = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let acknowledged: [AtomicU64; KEYS] = Default::default();
    let before = std::thread::scope(|scope| {
        for (number, count) in acknowledged.iter().enumerate() {
            let (mut client, stop) = (server.client(), &stop);
            scope.spawn(move || {
                for at in 1.. {
                    // Every fifth one comes late.
                    let at = if at % 5 == 0 { at - 4 } else { at + 1 };
                    let reply = client.ask(&format!("TS.ADD key:{number} {at} {at}"));
                    assert_eq!(reply, format!(":{at}\r\n"));
                    count.fetch_add(1, Ordering::SeqCst);
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let mut control = server.client();
        let mut before = [0; KEYS];
        for round in 0..3 {
            let wanted = 300 * (round + 1);
            while acknowledged
                .iter()
                .any(|count| count.load(Ordering::SeqCst) < wanted)
            {
                std::thread::yield_now();
            }
            control.expect(&[("SAVE", "+OK\r\n")]);
            before = std::array::from_fn(|key| acknowledged[key].load(Ordering::SeqCst));
            let to = path(&copies, &format!("backup{round}"));
            let text = said(&["backup", "--to", &to, "--server", server.address()], 0);
            assert!(text.contains("backed up to"), "{text}");
        }
        stop.store(true, Ordering::Relaxed);
        before
    });
    let mut source = server.client();
    let (from, to) = (path(&copies, "backup2"), path(&copies, "restored"));
    let text = said(&["restore", &from, &to], 0);
    assert!(text.contains("every checksum was verified"), "{text}");
    let home = tempfile::tempdir().unwrap();
    std::fs::rename(&to, home.path()).unwrap();
    let restored = Server::over(home, &[]);
    let mut copy = restored.client();
    for (key, before) in before.into_iter().enumerate() {
        let key = format!("key:{key}");
        let whole = timestamps(&mut source, &key);
        let held = timestamps(&mut copy, &key);
        // Writes come in one order: what is held is where that order was.
        let written = (1..=whole.len() as u64).map(|at| if at % 5 == 0 { at - 4 } else { at + 1 });
        let mut written: Vec<u64> = written.collect();
        assert!(
            held.len() as u64 >= before,
            "{key}: {} of {before}",
            held.len()
        );
        written.truncate(held.len());
        written.sort_unstable();
        assert_eq!(held, written, "{key}");
    }
    // The backup itself is a database that goes on being one.
    assert!(said(&["check", &from], 0).contains("no damage"));
}

#[test]
fn a_backup_goes_only_where_nothing_is() {
    let server = Server::with(&[]);
    let full = filled();
    let arguments = [
        "backup",
        "--to",
        &words_of(&full),
        "--server",
        server.address(),
    ];
    let output = tool(&arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the folder is not empty"), "{text}");
    // Nobody listens there.
    let output = tool(&[
        "backup",
        "--to",
        &words_of(&full),
        "--server",
        "127.0.0.1:1",
    ]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("--server ADDR:PORT"), "{text}");
    let mut client = server.client();
    client.expect(&[(
        "LATEWOOD BACKUP relative/path",
        "-ERR the path of a backup must be absolute\r\n",
    )]);
    let info = client.ask("INFO latewood");
    assert!(
        info.contains("backup_last_status:the folder is not empty"),
        "{info}"
    );
}

#[test]
fn a_user_of_its_own_backs_up_and_one_that_may_not_ask_starts_nothing() {
    let server = Server::with(&["--requirepass", "root"]);
    let mut client = server.client();
    client.expect(&[
        ("AUTH root", "+OK\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
        (
            "ACL SETUSER bkp on >secret +latewood|backup +info",
            "+OK\r\n",
        ),
        ("ACL SETUSER blind on >secret +latewood|backup", "+OK\r\n"),
    ]);
    let copies = tempfile::tempdir().unwrap();
    let (to, other) = (path(&copies, "backup"), path(&copies, "other"));
    let login = |user, password, to| {
        let server = ["--server", server.address()];
        let login = ["--user", user, "--password", password];
        [&["backup", "--to", to], &server[..], &login].concat()
    };
    let text = said(&login("bkp", "secret", &to), 0);
    assert!(text.contains("backed up to"), "{text}");
    assert!(said(&["check", &to], 0).contains("no damage"));
    for (user, password, reason) in [
        ("bkp", "wrong", "WRONGPASS"),
        ("blind", "secret", "'info' command"),
    ] {
        let refused = tool(&login(user, password, &other));
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(text.contains(reason), "{text}");
    }
    client.expect(&[("SAVE", "+OK\r\n")]);
    let info = client.ask("INFO latewood");
    assert!(
        info.contains(&format!("backup_last_path:{to}\r\n")),
        "{info}"
    );
}

#[test]
fn a_directory_at_rest_is_backed_up_and_restored() {
    let (source, copies) = (filled(), tempfile::tempdir().unwrap());
    let (backup, again) = (path(&copies, "backup"), path(&copies, "again"));
    // What blocks and log both hold counts once.
    for words in [
        &["backup", "--dir", &words_of(&source), "--to", &backup][..],
        &["restore", &backup, &again],
    ] {
        let text = said(words, 0);
        let counts = text.split(' ').filter_map(|word| word.parse::<u64>().ok());
        assert_eq!(counts.sum::<u64>(), 30, "{text}");
    }
    let refused = tool(&["restore", &backup, &again]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("the folder is not empty"), "{text}");
    // A damaged backup is named and not made a database of.
    let segment = Path::new(&backup).join("wal/segment-0000000000000001.wal");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8300] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let third = path(&copies, "third");
    let refused = tool(&["restore", &backup, &third]);
    let text = String::from_utf8(refused.stdout).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("damage: the log is damaged"), "{text}");
    assert!(!Path::new(&third).exists());
}

#[test]
fn a_backup_inside_the_data_directory_is_refused() {
    let server = Server::with(&[]);
    let mut client = server.client();
    let dir = server.dir().to_owned();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    for place in [dir.join("inside"), dir.join("a/b"), link.join("inside")] {
        let to = place.to_str().unwrap();
        let output = tool(&["backup", "--to", to, "--server", server.address()]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("lies inside the data directory"), "{text}");
        assert!(!place.exists(), "{to}");
        // The command itself says so, and nothing has begun.
        let refused = client.ask(&format!("LATEWOOD BACKUP {to}"));
        let text = format!("-ERR {to} lies inside the data directory ");
        assert!(refused.starts_with(&text), "{refused}");
    }
    let info = client.ask("INFO latewood");
    assert!(info.contains("backup_last_status:none\r\n"), "{info}");
    let rest = filled();
    for verb in [
        &["backup", "--dir", &words_of(&rest), "--to"][..],
        &["restore", &words_of(&rest)],
    ] {
        let to = path(&rest, "inside");
        let output = tool(&[verb, &[&to]].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("lies inside the data directory"), "{text}");
        assert!(!Path::new(&to).exists());
    }
}
