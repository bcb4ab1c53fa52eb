//! A broker in memory that answers what a test says.

use super::super::login::log_in;
use super::*;
use crate::kafka::options::{Login, Mechanism, Password};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac, pbkdf2};
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a broker makes of a request, by its key and its bytes behind the header's numbers: all
/// that it sends.
type Answer = Box<dyn FnMut(i16, i32, &[u8]) -> Vec<u8> + Send>;

struct Broker {
    answer: Answer,
    request: Vec<u8>,
    unread: VecDeque<u8>,
}

impl Read for Broker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.unread.read(buffer)
    }
}

impl Write for Broker {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.request.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let request = mem::take(&mut self.request);
        let mut head = &request[..];
        assert_eq!(head.get_i32() as usize, request.len() - 4);
        let (key, _version, id) = (head.get_i16(), head.get_i16(), head.get_i32());
        self.unread.extend((self.answer)(key, id, head));
        Ok(())
    }
}

impl Stream for Broker {
    fn set_deadline(&mut self, _: Instant) {}

    fn wait(&mut self, _: Instant) -> io::Result<bool> {
        Ok(true)
    }

    fn is_quiet(&self) -> bool {
        self.unread.is_empty()
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A frame with its length before it.
fn framed(id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.put_i32(i32::try_from(body.len() + 4).unwrap());
    frame.put_i32(id);
    frame.put_slice(body);
    frame
}

/// The versions of Kafka 4.1, as far as they matter, of requests other than `lacks`.
fn versions(lacks: Option<ApiKey>) -> Vec<u8> {
    let keys = [
        (ApiKey::Produce, 0, 13),
        (ApiKey::Fetch, 4, 17),
        (ApiKey::Metadata, 0, 13),
        (ApiKey::SaslHandshake, 0, 1),
        (ApiKey::SaslAuthenticate, 0, 2),
    ];
    let keys: Vec<_> = keys.iter().filter(|row| Some(row.0) != lacks).collect();
    let mut body = vec![0, 0, u8::try_from(keys.len()).unwrap() + 1];
    for (key, min, max) in keys {
        body.put_i16(*key as i16);
        body.put_i16(*min);
        body.put_i16(*max);
        body.put_u8(0);
    }
    body.extend([0; 5]); // no throttling, no tagged fields
    body
}

/// A connection to a broker that tells its versions and answers the rest so.
fn connect_without(lacks: Option<ApiKey>, mut answer: Answer) -> Result<Connection> {
    let broker = Broker {
        answer: Box::new(move |key, id, request| {
            if key == ApiKey::ApiVersions as i16 {
                return framed(id, &versions(lacks));
            }
            answer(key, id, request)
        }),
        request: Vec::new(),
        unread: VecDeque::new(),
    };
    Connection::new("b:9092", Box::new(broker), soon())
}

fn connect(answer: impl FnMut(i16, i32, &[u8]) -> Vec<u8> + Send + 'static) -> Connection {
    connect_without(None, Box::new(answer)).unwrap()
}

/// What a client makes of these bytes instead of the answer to a request.
fn ask<R: Ask + Default>(bytes: impl Fn(i32) -> Vec<u8> + Send + 'static) -> Result<R::Answer> {
    connect(move |_, id, _| bytes(id)).ask(&R::default(), soon(), None)
}

fn metadata(bytes: impl Fn(i32) -> Vec<u8> + Send + 'static) -> Result<MetadataResponse> {
    ask::<MetadataRequest>(bytes)
}

/// An answer to Metadata 13: one broker and one topic without partitions.
fn metadata_body() -> Vec<u8> {
    let mut body = vec![0; 5]; // no tagged fields, no throttling
    body.extend([2, 0, 0, 0, 7, 2, b'h', 0, 0, 0x23, 0x84, 0, 0]); // broker 7 at h:9092
    body.extend([0, 0, 0, 0, 7]); // no name of the cluster, its controller
    body.extend([2, 0, 0, 2, b't']); // topic t
    body.extend([9; 16]);
    body.extend([0, 1, 0, 0, 0, 0, 0]); // not internal, no partitions, no rights, no tagged fields
    body.extend([0, 0, 0]); // no error, no tagged fields
    body
}

#[test]
fn an_answer_is_decoded() {
    let answer = metadata(|id| framed(id, &metadata_body())).unwrap();
    let broker = &answer.brokers[0];
    assert_eq!(
        (*broker.node_id, &*broker.host, broker.port),
        (7, "h", 9092)
    );
    assert_eq!(answer.topics[0].topic_id.into_bytes(), [9; 16]);
}

#[test]
fn what_is_no_answer_is_an_error_in_words() {
    let far = |length: i32| length.to_be_bytes().to_vec();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            "its length is 1213486160 bytes",
        ),
        // An alert of TLS.
        (vec![0x15, 3, 3, 0, 2, 2, 70], "a port of TLS"),
        (far(i32::MAX), "its length is 2147483647 bytes"),
        (far(-1), "its length is -1 bytes"),
        (vec![], "failed to fill whole buffer"),
        (vec![0, 0], "failed to fill whole buffer"),
        // Four mebibytes are claimed, three bytes come.
        (
            [far(4 << 20), vec![0, 0, 0]].concat(),
            "unexpected end of file",
        ),
        (
            framed(99, &metadata_body()),
            "it belongs to request 99, not to 2",
        ),
        (vec![0, 0, 0, 0], "the answer to Metadata"),
    ];
    for (bytes, reason) in cases {
        let error = metadata(move |_| bytes.clone()).unwrap_err();
        let is_said = |text: &String| text.contains(reason) && text.contains("b:9092");
        assert!(
            matches!(&error, KafkaError::Unknown(text) if is_said(text)),
            "{error}"
        );
    }
}

/// Before a request nothing was done, so nothing is unknown.
#[test]
fn a_broker_that_ends_the_first_answer_is_unavailable() {
    let broker = Broker {
        answer: Box::new(|_, id, _| framed(id, &versions(None))[..20].to_vec()),
        request: Vec::new(),
        unread: VecDeque::new(),
    };
    let error = Connection::new("b:9092", Box::new(broker), soon())
        .err()
        .unwrap();
    assert!(matches!(&error, KafkaError::Unavailable(text) if text.contains("ApiVersions")));
}

#[test]
fn a_request_that_the_broker_does_not_know_is_not_sent() {
    let never: Answer = Box::new(|_, _, _| panic!("it was sent"));
    let mut connection = connect_without(Some(ApiKey::Metadata), never).unwrap();
    let error = connection
        .ask(&MetadataRequest::default(), soon(), None)
        .unwrap_err();
    let is_said = |text: &str| text.contains("does not support versions 10..13 of Metadata");
    assert!(
        matches!(&error, KafkaError::Refused(text) if is_said(text)),
        "{error}"
    );
}

/// An allocation for as many elements as are claimed would end the process.
#[test]
fn a_length_is_not_believed() {
    for at in 0..metadata_body().len() {
        for claimed in [
            &[0xff, 0xff, 0xff, 0xff, 0x7f][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xff, 0xff, 3],
        ] {
            let _ = metadata(move |id| {
                let mut body = metadata_body();
                body.splice(at..=at, claimed.iter().copied());
                framed(id, &body)
            });
        }
    }
    // 65,537 brokers in a frame that has the bytes for them.
    let many = |id| {
        framed(
            id,
            &[&[0, 0, 0, 0, 0, 0x82, 0x80, 4][..], &[0; 1 << 20]].concat(),
        )
    };
    assert!(metadata(many).is_err());
}

#[test]
fn changed_bytes_never_panic() {
    for at in 0..metadata_body().len() {
        for value in 0..=u8::MAX {
            let _ = metadata(move |id| {
                let mut body = metadata_body();
                body[at] = value;
                framed(id, &body)
            });
        }
    }
}

#[test]
fn records_are_longer_than_what_else_is_answered() {
    let fetched = |id: i32, bytes: usize| {
        let mut body = vec![0; 11]; // no tagged fields, no throttling, no error, no session
        body.extend([2, 2, b't', 2]);
        body.extend([0; 30]); // partition 0, no error, three offsets
        body.push(0); // no transactions
        body.put_i32(-1);
        for shift in [0, 7, 14] {
            let more = if shift < 14 { 0x80 } else { 0 };
            body.push(((bytes + 1) >> shift & 0x7f) as u8 | more);
        }
        body.extend(vec![5; bytes]);
        body.extend([0, 0, 0]);
        framed(id, &body)
    };
    let answer = ask::<FetchRequest>(move |id| fetched(id, 1_000_000)).unwrap();
    let records = answer.responses[0].partitions[0].records.as_ref().unwrap();
    assert_eq!(records.len(), 1_000_000);
    let cut = ask::<FetchRequest>(move |id| {
        let mut frame = fetched(id, 1_000_000);
        frame.truncate(500_000);
        frame[..4].copy_from_slice(&499_996_i32.to_be_bytes());
        frame
    });
    assert!(matches!(cut, Err(KafkaError::Unknown(_))));
}

/// A broker that knows this password, and signs with `signs` in its place.
fn scram_broker(known: &'static str, signs: &'static str) -> Connection {
    let (first, challenge) = (Arc::new(Mutex::new(String::new())), "IX,s=AAAA,i=4096");
    let keys = |password: &str| {
        let (rounds, mut salted) = (NonZeroU32::new(4096).unwrap(), [0; 32]);
        let salt = [0; 3];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            rounds,
            &salt,
            password.as_bytes(),
            &mut salted,
        );
        hmac::Key::new(hmac::HMAC_SHA256, &salted)
    };
    connect(move |key, id, request| {
        if key == ApiKey::SaslHandshake as i16 {
            return framed(id, &[0, 0, 0, 0, 0, 0]);
        }
        // The client's name, tagged fields, and the length of the message end the header.
        let text = String::from_utf8_lossy(&request[12..request.len() - 1]).into_owned();
        let mut first = first.lock().unwrap();
        let (code, said) = if let Some(bare) = text.strip_prefix("n,,") {
            *first = bare.to_owned();
            let nonce = bare.split_once("r=").unwrap().1;
            (0, format!("r={nonce}{challenge}"))
        } else {
            let nonce = first.split_once("r=").unwrap().1;
            let (unproven, proof) = text.split_once(",p=").unwrap();
            let signed = format!("{first},r={nonce}{challenge},{unproven}");
            let client_key = hmac::sign(&keys(known), b"Client Key");
            let stored = digest::digest(&digest::SHA256, client_key.as_ref());
            let stored = hmac::Key::new(hmac::HMAC_SHA256, stored.as_ref());
            let signature = hmac::sign(&stored, signed.as_bytes());
            let proof = BASE64.decode(proof).unwrap();
            let shown = proof.iter().zip(signature.as_ref()).map(|(a, b)| a ^ b);
            if shown.eq(client_key.as_ref().iter().copied()) {
                let server_key = hmac::sign(&keys(signs), b"Server Key");
                let server_key = hmac::Key::new(hmac::HMAC_SHA256, server_key.as_ref());
                let signature = hmac::sign(&server_key, signed.as_bytes());
                (0, format!("v={}", BASE64.encode(signature)))
            } else {
                (58, String::new())
            }
        };
        let mut body = vec![0, 0, code, 0, u8::try_from(said.len()).unwrap() + 1];
        body.put_slice(said.as_bytes());
        body.put_i64(60_000); // how long the session lasts
        body.put_u8(0);
        framed(id, &body)
    })
}

#[test]
fn both_sides_prove_that_they_know_the_password() {
    let login = Login {
        mechanism: Mechanism::ScramSha256,
        user: "me".to_owned(),
        password: Password::new("s3cret"),
    };
    let mut connection = scram_broker("s3cret", "s3cret");
    log_in(&mut connection, &login, soon()).unwrap();
    assert!(connection.expires.is_some());
    for (known, signs, reason) in [
        ("other", "other", "SaslAuthenticationFailed"),
        ("s3cret", "other", "the broker does not know the password"),
    ] {
        let error = log_in(&mut scram_broker(known, signs), &login, soon()).unwrap_err();
        let is_said = |text: &str| text.contains(reason) && !text.contains("s3cret");
        assert!(
            matches!(&error, KafkaError::Refused(text) if is_said(text)),
            "{error}"
        );
    }
}

#[test]
fn a_mechanism_that_the_broker_lacks_is_refused_with_those_it_has() {
    let login = Login {
        mechanism: Mechanism::Plain,
        user: "me".to_owned(),
        password: Password::new("s3cret"),
    };
    let answer = |count: i32| {
        let mut body = vec![0, 33];
        body.put_i32(count);
        for name in ["GSSAPI", "SCRAM-SHA-512"] {
            body.put_i16(name.len() as i16);
            body.put_slice(name.as_bytes());
        }
        body
    };
    let mut connection = connect(move |_, id, _| framed(id, &answer(2)));
    let error = log_in(&mut connection, &login, soon()).unwrap_err();
    let is_said = |text: &str| text.contains("supported are GSSAPI, SCRAM-SHA-512");
    assert!(
        matches!(&error, KafkaError::Refused(text) if is_said(text)),
        "{error}"
    );
    let mut liar = connect(move |_, id, _| framed(id, &answer(i32::MAX)));
    let error = log_in(&mut liar, &login, soon()).unwrap_err();
    assert!(matches!(error, KafkaError::Unavailable(_)), "{error}");
}
