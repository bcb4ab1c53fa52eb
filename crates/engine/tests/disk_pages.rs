//! Pages that a real file system does not give to a mapping: btrfs without space,
//! and a block that cannot be read. Each test runs itself again in a mount namespace
//! with a small btrfs; that takes root and mkfs.btrfs.

use latewood_engine::io::{Disk, disk::RealDisk};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = "LATEWOOD_TEST_BTRFS";
/// The status of the script where there is no such file system.
const CANNOT_MOUNT: i32 = 77;
const PIECE: usize = 64 * 1024;
const FILE_BYTES: u64 = 8 << 20;

/// The directory with `image` and, mounted from it, `fs`, inside the test that runs
/// again; outside, the outcome of that one is the outcome of this one.
fn on_btrfs(test: &str) -> Option<PathBuf> {
    if let Some(root) = std::env::var_os(ROOT) {
        return Some(root.into());
    }
    if std::env::var("LEFT_OUT").is_ok_and(|tools| tools.split(' ').any(|tool| tool == "btrfs")) {
        return None;
    }
    let root = tempfile::tempdir().unwrap();
    let script = format!(
        "cd \"${ROOT}\" && mkdir fs && truncate -s 128m image && PATH=$PATH:/usr/sbin:/sbin &&
         mkfs.btrfs -q image && mount -o loop,compress=no image fs || exit {CANNOT_MOUNT}
         exec \"$@\""
    );
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(ROOT, root.path())
        .status();
    let code = status.unwrap().code();
    // 1 is that of `unshare`.
    assert!(
        !matches!(code, Some(1 | CANNOT_MOUNT)),
        "this machine does not mount a btrfs; LEFT_OUT=btrfs leaves this test out"
    );
    assert_eq!(code, Some(0));
    None
}

fn run(program: &str, args: &[&str], root: &Path) {
    let status = Command::new(program).args(args).current_dir(root).status();
    assert!(status.unwrap().success(), "{program} {args:?}");
}

/// A file of nothing but `byte`, durable.
fn make_file(path: &Path, byte: u8) {
    let file = RealDisk.create(path, FILE_BYTES).unwrap();
    for at in (0..FILE_BYTES).step_by(PIECE) {
        file.write_at(&[byte; PIECE], at).unwrap();
    }
    file.sync().unwrap();
}

#[test]
fn a_mapped_file_without_space_fails_the_write() {
    let Some(root) = on_btrfs("disk_pages::a_mapped_file_without_space_fails_the_write") else {
        return;
    };
    let path = root.join("fs/file");
    make_file(&path, 1);
    // Its blocks are needed twice: a write to one takes another.
    run("cp", &["--reflink=always", "fs/file", "fs/copy"], &root);
    let mut rest = std::fs::File::create(root.join("fs/rest")).unwrap();
    while rest.write_all(&[7; 4096]).is_ok() {}
    rest.sync_all().unwrap();
    let file = RealDisk.open_mapped(&path).unwrap();
    let mut pieces = (0..FILE_BYTES).step_by(PIECE);
    let refused = pieces.find_map(|at| {
        let written = file.write_at(&[2; PIECE], at);
        written.and_then(|()| file.sync()).err()
    });
    assert_eq!(refused.unwrap().kind(), ErrorKind::StorageFull);
    let mut bytes = vec![0; PIECE];
    file.read_at(&mut bytes, FILE_BYTES - PIECE as u64).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 1), "what was not written");
}

#[test]
fn a_page_that_cannot_be_read_fails_the_write() {
    let Some(root) = on_btrfs("disk_pages::a_page_that_cannot_be_read_fails_the_write") else {
        return;
    };
    let path = root.join("fs/file");
    make_file(&path, 0xa5);
    run("umount", &["fs"], &root);
    // The file system notices by its checksums.
    let image = root.join("image");
    let mut bytes = std::fs::read(&image).unwrap();
    let mut harmed = 0;
    for block in bytes.chunks_mut(4096) {
        if block.iter().all(|&byte| byte == 0xa5) {
            block[100] = 0;
            harmed += 1;
        }
    }
    assert_eq!(harmed, FILE_BYTES / 4096);
    std::fs::write(&image, bytes).unwrap();
    run("mount", &["-o", "loop", "image", "fs"], &root);
    let file = RealDisk.open_mapped(&path).unwrap();
    let refused = file.write_at(b"a part of a page", 5000).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(5), "EIO: {refused}");
    let mut bytes = [0; 16];
    file.read_at(&mut bytes, 5000).unwrap_err();
}
