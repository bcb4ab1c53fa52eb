//! Blocks of Prometheus. Those of the test `promtool tsdb create-blocks-from openmetrics` made of
//! `blocks.txt`: 300 samples of one series, with NaN among them, and 130 of another, in two blocks.

use crate::harness::Server;
use crate::http::client::Http;
use crate::migrate::run;
use crc_fast::{CrcAlgorithm, checksum};
use std::fs;
use std::path::{Path, PathBuf};

const OPTIONS: [&str; 4] = ["--wal", "off", "--http", "127.0.0.1:0"];
const FIRST: &str = "01M8JN80SBH0YKFGCZCXWBJTZG";

fn made() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/prometheus")
}

fn import(server: &Server, words: &[&str], directory: &Path) -> (Option<i32>, String) {
    let directory = directory.to_str().unwrap();
    let first = ["import", "prometheus", "--to", server.http()];
    let (status, _, errors) = run(&[&first[..], words, &[directory]].concat());
    (status, errors)
}

fn exported(server: &Server) -> String {
    let all = "/api/v1/export?match[]={__name__!=%22%22}&format=csv";
    Http::to(server.http()).get(all).text()
}

/// A copy whose files may be changed.
fn copied() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (made().join(FIRST), folder.path().join(FIRST));
    fs::create_dir_all(to.join("chunks")).unwrap();
    for file in ["meta.json", "index", "chunks/000001"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    folder
}

fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    let sum = checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
    [bytes, &sum.to_be_bytes()].concat()
}

#[test]
fn blocks_become_the_series_that_they_were_made_of() {
    let (server, other) = (Server::with(&OPTIONS), Server::with(&OPTIONS));
    let (status, errors) = import(&server, &[], &made());
    assert_eq!(status, Some(0), "{errors}");
    assert!(
        errors.contains("430 samples of 2 blocks written"),
        "{errors}"
    );
    let text = fs::read(made().join("blocks.txt")).unwrap();
    let path = "/api/v1/import/prometheus";
    assert_eq!(Http::to(other.http()).post(path, &text).status, 204);
    assert_eq!(exported(&server), exported(&other));
    // One block, and again: what is there stays as it is.
    let (status, errors) = import(&server, &["--rate", "100000"], &made().join(FIRST));
    assert_eq!(status, Some(0), "{errors}");
    assert_eq!(exported(&server), exported(&other));
}

#[test]
fn external_labels_are_those_of_the_block_and_of_the_command() {
    let (server, folder) = (Server::with(&OPTIONS), copied());
    let path = folder.path().join(FIRST).join("meta.json");
    let mut meta: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    meta["thanos"] =
        serde_json::json!({"labels": {"cluster": "eu", "sensor": "9", "site": "", "replica": "1"}});
    fs::write(&path, meta.to_string()).unwrap();
    let words = [
        "--label",
        "replica=",
        "--label",
        "zone=a=b",
        "--label",
        "site=other",
    ];
    let (status, errors) = import(&server, &words, folder.path());
    assert_eq!(status, Some(0), "{errors}");
    let series = Http::to(server.http()).get("/api/v1/series?match[]={cluster=%22eu%22}");
    let text = series.text();
    for (words, are_there) in [
        // That of the block counts, that of the command does not.
        ("\"sensor\":\"9\"", true),
        ("\"site\":\"north", true),
        ("\"zone\":\"a=b\"", true),
        ("\"sensor\":\"1\"", false),
        ("replica", false),
    ] {
        assert_eq!(text.contains(words), are_there, "{words}: {text}");
    }
    let twice = ["--label", "a=1", "--label", "a=2"];
    let (status, errors) = import(&server, &twice, folder.path());
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("--label a is given twice"), "{errors}");
    // Without a name or a value, and a metric.
    for wrong in ["cluster", "=eu", "__name__=up"] {
        let (status, errors) = import(&server, &["--label", wrong], folder.path());
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains("expected NAME=VALUE"), "{errors}");
    }
    meta["thanos"]["labels"] = serde_json::json!(["eu"]);
    fs::write(&path, meta.to_string()).unwrap();
    let (status, errors) = import(&server, &[], folder.path());
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("thanos.labels"), "{errors}");
}

#[test]
fn deleted_samples_are_left_out_and_histograms_counted() {
    let (server, folder) = (Server::with(&OPTIONS), copied());
    let block = folder.path().join(FIRST);
    // The series 4, from 1700000000000 to 1700000060123 ms, as signed varints.
    let span = b"\x04\x80\xa0\xab\xfe\xf9\x62\xb6\xcb\xb2\xfe\xf9\x62";
    let head = b"\x01\x30\xba\x30\x01";
    let stones = [&head[..], &with_checksum(span)].concat();
    fs::write(block.join("tombstones"), stones).unwrap();
    let (status, errors) = import(&server, &[], folder.path());
    assert_eq!(status, Some(0), "{errors}");
    for words in ["402 samples of 1 blocks", "5 deleted samples were left out"] {
        assert!(errors.contains(words), "{errors}");
    }
    // Of the first chunk, its kind.
    let path = block.join("chunks/000001");
    let mut chunks = fs::read(&path).unwrap();
    let (length, begin) = (
        usize::from(chunks[8] & 0x7f) + (usize::from(chunks[9]) << 7),
        10,
    );
    assert!(chunks[9] < 0x80 && chunks[begin] == 1);
    chunks[begin] = 2;
    let end = begin + 1 + length;
    let sealed = with_checksum(&chunks[begin..end]);
    chunks[begin..end + 4].copy_from_slice(&sealed);
    fs::write(&path, chunks).unwrap();
    let (status, errors) = import(&server, &[], folder.path());
    assert_eq!(status, Some(3), "{errors}");
    for words in [
        "143 native histograms were not taken",
        "native histograms: temp",
    ] {
        assert!(errors.contains(words), "{errors}");
    }
}

#[test]
fn what_is_damaged_or_refused_ends_it_in_words() {
    let server = Server::with(&OPTIONS);
    for (file, words) in [
        ("index", "index: "),
        ("chunks/000001", "chunks/000001 at 8: the checksum is wrong"),
        ("meta.json", "meta.json: "),
    ] {
        let folder = copied();
        let path = folder.path().join(FIRST).join(file);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() / 5;
        bytes[at] ^= 0x55;
        fs::write(&path, bytes).unwrap();
        let (status, errors) = import(&server, &[], folder.path());
        assert_eq!(status, Some(1), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (status, errors) = import(&server, &[], folder.path());
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("has no block"), "{errors}");
    let missing = folder.path().join("missing");
    let (status, errors) = import(&server, &[], &missing);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("No such file or directory"), "{errors}");
}

#[test]
fn refused_samples_are_counted_where_they_may_be_skipped() {
    let server = Server::with(&[&OPTIONS[..], &["--max-series", "1"]].concat());
    let (status, errors) = import(&server, &[], &made());
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("refused /api/v1/write: 400"), "{errors}");
    let (status, errors) = import(&server, &["--skip-bad"], &made());
    assert_eq!(status, Some(3), "{errors}");
    // Which of the two series is there first depends on the order of their partitions.
    let kept = exported(&server).lines().count() - 1;
    let written = format!("{kept} samples of 2 blocks written");
    let refused = format!("{} samples were refused", 430 - kept);
    assert!([130, 300].contains(&kept), "{kept} kept: {errors}");
    for words in [written, refused] {
        assert!(errors.contains(&words), "{errors}");
    }
}
