//! A simulated disk, a store in memory, and the files of a database.

use latewood_cluster::checkpoint::{Checkpoint, Objects, Progress, Result};
use latewood_engine::io::sim::{SimDisk, SimRandom};
use latewood_engine::io::{Disk, Random};
use latewood_offsite::Place;
use latewood_offsite::faulty::{FaultyStore, Request, Verb};
use object_store::path::Path as Object;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The files of a database by their paths.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The directory that is loaded.
pub(crate) const DIR: &str = "/cache";
/// The folder that is saved.
pub(crate) const FOLDER: &str = "/checkpoint";

/// The place of all clusters in a store.
pub(crate) fn prefix(store: &FaultyStore) -> Place {
    Place::of(Arc::new(store.clone()), Object::from("a/b"), "x://a/b")
}

/// The place of the tablet of the tests.
pub(crate) fn place(store: &FaultyStore) -> Place {
    prefix(store).below("main/00003")
}

/// The tablet of the tests.
pub(crate) fn objects(disk: &SimDisk, store: &FaultyStore) -> Objects {
    Objects::new(disk.env(1), &prefix(store), "main", 3).unwrap()
}

/// Requests that were made.
type Seen = Arc<Mutex<Vec<(Verb, String)>>>;

/// The same objects, and the list of the requests made from now on.
pub(crate) fn watched(store: &FaultyStore) -> (FaultyStore, Seen) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = seen.clone();
    let store = store.with(move |request: Request<'_>| {
        let object = request.object.to_owned();
        list.lock().unwrap().push((request.verb, object));
        latewood_offsite::faulty::Fault::None
    });
    (store, seen)
}

/// Random bytes, of a length below `bound`.
pub(crate) fn bytes(random: &SimRandom, bound: u64) -> Vec<u8> {
    let length = 1 + random.below(bound);
    (0..length).map(|_| random.next_u64() as u8).collect()
}

/// The path of block `number`.
pub(crate) fn block(number: u64) -> String {
    format!("blocks/block-{number:016x}.blk")
}

/// A database of `blocks` blocks and one series file.
pub(crate) fn database(random: &SimRandom, blocks: u64) -> Files {
    let mut files = Files::new();
    files.insert(
        "FORMAT".to_owned(),
        b"latewood directory format 1\n".to_vec(),
    );
    files.insert("MANIFEST".to_owned(), bytes(random, 500));
    files.insert("METADATA".to_owned(), bytes(random, 500));
    files.insert(
        "series/series-0000000000000001.cat".to_owned(),
        bytes(random, 5000),
    );
    for number in 2..2 + blocks {
        files.insert(block(number), bytes(random, 20_000));
    }
    files
}

/// Makes these the files of a database in a directory, durably.
pub(crate) fn write(disk: &SimDisk, dir: &str, files: &Files) {
    let dir = Path::new(dir);
    for path in read(disk, dir.to_str().unwrap()).keys() {
        disk.remove(&dir.join(path)).unwrap();
    }
    for folder in ["blocks", "series"] {
        disk.create_dir_all(&dir.join(folder)).unwrap();
    }
    for (path, bytes) in files {
        disk.create(&dir.join(path), 0).unwrap();
        disk.set_bytes(&dir.join(path), bytes.clone()).unwrap();
    }
    for folder in ["blocks", "series", ""] {
        disk.sync_dir(dir.join(folder).components().as_path())
            .unwrap();
    }
}

/// All files in a directory and its folders.
pub(crate) fn read(disk: &SimDisk, dir: &str) -> Files {
    let mut files = Files::new();
    for folder in ["", "blocks/", "series/"] {
        let path = format!("{dir}/{folder}");
        for name in disk
            .list(Path::new(path.trim_end_matches('/')))
            .unwrap_or_default()
        {
            let bytes = disk.bytes(Path::new(&format!("{path}{name}"))).unwrap();
            files.insert(format!("{folder}{name}"), bytes);
        }
    }
    files
}

/// Saves these files as the checkpoint after `previous`.
pub(crate) fn save(
    store: &FaultyStore,
    epoch: u64,
    files: &Files,
    previous: Option<&Checkpoint>,
) -> Result<Checkpoint> {
    let disk = SimDisk::new();
    write(&disk, FOLDER, files);
    objects(&disk, store).save(epoch, Path::new(FOLDER), previous)
}

/// Loads a checkpoint to [`DIR`] and checks what it tells of its progress.
pub(crate) fn load(disk: &SimDisk, store: &FaultyStore, from: &Checkpoint) -> Result<Checkpoint> {
    let mut last = Progress::default();
    let loaded = objects(disk, store).load(&from.at, Path::new(DIR), &mut |progress| {
        assert!(
            progress.done_bytes > last.done_bytes,
            "{progress:?} after {last:?}"
        );
        last = progress;
    })?;
    assert_eq!(&loaded, from);
    assert_eq!(last.done_bytes, from.listing.bytes());
    assert_eq!(last.total_bytes, from.listing.bytes());
    Ok(loaded)
}
