//! Brokers that hang: one that says nothing, and a leader that says nothing more while another is
//! elected.

use super::*;
use crate::kafka::Kafka;
use bytes::{Buf, BufMut};
use kafka_protocol::messages::ApiKey;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

const TOPIC: &str = "t";
/// Where the broker that lives puts records.
const OFFSET: u64 = 7;

/// Two brokers: the first hangs, the second says who leads.
struct Brokers {
    addresses: [SocketAddr; 2],
    /// The number and the epoch of the leader, as the second broker says.
    leader: Arc<Mutex<(i32, i32)>>,
    /// A record came to a broker, or a question for the leader to the second.
    came: Receiver<(usize, ApiKey)>,
}

impl Brokers {
    fn start() -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = [0, 1].map(|number: usize| listeners[number].local_addr().unwrap());
        let (leader, (tell, came)) = (Arc::new(Mutex::new((0, 1))), channel());
        for (number, listener) in listeners.into_iter().enumerate() {
            let (leader, tell) = (Arc::clone(&leader), tell.clone());
            thread::spawn(move || {
                for socket in listener.incoming() {
                    let (leader, tell) = (Arc::clone(&leader), tell.clone());
                    thread::spawn(move || {
                        serve(number, socket.unwrap(), addresses, &leader, &tell)
                    });
                }
            });
        }
        Self {
            addresses,
            leader,
            came,
        }
    }

    fn elect(&self, number: i32, epoch: i32) {
        *self.leader.lock().unwrap() = (number, epoch);
    }

    /// Returns when something of this kind came to a broker.
    fn wait_for(&self, number: usize, key: ApiKey) {
        while self.came.recv().unwrap() != (number, key) {}
    }
}

/// Answers the requests of a connection; the first broker no record.
fn serve(
    number: usize,
    mut socket: TcpStream,
    addresses: [SocketAddr; 2],
    leader: &Mutex<(i32, i32)>,
    tell: &Sender<(usize, ApiKey)>,
) {
    let mut length = [0; 4];
    while socket.read_exact(&mut length).is_ok() {
        let mut request = vec![0; u32::from_be_bytes(length) as usize];
        socket.read_exact(&mut request).unwrap();
        let mut head = &request[..];
        let key = ApiKey::try_from(head.get_i16()).unwrap();
        let (_version, id) = (head.get_i16(), head.get_i32());
        let answer = match key {
            ApiKey::ApiVersions => versions(),
            ApiKey::Metadata => metadata(addresses, *leader.lock().unwrap()),
            ApiKey::Produce => produced(),
            other => panic!("{other:?}"),
        };
        let _ = tell.send((number, key));
        if number == 1 || key != ApiKey::Produce {
            socket.write_all(&framed(id, &answer)).unwrap();
        }
    }
}

/// A frame; its body begins with the tagged fields of the header, except that of versions.
fn framed(id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.put_i32(i32::try_from(body.len() + 4).unwrap());
    frame.put_i32(id);
    frame.put_slice(body);
    frame
}

/// Metadata 12 and Produce 11 are spoken.
fn versions() -> Vec<u8> {
    let mut body = vec![0, 0, 3];
    for (key, version) in [(ApiKey::Metadata, 12), (ApiKey::Produce, 11)] {
        body.put_i16(key as i16);
        body.put_i16(version);
        body.put_i16(version);
        body.put_u8(0);
    }
    body.extend([0; 5]); // no throttling, no tagged fields
    body
}

fn metadata(addresses: [SocketAddr; 2], (leader, epoch): (i32, i32)) -> Vec<u8> {
    let mut body = vec![0; 5]; // no tagged fields, no throttling
    body.put_u8(3);
    for (number, address) in (0..).zip(addresses) {
        body.put_i32(number);
        body.put_u8(10);
        body.put_slice(b"127.0.0.1");
        body.put_i32(address.port().into());
        body.extend([0, 0]); // no rack, no tagged fields
    }
    body.extend([0, 0, 0, 0, 0]); // no name of the cluster, its controller
    body.extend([2, 0, 0, 2, TOPIC.as_bytes()[0]]);
    body.extend([9; 16]);
    body.extend([0, 2, 0, 0, 0, 0, 0, 0]); // not internal, one partition, no error, its number
    body.put_i32(leader);
    body.put_i32(epoch);
    body.extend([1, 1, 1, 0]); // no replicas, in sync or away, no tagged fields
    body.extend([0; 6]); // no rights, no tagged fields
    body
}

fn produced() -> Vec<u8> {
    let mut body = vec![0, 2, 2, TOPIC.as_bytes()[0]]; // no tagged fields, one topic
    body.extend([2, 0, 0, 0, 0, 0, 0]); // one partition, its number, no error
    body.put_u64(OFFSET);
    body.extend([0; 16]); // when it was appended, the first offset
    body.extend([1, 0, 0, 0]); // no errors of records, no message, no tagged fields
    body.extend([0; 5]); // no throttling, no tagged fields
    body
}

#[test]
fn a_leader_that_hangs_is_left_when_another_was_elected() {
    let brokers = Brokers::start();
    let address = format!("kafka://{}/m", brokers.addresses[1]);
    let access = Access {
        // Not what ends the wait.
        limit: Duration::from_secs(24 * 3600),
        ..Access::default()
    };
    let mut client = Client::new(&address.parse().unwrap(), &access).unwrap();
    client.watch_every = Duration::from_millis(1);
    let topic = TOPIC.to_owned();
    let partition = Partition { topic, number: 0 };
    thread::scope(|scope| {
        let appending = scope.spawn(|| client.append(&partition, b"a"));
        brokers.wait_for(0, ApiKey::Produce);
        // A broker that has fallen behind, and one that knows nothing else, change nothing.
        for (number, epoch) in [(1, 0), (0, 1)] {
            brokers.elect(number, epoch);
            (0..3).for_each(|_| brokers.wait_for(1, ApiKey::Metadata));
            assert!(!appending.is_finished());
        }
        brokers.elect(1, 2);
        let error = appending.join().unwrap().unwrap_err();
        // The record may be there: it is looked for, and not taken for lost.
        assert!(matches!(error, KafkaError::Unknown(_)), "{error}");
        let later = format!("{} leads the partition since", brokers.addresses[1]);
        assert!(error.to_string().contains(&later), "{error}");
    });
    assert_eq!(client.append(&partition, b"a"), Ok(OFFSET));
    let produced = brokers
        .came
        .try_iter()
        .filter(|came| came.1 == ApiKey::Produce);
    assert_eq!(produced.collect::<Vec<_>>(), [(1, ApiKey::Produce)]);
}

#[test]
fn who_accepts_and_never_answers_does_not_hold_a_call_for_ever() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("kafka://{}/m", silent.local_addr().unwrap());
    let access = Access {
        limit: Duration::from_millis(200),
        ..Access::default()
    };
    let client = Client::new(&address.parse().unwrap(), &access).unwrap();
    let topic = "m".to_owned();
    let partition = Partition { topic, number: 0 };
    let nothing_done = |error: &KafkaError| matches!(error, KafkaError::Unavailable(_));
    let error = client.append(&partition, b"a").unwrap_err();
    assert!(nothing_done(&error), "{error}");
    let error = client.describe("m").unwrap_err();
    assert!(nothing_done(&error), "{error}");
    // Who, what, why.
    let address = silent.local_addr().unwrap().to_string();
    let text = error.to_string();
    for wanted in [
        address.as_str(),
        "Metadata was not sent",
        "ApiVersions",
        "timed out",
    ] {
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn a_broker_that_is_down_is_named_with_what_it_was_to_be_asked() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unused.local_addr().unwrap().to_string();
    drop(unused);
    let url = format!("kafka://{address}/m");
    let client = Client::new(&url.parse().unwrap(), &Access::default()).unwrap();
    let text = client.describe("m").unwrap_err().to_string();
    let wanted = format!("no broker answers: {address}: connecting: ");
    assert!(text.contains(&wanted), "{text}");
    assert!(text.ends_with("; Metadata was not sent"), "{text}");
}
