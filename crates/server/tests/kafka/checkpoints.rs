//! Checkpoints that are asked for, and what one leaves that was killed.

use crate::{BROKERS, World, all_brokers, wipe};
use latewood_cluster::kafka::client::connect;
use latewood_cluster::kafka::options::Given;
use latewood_cluster::kafka::{Kafka, Partition};
use latewood_cluster::topic::log_name;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::PoisonError;

#[test]
fn a_checkpoint_is_saved_when_asked_for_and_its_failure_told() {
    let world = World::new("asked");
    assert!(world.init().status.success());
    let node = world.serve("a");
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 1"), ":1");
    assert_eq!(node.ask("SAVE"), "+OK");
    let info = node.ask("INFO latewood");
    for wanted in ["checkpoints:1", "checkpoints_failed:0"] {
        assert!(info.contains(wanted), "{info}");
    }
    // A folder that is no folder.
    let objects = world.folder.path().join("objects");
    let saved = world.folder.path().join("saved");
    std::fs::rename(&objects, &saved).unwrap();
    std::fs::write(&objects, "").unwrap();
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 2"), ":2");
    let refused = node.ask("SAVE");
    assert!(
        refused.starts_with("-ERR cannot save a checkpoint: "),
        "{refused}"
    );
    let info = node.ask("INFO latewood");
    assert!(!info.contains("checkpoint_last_error:none"), "{info}");
    // The log has what no checkpoint holds, and the next one has it too.
    std::fs::remove_file(&objects).unwrap();
    std::fs::rename(&saved, &objects).unwrap();
    assert_eq!(node.ask("SAVE"), "+OK");
    let info = node.ask("INFO latewood");
    assert!(info.contains("checkpoint_last_error:none"), "{info}");
    // The file system is unmounted, and the folder below it is empty.
    std::fs::rename(&objects, &saved).unwrap();
    std::fs::create_dir(&objects).unwrap();
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 3"), ":3");
    let refused = node.ask("SAVE");
    assert!(refused.contains("is gone"), "{refused}");
    std::fs::remove_dir_all(&objects).unwrap();
    std::fs::rename(&saved, &objects).unwrap();
    assert_eq!(node.ask("SAVE"), "+OK");
    node.kill();
    wipe(&world.dir("a"));
    let node = world.serve("b");
    assert!(node.sum().ends_with("+3"));
    node.kill();
}

#[test]
fn a_directory_in_use_and_what_a_killed_checkpoint_left_do_no_harm() {
    let world = World::new("left");
    assert!(world.init().status.success());
    let gathered = world.dir("a").join("checkpoint");
    std::fs::create_dir_all(gathered.join("blocks")).unwrap();
    for left in ["LOCK", "MANIFEST"] {
        std::fs::write(gathered.join(left), "left").unwrap();
    }
    let node = world.serve("a");
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 1"), ":1");
    let (status, said) = world.serve("a").end();
    assert!(
        status.code() == Some(1) && said.contains("in use by another process"),
        "{said}"
    );
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 2"), ":2");
    assert_eq!(node.ask("SAVE"), "+OK");
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
}

#[test]
fn records_that_are_deleted_by_hand_are_noticed_and_saved_at_once() {
    let world = World::new("deleted");
    assert!(world.init().status.success());
    let mut node = world.serve("a");
    for at in 0..5 {
        let wanted = format!(":{at}");
        assert_eq!(node.ask(&format!("TS.INCRBY sum 1 TIMESTAMP {at}")), wanted);
    }
    let (address, kafka) = connect(&world.url, Given::default()).unwrap();
    let partition = Partition {
        topic: log_name(&address.name),
        number: 0,
    };
    let (_, end) = kafka.bounds(&partition).unwrap();
    kafka.trim(&partition, end).unwrap();
    node.says("records that are needed were deleted from the log");
    node.says("checkpoint saved");
    assert!(node.figure("checkpoints") > 0);
    node.kill();
    wipe(&world.dir("a"));
    let node = world.serve("b");
    let sum = node.sum();
    assert!(sum.ends_with("+5"), "{sum}");
    node.kill();
}

#[test]
fn saves_that_wait_for_brokers_take_no_reader_threads() {
    let _alone = BROKERS.write().unwrap_or_else(PoisonError::into_inner);
    let world = World::alone("waits");
    assert!(world.init().status.success());
    let node = world.serve("a");
    assert_eq!(node.ask("TS.INCRBY sum 1 TIMESTAMP 1"), ":1");
    all_brokers("pause");
    let waiting = [(); 8].map(|()| {
        let mut stream = TcpStream::connect(&node.address).unwrap();
        stream.write_all(b"PING\r\nSAVE\r\n").unwrap();
        BufReader::new(stream)
    });
    let line = |mut reader: BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (line, reader)
    };
    // SAVE is run before the reply to PING is sent.
    let waiting = waiting.map(line);
    let running = node.figure("long_reads_running") + node.figure("long_reads_waiting");
    all_brokers("resume");
    assert_eq!(running, 0);
    for (pong, reader) in waiting {
        assert_eq!((&*pong, &*line(reader).0), ("+PONG\r\n", "+OK\r\n"));
    }
    node.kill();
}
