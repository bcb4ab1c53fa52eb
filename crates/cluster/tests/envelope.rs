//! The bytes of envelopes: versions 1 and 2 are read for ever, and nothing else is taken for them.

use latewood_cluster::envelope::{
    Body, Checkpoint, Claimant, Envelope, Fault, KIND_SKIPPED, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
    State, VALUE_BYTES_MAX,
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
fn the_bytes_of_versions_are_these() {
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
        let bytes = unhex(&golden);
        assert_eq!(Envelope::decode(&bytes), Ok(envelope.clone()));
        // The next version has the same fields.
        let bytes = of_version(2, bytes);
        assert_eq!(envelope.encode(), Some(bytes.clone()), "{envelope:?}");
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
    }
    let skipped = record(
        AT,
        Body::Skipped {
            kind: 200,
            payload: b"later",
        },
    );
    let golden = head("c8").replace("4e01", "4e02") + "00000000" + "6c61746572";
    let bytes = skipped.encode().unwrap();
    assert_eq!(hex(&bytes[..bytes.len() - 4]), golden);
    assert_eq!(Envelope::decode(&bytes), Ok(skipped));
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

fn of_version(version: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[4] = version;
    summed(bytes)
}

#[test]
fn unknown_kinds_are_passed_over_from_128_on() {
    let of_kind = |kind: u8| {
        let mut bytes = record(AT, Body::Tick).encode().unwrap();
        bytes[5] = kind;
        summed(bytes)
    };
    for kind in [KIND_SKIPPED, u8::MAX] {
        let bytes = of_kind(kind);
        let payload = &[][..];
        let body = Body::Skipped { kind, payload };
        assert_eq!(Envelope::decode(&bytes), Ok(record(AT, body)));
        // They came with version 2, and have no groups.
        let old = of_version(1, bytes.clone());
        assert_eq!(Envelope::decode(&old), Err(Fault::Malformed));
        let mut groups = bytes;
        groups[32] = 1;
        assert_eq!(Envelope::decode(&summed(groups)), Err(Fault::Malformed));
    }
    for kind in [0, 6, KIND_SKIPPED - 1] {
        assert_eq!(Envelope::decode(&of_kind(kind)), Err(Fault::Malformed));
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
    bytes[4] = 3;
    assert_eq!(Envelope::decode(&bytes), Err(Fault::Malformed));
    let mut later = summed(bytes);
    assert_eq!(Envelope::decode(&later), Err(Fault::Newer(3)));
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
        kind in prop_oneof![0_u8..7, 128_u8..130],
        fill in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 30..150),
    ) {
        let mut bytes = b"LWEN\x02".to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&fill);
        let bytes = summed(bytes);
        if let Ok(envelope) = Envelope::decode(&bytes) {
            prop_assert_eq!(envelope.encode(), Some(bytes.clone()));
        }
    }
}
