//! `merge`, and the other tools over the blocks that it makes.

use crate::harness::{Server, command};
use crate::tools::{filled, said, words_of};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

/// The files in a folder of the data.
fn files(dir: &TempDir, folder: &str) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(dir.path().join(folder)).unwrap();
    listed.map(|entry| entry.unwrap().path()).collect()
}

fn merged() -> TempDir {
    let dir = filled();
    assert!(said(&["merge", &words_of(&dir)], 0).contains("merged"));
    dir
}

#[test]
fn everything_is_in_blocks_afterwards_and_is_served() {
    let dir = merged();
    let path = words_of(&dir);
    let json: Value = serde_json::from_str(&said(&["stats", &path, "--json"], 0)).unwrap();
    assert_eq!(json["base"]["samples"], 30);
    assert_eq!(json["series_in_files"], 3);
    assert!(said(&["check", &path], 0).contains("1 blocks with 30 samples, 3 series in files"));
    for (folder, words) in [
        ("blocks", ["file: block", "samples: 30"]),
        ("series", ["file: series file", "count: 3"]),
    ] {
        let file = files(&dir, folder).remove(0);
        let text = said(&["inspect", file.to_str().unwrap()], 0);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let manifest = dir.path().join("MANIFEST");
    let text = said(&["inspect", manifest.to_str().unwrap()], 0);
    assert!(
        text.contains("file: manifest") && text.contains("samples 30"),
        "{text}"
    );
    let server = Server::over(dir, &[]);
    let reply = server.client().ask("TS.RANGE b - + AGGREGATION sum 100");
    assert!(reply.contains("+55\r\n"), "{reply}");
}

#[test]
fn every_flipped_byte_of_every_file_is_found() {
    let dir = merged();
    let path = words_of(&dir);
    let mut all = [files(&dir, "blocks"), files(&dir, "series")].concat();
    all.push(dir.path().join("MANIFEST"));
    for file in all {
        let good = std::fs::read(&file).unwrap();
        for at in (0..good.len()).step_by(good.len() / 12) {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            std::fs::write(&file, bytes).unwrap();
            let output = crate::tools::tool(&["check", &path]);
            let text = String::from_utf8(output.stdout).unwrap();
            // A flipped version is refused in words. Of the manifest there are
            // two copies, and one is enough; anything else is damage.
            let is_told = match output.status.code().unwrap() {
                0 => file.ends_with("MANIFEST") && text.contains("one of the two copies"),
                1 | 3 => text.contains("damage: "),
                status => status == 2,
            };
            assert!(is_told, "{file:?} {at}: {text}");
        }
        std::fs::write(&file, good).unwrap();
    }
    assert!(said(&["check", &path], 0).contains("no damage"));
}

#[test]
fn a_damaged_block_fails_its_reads_or_is_kept_aside() {
    let dir = merged();
    let block = files(&dir, "blocks").remove(0);
    let good = std::fs::read(&block).unwrap();
    // The chunk of the first series stands right behind the header.
    let mut bytes = good.clone();
    bytes[40] ^= 1;
    std::fs::write(&block, bytes).unwrap();
    let server = Server::over(dir, &[]);
    let mut client = server.client();
    let replies = ["a", "b", "c"].map(|key| client.ask(&format!("TS.RANGE {key} - +")));
    let failed: Vec<_> = replies
        .iter()
        .filter(|reply| reply.starts_with('-'))
        .collect();
    assert_eq!(failed.len(), 1, "{replies:?}");
    for word in ["damaged", ".blk", "from 1 to 10"] {
        assert!(failed[0].contains(word), "{}", failed[0]);
    }
    let dir = server.kill();
    let mut bytes = good;
    let end = bytes.len() - 20;
    bytes[end] ^= 1;
    std::fs::write(&block, bytes).unwrap();
    let mut start = command(dir.path());
    let refused = start
        .args(["--strict", "--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains(".blk"), "{text}");
    let server = Server::over(dir, &[]);
    let mut client = server.client();
    let info = client.ask("INFO latewood");
    for field in ["recovery_blocks_lost:1", "quarantined_files:1"] {
        assert!(info.contains(field), "{info}");
    }
    client.expect(&[("TS.RANGE a - +", "*0\r\n"), ("TS.ADD a 20 20", ":20\r\n")]);
    assert!(!block.exists());
}
