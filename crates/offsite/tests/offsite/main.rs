//! A database goes to a store and comes back as it was, or not at all.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use latewood_engine::io::Env;
use latewood_engine::tools::check;
use latewood_engine::{Append, Create, Db, Defaults, Options, Scratch};
use latewood_offsite::faulty::FaultyStore;
use latewood_offsite::{Error, LISTING, Place, UNFINISHED, download, upload};
use object_store::path::Path as Object;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Longer than a part, so that the log is uploaded in several.
const SEGMENT_BYTES: usize = 18 << 20;

/// A database with samples in a block and others in the log.
fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        background: false,
        segment_bytes: SEGMENT_BYTES as _,
        ..Options::default()
    };
    let db = Db::open(&Env::real(), dir.path(), options, Defaults::default()).unwrap();
    for at in 0..300 {
        let sample = Append {
            key: if at % 3 == 0 { b"one" } else { b"two" },
            timestamp: at,
            value: at as f64,
            on_duplicate: None,
            create: Create::Defaults,
        };
        db.append(&[sample], &mut Scratch::new()).unwrap();
        if at == 200 {
            db.flush().unwrap();
        }
    }
    drop(db);
    dir
}

/// The files of a database by their paths.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in ["", "blocks", "series", "wal"] {
        for entry in fs::read_dir(dir.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && !path.ends_with("LOCK") {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap();
                found.insert(name.to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn url(dir: &TempDir, name: &str) -> String {
    format!("file://{}/{name}", dir.path().display())
}

fn bring(url: &str, dir: &Path) -> Result<(), String> {
    let place = Place::parse(url).unwrap();
    let brought = download(&place, dir, &mut |_| {});
    brought.map(|_| ()).map_err(|error| error.to_string())
}

fn is_database(dir: &Path) -> bool {
    check(&Env::real(), dir, &mut |_| {}).is_ok()
}

#[test]
fn what_comes_back_is_what_went() {
    let (source, home) = (filled(), tempfile::tempdir().unwrap());
    let url = url(&home, "a folder/monday");
    let place = Place::parse(&url).unwrap();
    let moved = upload(source.path(), &place).unwrap();
    let sent = files(source.path());
    assert_eq!(moved.files, sent.len() as u64);
    let bytes: usize = sent.values().map(Vec::len).sum();
    assert_eq!(moved.bytes, bytes as u64);
    assert!(sent.keys().any(|name| name.starts_with("blocks/")));
    let target = home.path().join("restored");
    let mut tell = |found: &latewood_engine::tools::Finding| assert!(!found.is_damage, "{found:?}");
    let (again, checked) = download(&place, &target, &mut tell).unwrap();
    assert_eq!(again, moved);
    assert_eq!(checked.block_samples + checked.unstored_samples, 300);
    assert_eq!(files(&target), sent);
    // Neither writes to a place that is not empty.
    let taken = upload(source.path(), &place).unwrap_err();
    assert!(matches!(taken, Error::Taken { .. }), "{taken}");
    let refused = bring(&url, &target).unwrap_err();
    assert!(refused.contains("the folder is not empty"), "{refused}");
}

#[test]
fn nothing_that_was_changed_in_the_store_comes_back() {
    let (source, home) = (filled(), tempfile::tempdir().unwrap());
    let url = url(&home, "backup");
    upload(source.path(), &Place::parse(&url).unwrap()).unwrap();
    let stored = home.path().join("backup");
    let names: Vec<String> = files(&stored).into_keys().collect();
    assert!(names.iter().any(|name| name == LISTING));
    let mut tried = 0;
    for name in names {
        let path = stored.join(&name);
        let good = fs::read(&path).unwrap();
        let mut altered = good.clone();
        altered[good.len() / 2] ^= 1;
        let longer = [&good[..], b"x"].concat();
        let shorter = &good[..good.len() - 1];
        for bad in [None, Some(&altered[..]), Some(shorter), Some(&longer)] {
            match bad {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            // White space after the list is not significant.
            if name == LISTING && bad.is_some_and(|bad| bad.len() < good.len()) {
                continue;
            }
            let target = home.path().join(format!("restored{tried}"));
            let refused = bring(&url, &target).unwrap_err();
            let wanted = match (name.as_str(), bad) {
                (LISTING, None) => "no backup at",
                _ => name.as_str(),
            };
            assert!(refused.contains(wanted), "{name}: {refused}");
            assert!(!is_database(&target), "{name}");
            tried += 1;
        }
        fs::write(&path, good).unwrap();
    }
    assert!(tried > 15, "{tried}");
    bring(&url, &home.path().join("restored")).unwrap();
}

#[test]
fn an_upload_that_stops_anywhere_is_no_backup() {
    let source = filled();
    let whole = FaultyStore::good();
    let place =
        |store: &FaultyStore| Place::of(Arc::new(store.clone()), Object::from("b"), "x://b");
    upload(source.path(), &place(&whole)).unwrap();
    let requests = whole.asked();
    assert!(requests > 10, "{requests}");
    let home = tempfile::tempdir().unwrap();
    for answers in 0..requests {
        let later = FaultyStore::good();
        let store = later.with_answers(answers);
        let cut = upload(source.path(), &place(&store)).unwrap_err();
        assert!(cut.to_string().contains("connection is gone"), "{cut}");
        let target = home.path().join(answers.to_string());
        match download(&place(&later), &target, &mut |_| {}) {
            // Everything but the removal of the marker was done.
            Ok(_) => {
                assert_eq!(answers, requests - 1);
                assert!(cut.to_string().contains(UNFINISHED), "{cut}");
            }
            Err(Error::NoBackup { .. }) => assert!(!target.exists()),
            Err(error) => panic!("{answers}: {error}"),
        }
        // Its objects make another upload fail with an error that says so.
        if answers >= 2 {
            let taken = upload(source.path(), &place(&later)).unwrap_err();
            assert!(matches!(taken, Error::Taken { .. }), "{answers}: {taken}");
        }
    }
}

#[test]
fn a_download_that_stops_anywhere_is_no_database() {
    let source = filled();
    let whole = FaultyStore::good();
    let place = |store: &FaultyStore| Place::of(Arc::new(store.clone()), Object::default(), "x://");
    upload(source.path(), &place(&whole)).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut answers = 0;
    loop {
        let target = home.path().join(answers.to_string());
        let store = whole.with_answers(answers);
        match download(&place(&store), &target, &mut |_| {}) {
            Ok(_) => break,
            Err(error) => {
                assert!(error.to_string().contains("connection is gone"), "{error}");
                assert!(!is_database(&target), "{answers}");
            }
        }
        answers += 1;
    }
    assert!(answers >= 4, "{answers}");
}

#[test]
fn two_uploads_to_one_place_cannot_both_end_well() {
    let source = filled();
    let store = FaultyStore::good();
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let upload = || {
            let place = Place::of(Arc::new(store.clone()), Object::from("b"), "x://b");
            upload(source.path(), &place).is_ok()
        };
        let both = [scope.spawn(upload), scope.spawn(upload)];
        both.map(|one| one.join().unwrap()).to_vec()
    });
    assert_eq!(outcomes.iter().filter(|&&ended| ended).count(), 1);
}

#[test]
fn a_web_server_is_not_written_to() {
    let source = filled();
    let place = Place::parse("https://backups.example/monday").unwrap();
    let refused = upload(source.path(), &place).unwrap_err().to_string();
    assert!(refused.contains("for restore only"), "{refused}");
}
