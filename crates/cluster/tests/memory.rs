//! The in-memory Kafka: without faults it keeps what the trait says; each fault does what it says.

use latewood_cluster::kafka::memory::{Faults, MemoryKafka};
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Partition, Records};
use std::time::Duration;

fn with_topic(seed: u64) -> (MemoryKafka, Partition) {
    let kafka = MemoryKafka::new(seed, Faults::default());
    let topic = NewTopic {
        name: "t".to_owned(),
        partitions: 2,
        replicas: 3,
        settings: vec![("a".to_owned(), "b".to_owned())],
    };
    kafka.create(&topic).expect("no such topic yet");
    assert!(matches!(kafka.create(&topic), Err(KafkaError::Refused(_))));
    let partition = Partition {
        topic: topic.name,
        number: 1,
    };
    (kafka, partition)
}

fn read(kafka: &MemoryKafka, partition: &Partition, from: u64) -> Result<Records, KafkaError> {
    kafka.read(partition, from, 5, Duration::ZERO)
}

#[test]
fn records_are_read_in_order_in_parts_and_trimmed() {
    let (kafka, partition) = with_topic(1);
    for (offset, value) in (0..).zip(["one", "two", "three"]) {
        assert_eq!(kafka.append(&partition, value.as_bytes()), Ok(offset));
    }
    kafka.leave_out(&partition, 2);
    assert_eq!(kafka.append(&partition, b"x"), Ok(5));
    let parts = [
        (0, vec![(0, "one")], 1),
        (1, vec![(1, "two")], 2),
        (2, vec![(2, "three")], 5),
        (3, vec![(5, "x")], 6),
        (6, vec![], 6),
    ];
    for (from, records, next) in parts {
        let part = read(&kafka, &partition, from).unwrap();
        let values = part.records.into_iter();
        let values: Vec<_> = values
            .map(|(offset, value)| (offset, String::from_utf8(value).unwrap()))
            .collect();
        let records = records
            .into_iter()
            .map(|(at, value)| (at, value.to_owned()));
        assert_eq!((values, part.end), (records.collect(), 6));
        assert_eq!(part.next, next);
    }
    kafka.trim(&partition, 2).unwrap();
    assert_eq!(kafka.bounds(&partition), Ok((2, 6)));
    let outside = Err(KafkaError::OutOfRange { begin: 2, end: 6 });
    assert_eq!(read(&kafka, &partition, 1), outside);
    assert_eq!(read(&kafka, &partition, 7), outside);
    let nowhere = Partition {
        number: 2,
        ..partition
    };
    assert!(matches!(
        kafka.append(&nowhere, b""),
        Err(KafkaError::NoSuchTopic(_))
    ));
}

#[test]
fn each_fault_does_what_it_says() {
    let (kafka, partition) = with_topic(2);
    let always = 1000;
    let faults = |faults: Faults| kafka.set_faults(faults);
    let held = || kafka.records(&partition).len();

    faults(Faults {
        unavailable: always,
        ..Faults::default()
    });
    let refused = kafka.append(&partition, b"a");
    assert!(matches!(refused, Err(KafkaError::Unavailable(_))));
    faults(Faults {
        unanswered: always,
        ..Faults::default()
    });
    let unknown = |answer| matches!(answer, Err(KafkaError::Unknown(_)));
    assert!(unknown(kafka.append(&partition, b"a")));
    assert_eq!(held(), 1);
    faults(Faults {
        lost: always,
        ..Faults::default()
    });
    assert!(unknown(kafka.append(&partition, b"b")));
    kafka.land();
    assert_eq!(held(), 1);
    faults(Faults {
        late: always,
        ..Faults::default()
    });
    assert!(unknown(kafka.append(&partition, b"c")));
    assert_eq!(held(), 1);
    kafka.land();
    assert_eq!(held(), 2);
    faults(Faults {
        doubled: always,
        ..Faults::default()
    });
    assert_eq!(kafka.append(&partition, b"d"), Ok(2));
    kafka.land();
    assert_eq!(held(), 4);
    faults(Faults {
        behind: always,
        ..Faults::default()
    });
    let ends: Vec<u64> = (0..100)
        .map(|_| kafka.bounds(&partition).unwrap().1)
        .collect();
    assert!(ends.iter().all(|end| *end <= 4) && ends.contains(&1));
    faults(Faults::default());

    kafka.set_away(true);
    assert!(matches!(
        kafka.bounds(&partition),
        Err(KafkaError::Unavailable(_))
    ));
    kafka.set_away(false);
    let before = kafka.describe("t").unwrap();
    kafka.recreate("t");
    assert_ne!(kafka.describe("t").unwrap().id, before.id);
    assert_eq!(kafka.bounds(&partition), Ok((0, 0)));
    kafka.delete("t");
    assert!(matches!(
        kafka.describe("t"),
        Err(KafkaError::NoSuchTopic(_))
    ));
}

#[test]
fn what_goes_wrong_follows_from_the_seed() {
    let run = |seed| {
        let (kafka, partition) = with_topic(seed);
        kafka.set_faults(Faults {
            unavailable: 100,
            unanswered: 200,
            lost: 100,
            late: 200,
            doubled: 200,
            behind: 100,
        });
        let answers: Vec<_> = (0..50).map(|n| kafka.append(&partition, &[n])).collect();
        (answers, kafka.records(&partition))
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
