//! `BACKUP.json`: no list names a file outside the database, and what is read is written back.
#![cfg_attr(fuzzing, no_main)]

use latewood_offsite::{Content, Entry, Listing};
use libfuzzer_sys::fuzz_target;
use std::path::{Component, Path};

fn check(bytes: &[u8]) -> Option<Listing> {
    let listing = Listing::decode(bytes).ok()?;
    for file in &listing.files {
        let mut parts = Path::new(&file.path).components();
        assert!(!file.path.is_empty());
        assert!(
            parts.all(|part| matches!(part, Component::Normal(_))),
            "{}",
            file.path
        );
    }
    assert_eq!(
        Listing::decode(&listing.encode()).ok().as_ref(),
        Some(&listing)
    );
    Some(listing)
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // The same paths with a valid checksum, so that they are looked at.
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let entry = |path: &str| Entry {
        path: path.to_owned(),
        content: Content {
            bytes: path.len() as u64,
            sha256: "00".repeat(32),
        },
    };
    let written = Listing::new(text.split('\n').map(entry).collect(), 5);
    if let Some(read) = check(&written.encode()) {
        assert_eq!(read, written);
    }
});
