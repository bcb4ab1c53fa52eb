//! The bytes of envelopes: versions 1 to 3 are read for ever, and nothing else is taken for them.

use latewood_cluster::envelope::{
    Body, Checkpoint, Claimant, Envelope, Fault, Hello, KIND_SKIPPED, NAME_BYTES_MAX,
    PAYLOAD_BYTES_MAX, State, VALUE_BYTES_MAX,
};
use latewood_cluster::node::{Addresses, Member, NodeId};
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
        n: None,
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
        // The next version has the same fields, and so has the one after it; but for claims.
        let bytes = of_version(2, bytes);
        assert_eq!(Envelope::decode(&bytes), Ok(envelope.clone()));
        if !matches!(envelope, Envelope::Epoch { .. }) {
            let bytes = of_version(3, bytes);
            assert_eq!(envelope.encode(), Some(bytes.clone()), "{envelope:?}");
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        }
    }
    let skipped = record(
        AT,
        Body::Skipped {
            kind: 200,
            payload: b"later",
        },
    );
    let golden = head("c8").replace("4e01", "4e03") + "00000000" + "6c61746572";
    let bytes = skipped.encode().unwrap();
    assert_eq!(hex(&bytes[..bytes.len() - 4]), golden);
    assert_eq!(Envelope::decode(&bytes), Ok(skipped));
}

/// What version 3 has that those before have not.
#[test]
fn the_bytes_of_claims_with_n_and_of_hellos_are_these() {
    let claim = |n: &str| {
        "4c57454e03020000ffffffffffffffff".to_owned()
            + n
            + "000000000000000000000000"
            + "30313233343536373839616263646566"
            + "03000000"
            + "6e333a36333739"
    };
    let hello = "4c57454e030600000700000000000000".to_owned()
        + "00000000000000007011010000000000"
        + "00000000"
        + "30313233343536373839616263646566"
        + &"ab".repeat(20)
        + "0102000000000000"
        + "0300000000000000"
        + "01"
        + "0700"
        + "6e333a36333739"
        + "0000"
        + "0400"
        + "683a3830"
        + "0300"
        + "302e31";
    let cases = [
        (claim_with(None), claim(&"ff".repeat(8))),
        (claim_with(Some(300)), claim("2c01000000000000")),
        (claim_with(Some(0)), claim("0000000000000000")),
        (Envelope::Hello(said()), hello),
    ];
    for (envelope, golden) in cases {
        let bytes = envelope.encode().unwrap();
        assert_eq!(hex(&bytes[..bytes.len() - 4]), golden, "{envelope:?}");
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
    }
    // Older versions have neither.
    let bytes = |envelope: Envelope<'_>| envelope.encode().unwrap();
    for version in [1, 2] {
        let claim = of_version(version, bytes(claim_with(Some(300))));
        assert_eq!(Envelope::decode(&claim), Err(Fault::Malformed));
        let hello = of_version(version, bytes(Envelope::Hello(said())));
        assert_eq!(Envelope::decode(&hello), Err(Fault::Malformed));
        // There 0 is no n.
        let claim = of_version(version, bytes(claim_with(Some(0))));
        assert_eq!(Envelope::decode(&claim), Ok(claim_with(None)));
    }
}

fn claim_with(n: Option<u64>) -> Envelope<'static> {
    let Envelope::Epoch {
        after, claimant, ..
    } = claim("n3:6379".to_owned())
    else {
        unreachable!("it is a claim");
    };
    Envelope::Epoch { after, n, claimant }
}

fn said() -> Hello {
    Hello {
        nonce: *b"0123456789abcdef",
        by: Member {
            addresses: Addresses {
                redis: "n3:6379".to_owned(),
                reads: String::new(),
                http: "h:80".to_owned(),
            },
            version: "0.1".to_owned(),
            applied: 70_000,
            is_caught_up: true,
            digests: [0x201, 3],
            ..Member::new(NodeId([0xab; 20]))
        },
        owns: Some(7),
        leaves: false,
    }
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
    for kind in [0, 7, KIND_SKIPPED - 1] {
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

    let hello = |len: usize, applied: u64| {
        let mut hello = said();
        hello.by.addresses.reads = "a".repeat(len);
        hello.by.applied = applied;
        Envelope::Hello(hello).encode()
    };
    assert!(hello(NAME_BYTES_MAX, 0).is_some());
    for (len, applied) in [(NAME_BYTES_MAX + 1, 0), (1 << 16, 0), (0, 1 << 63)] {
        assert_eq!(hello(len, applied), None);
    }

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
    bytes[4] = 4;
    assert_eq!(Envelope::decode(&bytes), Err(Fault::Malformed));
    let mut later = summed(bytes);
    assert_eq!(Envelope::decode(&later), Err(Fault::Newer(4)));
    later[4] = 0;
    assert_eq!(Envelope::decode(&summed(later)), Err(Fault::Malformed));
}

#[test]
fn no_altered_or_shortened_envelope_is_taken() {
    let hello = Envelope::Hello(said());
    let claim = claim("n3".to_owned());
    for envelope in [data(3, b"groups"), checkpoint("p/m"), claim, hello] {
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
        kind in prop_oneof![0_u8..8, 128_u8..130],
        fill in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 30..150),
    ) {
        let mut bytes = b"LWEN\x03".to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&fill);
        let bytes = summed(bytes);
        if let Ok(envelope) = Envelope::decode(&bytes) {
            prop_assert_eq!(envelope.encode(), Some(bytes.clone()));
        }
    }
}
