//! The bytes of envelopes: version 1 is read for ever, and nothing else is taken for it.

use latewood_cluster::envelope::{
    Body, Checkpoint, Claimant, Envelope, Fault, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, State,
    VALUE_BYTES_MAX,
};
use proptest::prelude::*;

const AT: State = State {
    epoch: Some(7),
    n: 300,
    sequence: 70_000,
};

fn claim(address: String) -> Envelope<'static> {
    let claimant = Claimant {
        nonce: *b"0123456789abcdef",
        node: 3,
        address,
    };
    Envelope::Epoch {
        after: None,
        claimant,
    }
}

fn checkpoint(manifest: &str) -> Envelope<'static> {
    let named = Checkpoint {
        manifest: manifest.to_owned(),
        sha256: [0xab; 32],
        bytes: 1000,
        begin: 5,
        state: State {
            epoch: Some(2),
            n: 1,
            sequence: 4,
        },
    };
    record(AT, Body::Checkpoint(named))
}

fn record(at: State, body: Body<'_>) -> Envelope<'_> {
    Envelope::Record { at, body }
}

fn data(groups: u32, payload: &[u8]) -> Envelope<'_> {
    record(AT, Body::Data { groups, payload })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same bytes with the checksum they should have.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 4);
    let sum = crc_fast::crc32_iscsi(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn the_bytes_of_version_1_are_these() {
    let head = |kind: &str| {
        format!("4c57454e01{kind}0000" /* LWEN, version, kind */)
            + "0700000000000000"
            + "2c01000000000000"
            + "7011010000000000"
    };
    let cases = [
        (
            data(2, b"groups"),
            head("01") + "02000000" + "67726f757073" + "e04c29e1",
        ),
        (
            claim("n3:6379".to_owned()),
            "4c57454e01020000ffffffffffffffff0000000000000000000000000000000000000000".to_owned()
                + "30313233343536373839616263646566"
                + "03000000"
                + "6e333a36333739"
                + "795db60a",
        ),
        (
            checkpoint("p/m"),
            head("03")
                + "00000000"
                + "0500000000000000"
                + "0200000000000000"
                + "0100000000000000"
                + "0400000000000000"
                + "e803000000000000"
                + &"ab".repeat(32)
                + "702f6d"
                + "94ec5a54",
        ),
        (record(AT, Body::Tick), head("04") + "00000000" + "71093088"),
        (
            record(AT, Body::Farewell),
            head("05") + "00000000" + "fc6997f0",
        ),
    ];
    for (envelope, golden) in cases {
        let bytes = envelope.encode().unwrap();
        assert_eq!(hex(&bytes), golden, "{envelope:?}");
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
    }
}

#[test]
fn bounds_are_kept() {
    let longest = vec![1; PAYLOAD_BYTES_MAX];
    let bytes = data(1, &longest).encode().unwrap();
    assert_eq!(bytes.len(), VALUE_BYTES_MAX);
    assert_eq!(Envelope::decode(&bytes), Ok(data(1, &longest)));
    assert!(claim("a".repeat(NAME_BYTES_MAX)).encode().is_some());
    assert!(claim(String::new()).encode().is_some());
    assert!(checkpoint(&"a".repeat(NAME_BYTES_MAX)).encode().is_some());

    let numbers = [
        State { epoch: None, ..AT },
        State {
            epoch: Some(1 << 63),
            ..AT
        },
        State { n: 1 << 63, ..AT },
        State {
            sequence: u64::MAX,
            ..AT
        },
    ];
    for at in numbers {
        assert_eq!(record(at, Body::Tick).encode(), None, "{at:?}");
    }
    let too_long = vec![1; PAYLOAD_BYTES_MAX + 1];
    let refused = [
        data(1, &too_long),
        data(1, b""),
        data(0, b"groups"),
        claim("a".repeat(NAME_BYTES_MAX + 1)),
        checkpoint(&"a".repeat(NAME_BYTES_MAX + 1)),
        checkpoint(""),
    ];
    for envelope in refused {
        assert_eq!(envelope.encode(), None);
    }
}

#[test]
fn a_later_version_is_told_from_damage() {
    let mut bytes = data(1, b"groups").encode().unwrap();
    bytes[4] = 2;
    assert_eq!(Envelope::decode(&bytes), Err(Fault::Malformed));
    let mut later = summed(bytes);
    assert_eq!(Envelope::decode(&later), Err(Fault::Newer(2)));
    later[4] = 0;
    assert_eq!(Envelope::decode(&summed(later)), Err(Fault::Malformed));
}

#[test]
fn no_altered_or_shortened_envelope_is_taken() {
    for envelope in [data(3, b"groups"), checkpoint("p/m"), claim("n3".into())] {
        let bytes = envelope.encode().unwrap();
        for len in 0..bytes.len() {
            assert_eq!(Envelope::decode(&bytes[..len]), Err(Fault::Malformed));
        }
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Envelope::decode(&altered), Err(Fault::Malformed));
        }
    }
}

proptest! {
    #[test]
    fn what_is_decoded_is_encoded_to_the_same(
        kind in 0_u8..7,
        fill in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 30..150),
    ) {
        let mut bytes = b"LWEN\x01".to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&fill);
        let bytes = summed(bytes);
        if let Ok(envelope) = Envelope::decode(&bytes) {
            prop_assert_eq!(envelope.encode(), Some(bytes.clone()));
        }
    }
}
