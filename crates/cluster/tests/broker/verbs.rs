//! Appending, reading and trimming one partition.

use crate::{Cluster, make, read_all};
use latewood_cluster::kafka::client::Client;
use latewood_cluster::kafka::options::Access;
use latewood_cluster::kafka::{Kafka, KafkaError, Partition};
use std::time::Duration;

const NO_WAIT: Duration = Duration::ZERO;

#[test]
fn records_are_read_as_they_were_appended() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let log = make(&client, "read", 3, &[]);
    assert_eq!(client.bounds(&log), Ok((0, 0)));
    let values: Vec<Vec<u8>> = vec![vec![], vec![1], vec![0; 900_000], b"last".to_vec()];
    for (at, value) in values.iter().enumerate() {
        assert_eq!(client.append(&log, value), Ok(at as u64));
    }
    assert_eq!(client.bounds(&log), Ok((0, 4)));
    assert_eq!(read_all(&client, &log), values);
    let last = client.read(&log, 3, 1, NO_WAIT).unwrap();
    assert_eq!((last.records, last.next), (vec![(3, b"last".to_vec())], 4));
}

#[test]
fn a_read_has_at_least_one_record_and_not_many_more_bytes_than_asked_for() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let log = make(&client, "bytes", 3, &[]);
    for _ in 0..10 {
        client.append(&log, &[7; 10_000]).unwrap();
    }
    let one = client.read(&log, 0, 1, NO_WAIT).unwrap();
    assert_eq!(one.records.len(), 1);
    let some = client.read(&log, 0, 35_000, NO_WAIT).unwrap();
    assert!(
        (1..=4).contains(&some.records.len()),
        "{}",
        some.records.len()
    );
    assert_eq!(some.next, some.records.len() as u64);
}

#[test]
fn a_read_at_the_end_waits_for_a_record() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let log = make(&client, "wait", 3, &[]);
    let nothing = client.read(&log, 0, 1000, NO_WAIT).unwrap();
    assert_eq!(
        (nothing.records.len(), nothing.next, nothing.end),
        (0, 0, 0)
    );
    let long = Duration::from_secs(30);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| client.read(&log, 0, 1000, long).unwrap());
        // Its connection is its own: nothing waits for it.
        client.append(&log, b"a").unwrap();
        assert_eq!(reader.join().unwrap().records, [(0, b"a".to_vec())]);
    });
}

#[test]
fn many_threads_append_at_once() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let log = make(&client, "threads", 3, &[]);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (client, log) = (&client, &log);
            scope.spawn(move || {
                (0..20).for_each(|n| {
                    client.append(log, &[thread, n]).unwrap();
                })
            });
        }
    });
    let mut values = read_all(&client, &log);
    values.sort_unstable();
    let expected = (0..8).flat_map(|thread| (0..20).map(move |n| vec![thread, n]));
    assert_eq!(values, expected.collect::<Vec<_>>());
}

#[test]
fn a_partition_is_trimmed_and_what_is_outside_is_named() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let log = make(&client, "trim", 3, &[]);
    for n in 0..10 {
        client.append(&log, &[n]).unwrap();
    }
    client.trim(&log, 4).unwrap();
    client.trim(&log, 2).unwrap();
    assert_eq!(client.bounds(&log), Ok((4, 10)));
    assert_eq!(
        read_all(&client, &log),
        (4..10).map(|n| vec![n]).collect::<Vec<_>>()
    );
    let outside = KafkaError::OutOfRange { begin: 4, end: 10 };
    for from in [0, 3, 11, 1 << 40] {
        assert_eq!(
            client.read(&log, from, 1000, NO_WAIT),
            Err(outside.clone()),
            "{from}"
        );
    }
    assert_eq!(client.trim(&log, 11), Err(outside));
    client.trim(&log, 10).unwrap();
    assert_eq!(client.bounds(&log), Ok((10, 10)));
    assert_eq!(client.append(&log, b"next"), Ok(10));
}

#[test]
fn a_record_larger_than_the_topic_allows_is_refused() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let log = make(&client, "large", 3, &[("max.message.bytes", "2000")]);
    let error = client.append(&log, &[0; 3000]).unwrap_err();
    assert!(
        matches!(&error, KafkaError::Refused(text) if text.contains("TooLarge")),
        "{error}"
    );
    assert_eq!(client.append(&log, &[0; 1000]), Ok(0));
}

#[test]
fn what_is_not_there_is_said_to_be_missing() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let there = make(&client, "missing", 3, &[]);
    let topic = crate::new_name("nothing");
    for absent in [
        Partition { topic, number: 0 },
        Partition { number: 1, ..there },
    ] {
        let missing = |error: KafkaError| matches!(error, KafkaError::NoSuchTopic(_));
        assert!(client.append(&absent, b"a").is_err_and(missing));
        assert!(client.bounds(&absent).is_err_and(missing));
        assert!(client.read(&absent, 0, 1000, NO_WAIT).is_err_and(missing));
        assert!(client.trim(&absent, 0).is_err_and(missing));
    }
}

#[test]
fn without_brokers_nothing_is_done() {
    let address = "kafka://127.0.0.1:1,127.0.0.1:2/tests".parse().unwrap();
    let client = Client::new(&address, &Access::default()).unwrap();
    let topic = "t".to_owned();
    let error = client
        .append(&Partition { topic, number: 0 }, b"a")
        .unwrap_err();
    assert!(
        matches!(&error, KafkaError::Unavailable(text) if text.contains("127.0.0.1:2")),
        "{error}"
    );
}
