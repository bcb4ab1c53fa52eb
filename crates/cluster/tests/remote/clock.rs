//! How long the oldest group has waited for Kafka, which takes one record at a time.

use super::{kafka, partition};
use crate::hooked::Hooked;
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::KafkaError;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::owner::Owner;
use latewood_cluster::remote::{Bounds, TabletLog};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_engine::{Position, RemoteLog};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

#[test]
fn the_time_that_the_oldest_group_waits_goes_on_over_records() {
    // A record is taken for each permit.
    let (permit, permits): (_, Receiver<()>) = channel();
    let kafka = Hooked::appends(&kafka(1, Faults::default()), move |append| {
        let permitted = permits.recv();
        permitted.map_err(|_| KafkaError::Unavailable("no more permits".to_owned()))?;
        append()
    });
    permit.send(()).unwrap();
    let claimant = Claimant {
        nonce: [1; 16],
        node: 1,
        address: String::new(),
    };
    let cancel = Arc::new(Cancel::default());
    let retry = Retry::new(Arc::clone(&cancel));
    let claimed = Owner::claim(kafka, partition(), None, &claimant, retry).unwrap();
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
