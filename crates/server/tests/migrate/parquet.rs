//! Parquet files. What is in them is tested with the server's `/api/v1/export`.

use crate::harness::Server;
use crate::http::client::Http;
use crate::migrate::run;
use std::fs;

fn export(server: &Server, words: &[&str]) -> (Option<i32>, String) {
    let first = ["export", "parquet", "--from", server.http()];
    let (status, _, errors) = run(&[&first[..], words].concat());
    (status, errors)
}

#[test]
fn a_file_is_what_the_server_answers() {
    let server = Server::with(&["--wal", "off", "--http", "127.0.0.1:0"]);
    for command in [
        "TS.ADD a 999 1",
        "TS.ADD a 1000 2",
        "TS.ADD a 2001 3",
        "TS.ADD b 1500 4 LABELS site x",
        "TS.ADD c 1500 5",
    ] {
        server.client().ask(command);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ab.parquet");
    let path = path.to_str().unwrap();
    let words = ["--match", "a", "--match", "b{site=\"x\"}"];
    let span = ["--start", "1000", "--end", "2000", path];
    let (status, errors) = export(&server, &[&words[..], &span].concat());
    assert_eq!(status, Some(0), "{errors}");
    let asked = "/api/v1/export?format=parquet&match[]=a&match[]=b&start=1&end=2";
    let file = fs::read(path).unwrap();
    assert_eq!(file, Http::to(server.http()).get(asked).body);
    assert!(
        errors.contains(&format!("{} bytes exported", file.len())),
        "{errors}"
    );
    // The file may be the only copy.
    let (status, errors) = export(&server, &[path]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("already exists"), "{errors}");
    assert_eq!(file, fs::read(path).unwrap());
}

#[test]
fn what_is_refused_leaves_no_file() {
    let server = Server::with(&["--wal", "off", "--http", "127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let words = ["--match", "{", path.to_str().unwrap()];
    let (status, errors) = export(&server, &words);
    assert_eq!(status, Some(1));
    assert!(errors.contains("400 Bad Request"), "{errors}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // The port of the other protocol.
    let words = [
        "export",
        "parquet",
        "--from",
        server.address(),
        path.to_str().unwrap(),
    ];
    let (status, _, errors) = run(&words);
    assert_eq!(status, Some(1));
    assert!(errors.contains("speaks RESP, not HTTP"), "{errors}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
