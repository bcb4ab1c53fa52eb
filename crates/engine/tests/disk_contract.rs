//! The words of `io`, held against every disk: one set of tests, run on the
//! machine's file system, written by system calls and through mappings, and on
//! the simulated one.

use crate::disk_support::{Layer, with_layer};
use latewood_engine::ErrorKind;
use latewood_engine::io::directory::{open_directory, open_existing};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::io::{Disk, Env, File};
use std::io::{self, ErrorKind as IoKind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// The real disk with every file made and opened for many small writes.
#[derive(Debug)]
struct Mapped;

impl Layer for Mapped {
    fn open_to_write(&self, under: &dyn Disk, path: &Path) -> io::Result<Arc<dyn File>> {
        under.open_mapped(path)
    }

    fn create(&self, under: &dyn Disk, path: &Path, len_bytes: u64) -> io::Result<Arc<dyn File>> {
        match len_bytes {
            0 => under.create(path, 0),
            _ => under.reserve(path, len_bytes),
        }
    }
}

/// Runs a test on every disk, each in a directory of its own.
fn on_all(test: impl Fn(&Env, &Path)) {
    let real = tempfile::tempdir().unwrap();
    test(&Env::real(), real.path());
    let mapped = tempfile::tempdir().unwrap();
    test(&with_layer(Env::real(), Mapped), mapped.path());
    let sim = SimDisk::new();
    sim.create_dir_all(Path::new("/sim/root")).unwrap();
    test(&sim.env(1), Path::new("/sim/root"));
}

#[test]
fn what_is_synced_again_is_as_it_was() {
    on_all(|env, root| {
        let path = root.join("file");
        let file = env.disk.create(&path, 9_000_000).unwrap();
        let bytes: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
        file.write_at(&bytes, 0).unwrap();
        let again = env.disk.open_to_write(&path).unwrap();
        again.sync_again().unwrap();
        let mut found = vec![0; bytes.len()];
        again.read_at(&mut found, 0).unwrap();
        assert!(found == bytes);
    });
}

#[test]
fn a_new_file_is_all_zeros_and_takes_writes_anywhere() {
    on_all(|env, root| {
        let path = root.join("file");
        let file = env.disk.create(&path, 10_000).unwrap();
        let mut bytes = vec![1; 10_000];
        file.read_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, vec![0; 10_000]);
        file.write_at(b"front", 0).unwrap();
        file.write_at(b"over the end", 9_995).unwrap();
        file.write_at(b"behind", 12_000).unwrap();
        file.sync().unwrap();
        let again = env.disk.open(&path).unwrap();
        assert_eq!(again.len_bytes().unwrap(), 12_006);
        let mut bytes = vec![1; 12_006];
        again.read_at(&mut bytes, 0).unwrap();
        let mut expected = vec![0; 12_006];
        expected[..5].copy_from_slice(b"front");
        expected[9_995..10_007].copy_from_slice(b"over the end");
        expected[12_000..].copy_from_slice(b"behind");
        assert_eq!(bytes, expected);
    });
}

#[test]
fn writes_through_one_handle_show_through_another() {
    on_all(|env, root| {
        let path = root.join("file");
        let writer = env.disk.create(&path, 4096).unwrap();
        let reader = env.disk.open(&path).unwrap();
        let mut bytes = [0; 3];
        for offset in [0, 511, 4093] {
            writer.write_at(b"abc", offset).unwrap();
            reader.read_at(&mut bytes, offset).unwrap();
            assert_eq!(&bytes, b"abc");
        }
    });
}

#[test]
fn what_is_opened_to_read_is_not_written() {
    on_all(|env, root| {
        let path = root.join("file");
        env.disk.create(&path, 8).unwrap();
        let file = env.disk.open(&path).unwrap();
        file.write_at(b"x", 0).unwrap_err();
        file.truncate(4).unwrap_err();
        file.sync().unwrap();
        let file = env.disk.open_to_write(&path).unwrap();
        file.write_at(b"x", 0).unwrap();
    });
}

#[test]
fn reads_past_the_end_say_so() {
    on_all(|env, root| {
        let file = env.disk.create(&root.join("file"), 8).unwrap();
        let mut bytes = [0; 4];
        for offset in [5, 8, 9, u64::from(u32::MAX)] {
            let error = file.read_at(&mut bytes, offset).unwrap_err();
            assert_eq!(error.kind(), IoKind::UnexpectedEof, "at {offset}");
        }
        file.read_at(&mut [], 8).unwrap();
    });
}

#[test]
fn reads_that_were_announced_are_as_any() {
    on_all(|env, root| {
        let path = root.join("file");
        let file = env.disk.create(&path, 0).unwrap();
        file.write_at(b"some bytes", 5_000).unwrap();
        let file = env.disk.open(&path).unwrap();
        for (offset, len_bytes) in [(5_000, 10), (0, 0), (9_000, 100), (u64::MAX, u64::MAX)] {
            file.will_read(offset, len_bytes);
        }
        let mut found = [0; 10];
        file.read_at(&mut found, 5_000).unwrap();
        assert_eq!(&found, b"some bytes");
    });
}

#[test]
fn a_file_that_there_is_no_room_for_leaves_its_name_free() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, path) = (Env::real().disk, dir.path().join("file"));
    assert!(disk.reserve(&path, 1 << 62).is_err());
    assert!(disk.list(dir.path()).unwrap().is_empty());
    assert_eq!(
        disk.reserve(&path, 4096).unwrap().len_bytes().unwrap(),
        4096
    );
}

#[test]
fn names_are_taken_moved_and_removed() {
    on_all(|env, root| {
        let [a, b, c] = ["a", "b", "c"].map(|name| root.join(name));
        env.disk.create(&b, 2).unwrap();
        env.disk.create(&a, 1).unwrap();
        assert_eq!(env.disk.list(root).unwrap(), ["a", "b"]);
        let taken = env.disk.create(&a, 1).unwrap_err();
        assert_eq!(taken.kind(), IoKind::AlreadyExists);
        env.disk.rename(&a, &c).unwrap();
        env.disk.rename(&c, &b).unwrap();
        env.disk.sync_dir(root).unwrap();
        assert_eq!(env.disk.list(root).unwrap(), ["b"]);
        assert_eq!(env.disk.open(&b).unwrap().len_bytes().unwrap(), 1);
        let held = env.disk.open(&b).unwrap();
        env.disk.remove(&b).unwrap();
        assert!(env.disk.list(root).unwrap().is_empty());
        assert_eq!(held.len_bytes().unwrap(), 1, "open handles go on");
        for error in [
            env.disk.open(&b).unwrap_err(),
            env.disk.remove(&b).unwrap_err(),
            env.disk.rename(&b, &a).unwrap_err(),
            env.disk.list(&root.join("no/dir")).unwrap_err(),
        ] {
            assert_eq!(error.kind(), IoKind::NotFound);
        }
    });
}

#[test]
fn a_second_name_is_the_same_file() {
    on_all(|env, root| {
        let [a, b, c] = ["a", "b", "c"].map(|name| root.join(name));
        let file = env.disk.create(&a, 3).unwrap();
        env.disk.link(&a, &b).unwrap();
        file.write_at(b"xyz", 0).unwrap();
        let mut bytes = [0; 3];
        env.disk.open(&b).unwrap().read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"xyz");
        assert_eq!(
            env.disk.link(&a, &b).unwrap_err().kind(),
            IoKind::AlreadyExists
        );
        assert_eq!(
            env.disk.link(&c, &root.join("d")).unwrap_err().kind(),
            IoKind::NotFound
        );
        env.disk.remove(&a).unwrap();
        env.disk.sync_dir(root).unwrap();
        assert_eq!(env.disk.list(root).unwrap(), ["b"]);
        assert_eq!(env.disk.open(&b).unwrap().len_bytes().unwrap(), 3);
    });
}

#[test]
fn a_file_is_cut_before_its_first_write_only() {
    on_all(|env, root| {
        let path = root.join("file");
        let file = env.disk.create(&path, 100).unwrap();
        file.write_at(b"x", 0).unwrap();
        assert_eq!(file.truncate(10).unwrap_err().kind(), IoKind::InvalidInput);
        let file = env.disk.open_to_write(&path).unwrap();
        assert_eq!(file.truncate(101).unwrap_err().kind(), IoKind::InvalidInput);
        file.truncate(10).unwrap();
        assert_eq!(file.len_bytes().unwrap(), 10);
        file.write_at(b"yy", 9).unwrap();
        assert_eq!(file.len_bytes().unwrap(), 11);
    });
}

/// By the operator, who should not: it is a failed write, not the end of the process.
#[test]
fn a_mapped_file_that_is_cut_from_outside_takes_no_more_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let file = Env::real().disk.reserve(&path, 1 << 20).unwrap();
    file.write_at(b"front", 0).unwrap();
    let outside = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    outside.set_len(4096).unwrap();
    let refused = file.write_at(&[1; 10_000], 0).unwrap_err();
    assert!(refused.to_string().contains("truncated"), "{refused}");
}

/// Its last page still takes writes: they are in no file.
#[test]
fn a_mapped_file_that_is_cut_inside_a_page_is_not_synced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let file = Env::real().disk.reserve(&path, 1 << 20).unwrap();
    file.write_at(b"front", 0).unwrap();
    file.sync().unwrap();
    let outside = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    outside.set_len(5).unwrap();
    file.write_at(b"behind", 5).unwrap();
    let refused = file.sync().unwrap_err();
    assert!(refused.to_string().contains("truncated"), "{refused}");
}

#[test]
fn directories_are_made_with_their_parents() {
    on_all(|env, root| {
        let deep = root.join("one/two/three");
        env.disk.create_dir_all(&deep).unwrap();
        env.disk.create_dir_all(&deep).unwrap();
        assert!(env.disk.list(&deep).unwrap().is_empty());
        env.disk.create(&deep.join("file"), 0).unwrap();
    });
}

#[test]
fn a_lock_has_one_holder_until_it_is_dropped() {
    on_all(|env, root| {
        let path = root.join("LOCK");
        let lock = env.disk.lock(&path).unwrap();
        let refused = env.disk.lock(&path).unwrap_err();
        assert_eq!(refused.kind(), IoKind::WouldBlock);
        drop(lock);
        env.disk.lock(&path).unwrap();
    });
}

#[test]
fn writers_of_one_file_may_be_many_threads() {
    on_all(|env, root| {
        let path = root.join("file");
        let file = env.disk.create(&path, 64 * 1024).unwrap();
        thread::scope(|scope| {
            for worker in 0..4_u8 {
                let file = &file;
                scope.spawn(move || {
                    for block in 0..64_u64 {
                        let offset = (block * 4 + u64::from(worker)) * 256;
                        file.write_at(&[worker + 1; 256], offset).unwrap();
                    }
                });
            }
        });
        let mut bytes = vec![0; 64 * 1024];
        file.read_at(&mut bytes, 0).unwrap();
        for (block, bytes) in bytes.chunks(256).enumerate() {
            assert_eq!(bytes, [block as u8 % 4 + 1; 256]);
        }
    });
}

#[test]
fn syncs_amid_the_writes_lose_none_of_them() {
    const LEN: usize = 1024 * 1024;
    const PIECE: usize = 300;
    on_all(|env, root| {
        let path = root.join("file");
        let file = env.disk.create(&path, LEN as u64).unwrap();
        let byte = |at: usize| (at / PIECE % 251) as u8 + 1;
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for at in (0..LEN - PIECE).step_by(PIECE) {
                    file.write_at(&[byte(at); PIECE], at as u64).unwrap();
                    if at % (500 * PIECE) == 0 {
                        file.sync().unwrap();
                    }
                }
            });
            while !writer.is_finished() {
                file.sync().unwrap();
            }
        });
        file.sync().unwrap();
        // Behind what was synced, too.
        file.write_at(b"late", 5).unwrap();
        file.sync().unwrap();
        let mut expected: Vec<u8> = (0..LEN).map(byte).collect();
        let end = (LEN - PIECE).div_ceil(PIECE) * PIECE;
        expected[end..].fill(0);
        expected[5..9].copy_from_slice(b"late");
        for file in [file, env.disk.open(&path).unwrap()] {
            let mut bytes = vec![0; LEN];
            file.read_at(&mut bytes, 0).unwrap();
            assert!(bytes == expected, "{}", path.display());
        }
    });
}

#[test]
fn a_database_directory_is_opened_by_one_at_a_time() {
    on_all(|env, root| {
        let dir = root.join("data/base");
        let guard = open_directory(env, &dir).unwrap();
        assert_eq!(guard.log_dir(), dir.join("wal"));
        let refused = open_directory(env, &dir).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Locked);
        assert!(refused.to_string().contains("data/base"), "{refused}");
        drop(guard);
        open_directory(env, &dir).unwrap();
    });
}

#[test]
fn who_only_reads_a_directory_waits_for_who_holds_it() {
    on_all(|env, root| {
        let dir = root.join("data");
        let guard = open_directory(env, &dir).unwrap();
        let refused = open_existing(env, &dir).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Locked);
        drop(guard);
        let reader = open_existing(env, &dir).unwrap();
        let refused = open_directory(env, &dir).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Locked);
        drop(reader);
        open_directory(env, &dir).unwrap();
    });
}

#[test]
fn other_formats_are_refused_in_words() {
    on_all(|env, root| {
        let cases = [
            ("latewood directory format 2\n", ErrorKind::Unsupported, "2"),
            (
                "latewood directory format \n",
                ErrorKind::Corrupt,
                "damaged",
            ),
            ("", ErrorKind::Corrupt, "damaged"),
            ("\u{1F333}", ErrorKind::Corrupt, "damaged"),
        ];
        for (index, (text, kind, word)) in cases.into_iter().enumerate() {
            let dir = root.join(index.to_string());
            env.disk.create_dir_all(&dir).unwrap();
            let file = env.disk.create(&dir.join("FORMAT"), 0).unwrap();
            file.write_at(text.as_bytes(), 0).unwrap();
            let refused = open_directory(env, &dir).unwrap_err();
            assert_eq!(refused.kind(), kind, "{text}");
            assert!(refused.to_string().contains(word), "{refused}");
        }
    });
}
