//! A database goes to the object store as a checkpoint and comes back as it was.

mod faults;
mod life;
mod store;
mod sweep;
mod world;

use latewood_cluster::checkpoint::{CheckpointError, ListingRef, Objects};
use latewood_engine::io::sim::{Op, SimDisk, SimRandom};
use latewood_engine::io::{Disk, Env};
use latewood_engine::tools::place_of;
use latewood_offsite::faulty::{FaultyStore, Verb};
use latewood_offsite::{Content, Place};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use world::{
    DIR, FOLDER, block, bytes, database, load, objects, prefix, read, save, watched, write,
};

#[test]
fn what_is_loaded_is_what_was_saved() {
    for seed in 0..10 {
        let (random, store) = (SimRandom::new(seed), FaultyStore::good());
        let mut files = database(&random, seed);
        if seed % 2 == 0 {
            files.remove("METADATA");
        }
        let saved = save(&store, 7, &files, None).unwrap();
        assert_eq!((saved.listing.epoch, saved.listing.number), (7, 1));
        let disk = SimDisk::new();
        load(&disk, &store, &saved).unwrap();
        assert_eq!(read(&disk, DIR), files, "seed {seed}");
        assert_eq!(objects(&disk, &store).find(&saved.at).unwrap(), saved);
    }
}

/// With the file system of this machine on both sides, and a file of several parts.
#[test]
fn a_folder_serves_as_a_store() {
    let home = tempfile::tempdir().unwrap();
    let url = format!("file://{}/store", home.path().display());
    let place = Place::parse(&url).unwrap();
    let objects = Objects::new(Env::real(), &place, "main", 3).unwrap();
    let mut files = database(&SimRandom::new(1), 2);
    files.insert(block(9), bytes(&SimRandom::new(2), 1).repeat(18 << 20));
    let (folder, dir) = (home.path().join("folder"), home.path().join("dir"));
    for (path, bytes) in &files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let saved = objects.save(4, &folder, None).unwrap();
    for _ in 0..2 {
        objects.load(&saved.at, &dir, &mut |_| {}).unwrap();
        for (path, bytes) in &files {
            assert_eq!(&fs::read(dir.join(path)).unwrap(), bytes, "{path}");
        }
        // What happened to the cache is mended the second time.
        fs::write(dir.join(block(2)), "x").unwrap();
    }
    objects.put_latest(&saved.at, 12).unwrap();
    let latest = objects.latest().unwrap().unwrap();
    assert_eq!((latest.listing, latest.offset), (saved.at, 12));
}

#[test]
fn a_check_names_each_object_that_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    let url = format!("file://{}/store", home.path().display());
    let objects = Objects::new(Env::real(), &Place::parse(&url).unwrap(), "main", 3).unwrap();
    let folder = home.path().join("folder");
    for (path, bytes) in database(&SimRandom::new(1), 2) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let saved = objects.save(4, &folder, None).unwrap();
    assert_eq!(objects.verify(&saved.at).unwrap(), (saved.clone(), vec![]));
    let names: Vec<_> = saved.listing.files.iter().map(|row| &row.object).collect();
    let object = |at: usize| home.path().join("store/main/00003").join(names[at]);
    fs::remove_file(object(0)).unwrap();
    let mut bytes = fs::read(object(1)).unwrap();
    bytes[0] ^= 1;
    fs::write(object(1), bytes).unwrap();
    let (_, findings) = objects.verify(&saved.at).unwrap();
    assert_eq!(
        findings,
        [
            format!("{url}/main/00003/{} is missing", names[0]),
            format!("{url}/main/00003/{} does not match its SHA-256", names[1]),
        ]
    );
}

#[test]
fn only_new_files_are_uploaded() {
    let (random, store) = (SimRandom::new(3), FaultyStore::good());
    let mut files = database(&random, 3);
    let first = save(&store, 7, &files, None).unwrap();
    files.remove(&block(2));
    files.insert(block(5), bytes(&random, 1000));
    files.insert("MANIFEST".to_owned(), bytes(&random, 1000));
    // The next owner goes on from what it loaded.
    let (store, seen) = watched(&store);
    let second = save(&store, 9, &files, Some(&first)).unwrap();
    assert_eq!((second.listing.epoch, second.listing.number), (9, 2));
    let mut written = BTreeSet::new();
    for (verb, object) in seen.lock().unwrap().drain(..) {
        if verb == Verb::Put {
            let name = object.strip_prefix("a/b/main/00003/").unwrap();
            assert!(written.insert(name.to_owned()), "{name} is written twice");
        }
    }
    let object = |path: &str| second.listing.row(path).unwrap().object.clone();
    let wanted = [
        object(&block(5)),
        object("MANIFEST"),
        second.at.object.clone(),
    ];
    assert_eq!(written, BTreeSet::from(wanted));
    assert!(
        written
            .iter()
            .all(|name| name.starts_with("0000000000000009/"))
    );
    for path in [block(3).as_str(), "FORMAT", "METADATA"] {
        assert_eq!(second.listing.row(path), first.listing.row(path));
    }
    // Both are there.
    for (saved, has_block) in [(&first, true), (&second, false)] {
        let disk = SimDisk::new();
        load(&disk, &store, saved).unwrap();
        assert_eq!(read(&disk, DIR).contains_key(&block(2)), has_block);
    }
}

#[test]
fn two_owners_never_write_one_object() {
    let (random, store) = (SimRandom::new(4), FaultyStore::good());
    let files = database(&random, 1);
    let base = save(&store, 7, &files, None).unwrap();
    let mut saved = Vec::new();
    for epoch in [8, 9] {
        let mut files = files.clone();
        // The same number of a block for other bytes.
        files.insert(block(4), bytes(&random, 1000));
        files.insert("MANIFEST".to_owned(), bytes(&random, 1000));
        saved.push((save(&store, epoch, &files, Some(&base)).unwrap(), files));
    }
    for (saved, files) in saved {
        let disk = SimDisk::new();
        load(&disk, &store, &saved).unwrap();
        assert_eq!(read(&disk, DIR), files);
    }
}

#[test]
fn what_is_wrong_with_a_directory_is_mended() {
    let (random, store) = (SimRandom::new(5), FaultyStore::good());
    let mut files = database(&random, 3);
    files.remove("METADATA");
    let saved = save(&store, 7, &files, None).unwrap();
    let mut damages = vec![
        (block(9), Some(b"extra".to_vec())),
        (format!("{}.new", block(2)), Some(b"unfinished".to_vec())),
        ("METADATA".to_owned(), Some(b"of another database".to_vec())),
        ("MANIFEST.new".to_owned(), Some(b"unfinished".to_vec())),
    ];
    for (path, good) in &files {
        let mut wrong = good.clone();
        wrong[good.len() / 2] ^= 1;
        let longer = [&good[..], b"x"].concat();
        let shorter = good[..good.len() - 1].to_vec();
        let bad = [
            None,
            Some(wrong),
            Some(longer),
            Some(shorter),
            Some(Vec::new()),
        ];
        damages.extend(bad.map(|bad| (path.clone(), bad)));
    }
    for (path, bad) in damages {
        let disk = SimDisk::new();
        write(&disk, DIR, &files);
        let at = Path::new(DIR).join(&path);
        let _ = disk.remove(&at);
        if let Some(bytes) = &bad {
            disk.create(&at, 0).unwrap();
            disk.set_bytes(&at, bytes.clone()).unwrap();
        }
        let (store, seen) = watched(&store);
        load(&disk, &store, &saved).unwrap();
        let mut found = read(&disk, DIR);
        // The engine's own, and replaced when it is needed.
        found.remove("MANIFEST.new");
        assert_eq!(found, files, "{path}");
        // The listing, FORMAT, and the file.
        let requests = seen.lock().unwrap().len();
        assert!(requests <= 3, "{path}: {requests} requests");
    }
}

#[test]
fn a_directory_as_it_should_be_is_left_alone() {
    let (random, store) = (SimRandom::new(6), FaultyStore::good());
    let files = database(&random, 3);
    let saved = save(&store, 7, &files, None).unwrap();
    let disk = SimDisk::new();
    write(&disk, DIR, &files);
    let alien = Path::new(DIR).join("blocks/notes.txt");
    disk.create(&alien, 1).unwrap();
    let before = disk.trace().len();
    let (store, seen) = watched(&store);
    load(&disk, &store, &saved).unwrap();
    // Folders that are there are made durable again.
    let mut changes = disk.trace().into_iter().skip(before);
    assert!(changes.all(|op| op == Op::SyncDir));
    assert_eq!(seen.lock().unwrap().len(), 1, "only the listing is read");
    assert!(disk.bytes(&alien).is_ok());
}

#[test]
fn the_directory_of_a_local_server_is_refused() {
    let (random, store) = (SimRandom::new(7), FaultyStore::good());
    let saved = save(&store, 7, &database(&random, 1), None).unwrap();
    let other = database(&random, 2);
    let disk = SimDisk::new();
    write(&disk, DIR, &other);
    let log = Path::new(DIR).join("wal");
    disk.create_dir_all(&log).unwrap();
    // Without segments it is no log.
    load(&disk.kill(), &store, &saved).unwrap();
    disk.create(&log.join("segment-0000000000000001.wal"), 9)
        .unwrap();
    let refused = load(&disk, &store, &saved).unwrap_err();
    assert!(
        matches!(refused, CheckpointError::LocalLog { .. }),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("has a log of its own"),
        "{refused}"
    );
    assert_eq!(read(&disk, DIR), other);
    // Nor is it saved.
    let refused = objects(&disk, &store)
        .save(8, Path::new(DIR), None)
        .unwrap_err();
    assert!(
        matches!(refused, CheckpointError::LocalLog { .. }),
        "{refused}"
    );
}

#[test]
fn a_directory_in_use_is_refused() {
    let (random, store) = (SimRandom::new(8), FaultyStore::good());
    let saved = save(&store, 7, &database(&random, 1), None).unwrap();
    let other = database(&random, 2);
    let disk = SimDisk::new();
    write(&disk, DIR, &other);
    let held = disk.lock(&Path::new(DIR).join("LOCK")).unwrap();
    let refused = load(&disk, &store, &saved).unwrap_err();
    assert!(
        matches!(refused, CheckpointError::InUse { .. }),
        "{refused}"
    );
    assert_eq!(read(&disk, DIR), other);
    drop(held);
    load(&disk, &store, &saved).unwrap();
}

#[test]
fn what_is_no_checkpoint_of_this_tablet_is_refused() {
    let (random, store) = (SimRandom::new(9), FaultyStore::good());
    let (disk, files) = (SimDisk::new(), database(&random, 1));
    let saved = save(&store, 7, &files, None).unwrap();
    let tablet = |cluster, tablet| Objects::new(disk.env(1), &prefix(&store), cluster, tablet);
    write(&disk, FOLDER, &files);
    for objects in [tablet("other", 3), tablet("main", 4)].map(Result::unwrap) {
        let refused = objects
            .save(8, Path::new(FOLDER), Some(&saved))
            .unwrap_err();
        assert!(
            refused.to_string().contains("tablet 3 of cluster \"main\""),
            "{refused}"
        );
        // The listing under the name of another.
        let theirs = objects.save(8, Path::new(FOLDER), None).unwrap();
        let place = world::place(&store);
        let copied = latewood_offsite::run(async {
            let whose = prefix(&store).below(match theirs.listing.cluster.as_str() {
                "main" => "main/00004",
                _ => "other/00003",
            });
            let bytes = whose.get(&theirs.at.object, 1 << 20).await?.unwrap();
            place.put(&theirs.at.object, bytes).await
        });
        copied.unwrap();
        let refused = load(&disk, &store, &theirs).unwrap_err();
        assert!(
            matches!(refused, CheckpointError::OtherTablet { .. }),
            "{refused}"
        );
    }
    for name in ["", ".hidden", "a/b", "a b", &"x".repeat(101)] {
        let refused = tablet(name, 3).unwrap_err();
        assert!(
            matches!(refused, CheckpointError::Name { .. }),
            "{name}: {refused}"
        );
    }
    let absent = ListingRef {
        object: "0000000000000007/CHECKPOINT-0000000000000009.00".to_owned(),
        content: Content::of(b""),
    };
    let refused = objects(&disk, &store).find(&absent).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("CHECKPOINT-0000000000000009.00: the address in --objects may be"),
        "{refused}"
    );
    assert!(!refused.is_temporary());
    disk.remove(&Path::new(FOLDER).join("FORMAT")).unwrap();
    let refused = objects(&disk, &store)
        .save(8, Path::new(FOLDER), None)
        .unwrap_err();
    assert!(
        matches!(refused, CheckpointError::NoDatabase { .. }),
        "{refused}"
    );
    assert_eq!(place_of(Path::new(""), "LATEST"), None);
}

#[test]
fn a_web_server_is_not_written_to() {
    let (disk, web) = (SimDisk::new(), Place::parse("https://host/a").unwrap());
    let objects = Objects::new(disk.env(1), &web, "main", 3).unwrap();
    let refused = objects.save(8, Path::new(FOLDER), None).unwrap_err();
    assert!(!refused.is_temporary(), "{refused}");
    assert!(
        refused.to_string().contains("for restore only"),
        "{refused}"
    );
}
