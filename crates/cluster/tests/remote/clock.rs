//! How long the oldest group has waited for Kafka, which takes one record at a time.

use super::{kafka, partition};
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::memory::{Faults, MemoryKafka};
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Topic};
use latewood_cluster::owner::Owner;
use latewood_cluster::remote::{Bounds, TabletLog};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_engine::{Position, RemoteLog};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A cluster that takes a record for each permit.
struct Permitted {
    kafka: Arc<MemoryKafka>,
    permits: Mutex<Receiver<()>>,
}

impl Kafka for Permitted {
    fn create(&self, topic: &NewTopic) -> Result<(), KafkaError> {
        self.kafka.create(topic)
    }

    fn describe(&self, name: &str) -> Result<Topic, KafkaError> {
        self.kafka.describe(name)
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset), KafkaError> {
        self.kafka.bounds(partition)
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset, KafkaError> {
        let permitted = self.permits.lock().unwrap().recv();
        permitted.map_err(|_| KafkaError::Unavailable("no more permits".to_owned()))?;
        self.kafka.append(partition, value)
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Records, KafkaError> {
        self.kafka.read(partition, from, bytes_max, wait)
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<(), KafkaError> {
        self.kafka.trim(partition, before)
    }
}

#[test]
fn the_time_that_the_oldest_group_waits_goes_on_over_records() {
    let (permit, permits) = channel();
    let kafka = Permitted {
        kafka: kafka(1, Faults::default()),
        permits: Mutex::new(permits),
    };
    permit.send(()).unwrap();
    let claimant = Claimant {
        nonce: [1; 16],
        node: 1,
        address: String::new(),
    };
    let cancel = Arc::new(Cancel::default());
    let retry = Retry::new(Arc::clone(&cancel));
    let claimed = Owner::claim(Arc::new(kafka), partition(), None, &claimant, retry).unwrap();
    let bounds = Bounds::default();
    let log =
        TabletLog::start(claimed, bounds, None, Arc::clone(&cancel), Box::new(|_| {})).unwrap();
    let waited_ms = || log.stats().unsynced_ms;
    assert_eq!(waited_ms(), None);

    // Each is a record of its own. Clocks that would begin anew show less than a few milliseconds.
    let group = vec![0; 600 << 10];
    let mut begun = Vec::new();
    for at in 1..4 {
        log.append(Position(at), &group).unwrap();
        begun.push(Instant::now());
    }
    while begun[2].elapsed() < Duration::from_millis(5) {
        std::thread::yield_now();
    }
    for (at, begun) in (1..).zip(begun) {
        let least_ms = begun.elapsed().as_millis() as u64;
        let waited_ms = waited_ms().unwrap();
        assert!(
            waited_ms >= least_ms,
            "group {at}: {waited_ms} of {least_ms} ms"
        );
        permit.send(()).unwrap();
        log.sync_to(Position(at)).unwrap();
    }
    // What comes after nothing waited begins anew.
    assert_eq!(waited_ms(), None);
    let before = Instant::now();
    log.append(Position(4), &group).unwrap();
    let shown_ms = waited_ms().unwrap();
    assert!(u128::from(shown_ms) <= before.elapsed().as_millis());
    drop(permit);
    cancel.cancel();
}
