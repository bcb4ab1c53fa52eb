//! Local databases made of a log in Kafka and an object store: by `latewood cluster restore` and
//! by backups, beside the server.

use crate::{Node, World, damage, text};
use std::process::Command;

/// Runs a tool that succeeds; what it says.
pub(crate) fn tool(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latewood"));
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

#[test]
fn a_local_database_is_made_beside_the_server() {
    let world = World::new("restore");
    assert!(world.init().status.success());
    let refused = text(&world.restore("early"));
    assert!(refused.contains("the log holds nothing"), "{refused}");
    let node = world.serve("a");
    for at in 0..20 {
        node.ask(&format!("TS.INCRBY sum 1 TIMESTAMP {at}"));
    }
    // The log alone; then files and a log behind them.
    let restored = world.restore("log");
    assert!(restored.status.success(), "{}", text(&restored));
    let said = text(&restored);
    assert!(
        said.contains("0 samples in blocks and 20 more in the log"),
        "{said}"
    );
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
    let cache = world.dir("a").display().to_string();
    let checked = tool(&["check", &cache]);
    assert!(
        checked.contains("the log is in Kafka") && checked.contains("no damage"),
        "{checked}"
    );
    assert!(tool(&["stats", &cache]).contains("in Kafka"));
    let node = world.serve("a");
    for at in 20..40 {
        node.ask(&format!("TS.INCRBY sum 1 TIMESTAMP {at}"));
    }
    let restored = world.restore("both");
    assert!(restored.status.success(), "{}", text(&restored));
    let said = text(&restored);
    assert!(
        said.contains("restored 20 samples in blocks and 20 more in the log"),
        "{said}"
    );
    let not_empty = world.restore("both");
    assert_eq!(not_empty.status.code(), Some(2));
    assert!(
        text(&not_empty).contains("is not empty"),
        "{}",
        text(&not_empty)
    );
    check_stats(&world, &node);
    back_up(&world, &node);
    check_copies(&world);
    // The owner is the owner still.
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 40"), ":40");
    node.kill();
    check_refusals(&world);
}

fn check_stats(world: &World, node: &Node) {
    let stats = text(&world.cluster("stats", &["--json", "--objects", &world.objects()]));
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["checkpoint"]["number"], 2, "{stats}");
    assert_eq!(stats["checkpoint"]["blocks"]["files"], 1, "{stats}");
    assert_eq!(stats["owner"]["address"], node.address, "{stats}");
    let samples = stats["log"]["samples"].as_i64().unwrap();
    assert!((20..=40).contains(&samples), "{stats}");
}

/// Backups by the server: a folder, and an object store.
fn back_up(world: &World, node: &Node) {
    let folder = world.dir("folder").display().to_string();
    tool(&["backup", "--to", &folder, "--server", &node.address]);
    let url = format!("file://{}", world.dir("backup").display());
    tool(&["backup", "--to", &url, "--server", &node.address]);
    let downloaded = world.dir("downloaded").display().to_string();
    tool(&["restore", &url, &downloaded]);
}

fn check_copies(world: &World) {
    for copy in ["log", "both", "folder", "downloaded"] {
        let checked = tool(&["check", &world.dir(copy).display().to_string()]);
        assert!(checked.contains("no damage"), "{copy}: {checked}");
        let local = world.serve_local(copy);
        let sum = local.ask("TS.GET sum");
        let wanted = if copy == "log" { "+20" } else { "+40" };
        assert!(sum.ends_with(wanted), "{copy}: {sum}");
        local.kill();
    }
}

fn check_refusals(world: &World) {
    // A cache is no database of its own.
    let (status, said) = world.serve_local("a").end();
    assert!(
        status.code() == Some(1) && said.contains("cluster restore"),
        "{said}"
    );
    damage(&world.folder.path().join("objects"), "blocks/");
    let damaged = world.restore("damaged");
    assert_eq!(damaged.status.code(), Some(2));
    assert!(text(&damaged).contains("is damaged"), "{}", text(&damaged));
    let (status, _) = world.serve_local("damaged").end();
    assert_eq!(status.code(), Some(1));
    let other = World::alone("unknown");
    let refused = text(&other.restore("x"));
    assert!(refused.contains("no such topic"), "{refused}");
}

/// The commands of the section "Kafka is lost", in their order.
#[test]
fn a_database_comes_back_from_a_checkpoint_alone_and_goes_on_in_a_new_log() {
    let world = World::new("lost");
    assert!(world.init().status.success());
    let node = world.serve("a");
    for at in 0..20 {
        node.ask(&format!("TS.INCRBY sum 1 TIMESTAMP {at}"));
    }
    assert_eq!(node.ask("SAVE"), "+OK");
    node.ask("TS.INCRBY sum 1 TIMESTAMP 20");
    node.kill();
    // From here on nobody asks its log, and the only database in the store needs no name.
    let (objects, dir) = (world.objects(), world.dir("restored").display().to_string());
    let said = tool(&[
        "cluster",
        "restore",
        "--without-log",
        "--objects",
        &objects,
        "--dir",
        &dir,
    ]);
    assert!(said.contains("restored 20 samples"), "{said}");
    assert!(said.contains("of the log is not restored"), "{said}");
    assert!(tool(&["check", &dir]).contains("no damage"));
    // It is served alone meanwhile.
    let local = world.serve_local("restored");
    assert_eq!(local.ask("TS.INCRBY sum 1 TIMESTAMP 30"), ":30");
    let (status, said) = local.stop();
    assert!(status.success(), "{said}");
    let from = ["--from", &dir, "--objects", &objects];
    let used = world.cluster("init", &from);
    assert_eq!(used.status.code(), Some(2));
    assert!(
        text(&used).contains("holds or held records"),
        "{}",
        text(&used)
    );
    let new = World {
        url: format!("{}-new", world.url),
        ..World::alone("new")
    };
    let begun = new.cluster("init", &from);
    assert!(begun.status.success(), "{}", text(&begun));
    let more = ["--log", &new.url, "--objects", &objects];
    for number in 21..23 {
        let node = new.start(&format!("node-{number}"), &more);
        let sum = node.ask(&format!("TS.INCRBY sum 1 TIMESTAMP {}", number * 10));
        assert_eq!(sum, format!(":{}", number * 10));
        assert!(
            node.ask("TS.GET sum")
                .ends_with(&format!("+{}", number + 1))
        );
        assert_eq!(node.ask("SAVE"), "+OK");
        node.kill();
    }
    let checked = new.cluster("check", &["--objects", &objects]);
    assert!(checked.status.success(), "{}", text(&checked));
}

/// As after a topic was deleted and created again, without the hint in the store.
#[test]
fn a_new_log_beside_the_checkpoints_of_another_is_refused_with_the_way_on() {
    let (old, new) = (World::new("old"), World::alone("new"));
    assert!(old.init().status.success() && new.init().status.success());
    let node = old.serve("a");
    node.ask("TS.INCRBY sum 1 TIMESTAMP 1");
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
    let [from, to] = [&old, &new].map(|world| {
        let name = world.url.rsplit_once('/').unwrap().1;
        world.objects();
        world.folder.path().join("objects").join(name)
    });
    std::fs::rename(&from, &to).unwrap();
    std::fs::remove_file(to.join("00000/LATEST")).unwrap();
    let (status, said) = new.serve("a").end();
    assert_eq!(status.code(), Some(1), "{said}");
    for wanted in [
        "CHECKPOINT-",
        "latewood cluster restore --without-log",
        "latewood cluster init --from",
    ] {
        assert!(said.contains(wanted), "{said}");
    }
    // Nobody claimed the log.
    let lines = text(&new.cluster("inspect", &[]));
    assert!(!lines.contains("epoch"), "{lines}");
}
