//! Commands, split and damaged in every way. Error texts are the answers of a running Redis 7.4.

use super::{Parsed, Parser};
use crate::resp::{Limits, ProtocolError, encode_command};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    arguments_max: 1024 * 1024,
    argument_bytes_max: 16 * 1024 * 1024,
    command_bytes_max: 64 * 1024 * 1024,
    inline_bytes_max: 64 * 1024,
    authenticated: true,
};

/// A command of the given bytes, and how many of them it takes.
fn command(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let mut parser = Parser::new();
    match parser.parse(bytes, &LIMITS) {
        Ok(Parsed::Command { consumed }) => {
            let args = parser.command().args(bytes).map(<[u8]>::to_vec);
            (args.collect(), consumed)
        }
        other => panic!("{other:?} for {:?}", String::from_utf8_lossy(bytes)),
    }
}

fn outcome(bytes: &[u8]) -> Result<Parsed, ProtocolError> {
    Parser::new().parse(bytes, &LIMITS)
}

fn error_text(bytes: &[u8]) -> String {
    match outcome(bytes) {
        Err(error) => error.to_string(),
        Ok(parsed) => panic!("{parsed:?} for {:?}", String::from_utf8_lossy(bytes)),
    }
}

fn assert_incomplete(bytes: &[u8]) {
    let parsed = outcome(bytes);
    assert!(
        matches!(parsed, Ok(Parsed::Incomplete { missing: 1.. })),
        "{parsed:?}"
    );
}

#[test]
fn a_pipeline_is_parsed_by_calling_again_behind_each_command() {
    let bytes = b"*4\r\n$6\r\nTS.ADD\r\n$3\r\nk:1\r\n$13\r\n1700000000000\r\n$4\r\n21.5\r\nPING\r\n\r\n*0\r\n*1\r\n$0\r\n\r\n*1";
    let (mut parser, mut rest, mut seen) = (Parser::new(), &bytes[..], Vec::new());
    loop {
        match parser.parse(rest, &LIMITS).unwrap() {
            Parsed::Command { consumed } => {
                seen.push(
                    parser
                        .command()
                        .args(rest)
                        .map(<[u8]>::to_vec)
                        .collect::<Vec<_>>(),
                );
                rest = &rest[consumed..];
            }
            Parsed::Empty { consumed } => rest = &rest[consumed..],
            Parsed::Incomplete { missing } => {
                assert_eq!((rest, missing), (&b"*1"[..], 1));
                break;
            }
        }
    }
    let expected: [&[&[u8]]; 3] = [
        &[b"TS.ADD", b"k:1", b"1700000000000", b"21.5"],
        &[b"PING"],
        &[b""],
    ];
    assert_eq!(seen, expected);
}

#[test]
fn missing_bytes_of_an_argument_are_counted() {
    for (bytes, expected) in [(&b"*1\r\n$100\r\n"[..], 102), (b"*1\r\n$100\r\nabc", 99)] {
        assert_eq!(outcome(bytes), Ok(Parsed::Incomplete { missing: expected }));
    }
}

#[test]
fn errors_of_the_array_form_are_those_of_redis() {
    let multibulk = "ERR Protocol error: invalid multibulk length";
    for line in [
        "*x",
        "*",
        "*-0",
        "*+1",
        "*01",
        "* 1",
        "*1 ",
        "*1\n$4",
        "*2147483648",
        "*99999999999999999999999",
    ] {
        assert_eq!(
            error_text(format!("{line}\r\n").as_bytes()),
            multibulk,
            "{line}"
        );
    }
    let bulk = "ERR Protocol error: invalid bulk length";
    for line in [
        "$",
        "$x",
        "$-1",
        "$04",
        "$+4",
        "$ 4",
        "$536870913",
        "$99999999999999999999",
    ] {
        assert_eq!(
            error_text(format!("*1\r\n{line}\r\nPING\r\n").as_bytes()),
            bulk,
            "{line}"
        );
    }
    for (line, got) in [
        ("PING", "P"),
        ("", " "),
        (":4", ":"),
        ("'", "'"),
        ("*1", "*"),
    ] {
        let expected = format!("ERR Protocol error: expected '$', got '{got}'");
        assert_eq!(error_text(format!("*1\r\n{line}\r\n").as_bytes()), expected);
    }
    let long = "1".repeat(64 * 1024);
    assert_eq!(
        error_text(format!("*1{long}").as_bytes()),
        "ERR Protocol error: too big mbulk count string"
    );
    assert_incomplete(format!("*{}", &long[1..]).as_bytes());
    assert_eq!(
        error_text(format!("*1\r\n${long}").as_bytes()),
        "ERR Protocol error: too big bulk count string"
    );
    assert_incomplete(format!("*1\r\n${}", &long[1..]).as_bytes());
    assert_eq!(
        error_text("A".repeat(64 * 1024 + 1).as_bytes()),
        "ERR Protocol error: too big inline request"
    );
    assert_incomplete("A".repeat(64 * 1024).as_bytes());
}

#[test]
fn counts_below_one_are_skipped_without_a_reply() {
    for (bytes, consumed) in [
        (&b"*0\r\n"[..], 4),
        (b"*-1\r\n", 5),
        (b"*-5\r\nx", 5),
        (b"\r\n", 2),
        (b"\n", 1),
        (b"  \r\n", 4),
    ] {
        assert_eq!(outcome(bytes), Ok(Parsed::Empty { consumed }));
    }
}

#[test]
fn bytes_that_redis_does_not_look_at_may_be_anything() {
    assert_eq!(command(b"*1\rX$4\rYPINGxx*"), (vec![b"PING".to_vec()], 14));
}

#[test]
fn limits_hold_and_say_so_before_authentication() {
    let small = Limits {
        arguments_max: 12,
        argument_bytes_max: 20_000,
        command_bytes_max: 30_000,
        ..LIMITS
    };
    let text = |limits: Limits, bytes: &[u8]| {
        Parser::new()
            .parse(bytes, &limits)
            .map_err(|e| e.to_string())
    };
    let error = |text: &str| Err(format!("ERR Protocol error: {text}"));
    assert_eq!(text(small, b"*13\r\n"), error("invalid multibulk length"));
    assert_eq!(
        text(small, b"*12\r\n"),
        Ok(Parsed::Incomplete { missing: 1 })
    );
    assert_eq!(
        text(small, b"*1\r\n$20001\r\n"),
        error("invalid bulk length")
    );
    assert_eq!(
        text(small, b"*1\r\n$20000\r\n"),
        Ok(Parsed::Incomplete { missing: 20_002 })
    );
    let two = [&b"*2\r\n$20000\r\n"[..], &[b'x'; 20_002], b"$20000\r\n"].concat();
    assert_eq!(text(small, &two), error("too big request"));
    assert_eq!(
        text(small, "a ".repeat(13).as_bytes()),
        Ok(Parsed::Incomplete { missing: 1 })
    );
    assert_eq!(
        text(small, format!("{}\n", "a ".repeat(13)).as_bytes()),
        error("invalid multibulk length")
    );

    let stranger = small.before_authentication();
    assert_eq!(
        text(stranger, b"*11\r\n"),
        error("unauthenticated multibulk length")
    );
    assert_eq!(
        text(stranger, b"*1\r\n$16385\r\n"),
        error("unauthenticated bulk length")
    );
    assert_eq!(
        text(stranger, b"*1\r\n$16384\r\n"),
        Ok(Parsed::Incomplete { missing: 16_386 })
    );
}

#[test]
fn a_promised_length_costs_no_memory() {
    let mut parser = Parser::new();
    for promise in [&b"*1048576\r\n"[..], b"*1048576\r\n$16777216\r\n"] {
        parser.parse(promise, &LIMITS).unwrap();
        assert!(parser.command().allocated_bytes() < 1024, "{promise:?}");
        parser = Parser::new();
    }
    assert_eq!(
        outcome(b"*1000000000\r\n"),
        Err(ProtocolError::InvalidMultibulkLength)
    );
}

#[test]
fn memory_of_a_huge_command_is_given_back() {
    let huge = encode(&vec![Vec::new(); 100_000]);
    let mut parser = Parser::new();
    assert_eq!(
        parser.parse(&huge, &LIMITS),
        Ok(Parsed::Command {
            consumed: huge.len()
        })
    );
    assert!(parser.command().allocated_bytes() >= 800_000);
    parser.parse(b"PING\r\n", &LIMITS).unwrap();
    assert!(parser.command().allocated_bytes() < 100_000);
}

/// A parser that restarted at each byte would take 10^11 steps.
#[test]
fn one_byte_at_a_time_is_not_quadratic() {
    let many_small = encode(&vec![b"x".to_vec(); 100_000]);
    let one_large = encode(&[b"SET".to_vec(), vec![b'v'; 1_000_000]]);
    let inline = [&[b'a'; 60_000][..], b"\r\n"].concat();
    for bytes in [many_small, one_large, inline] {
        let mut parser = Parser::new();
        for len in 0..bytes.len() {
            let parsed = parser.parse(&bytes[..len], &LIMITS);
            assert!(
                matches!(parsed, Ok(Parsed::Incomplete { .. })),
                "{parsed:?} at {len}"
            );
        }
        assert_eq!(
            parser.parse(&bytes, &LIMITS),
            Ok(Parsed::Command {
                consumed: bytes.len()
            })
        );
    }
}

#[test]
fn inline_commands_are_split_as_redis_splits_them() {
    for (line, argument) in [
        (&b"ECHO\t\"a b\\n\\x41\\q\\\"\" "[..], &b"a b\nAq\""[..]),
        (b"ECHO 'a\\'b\\n' ", b"a'b\\n"),
        (b"ECHO ab\"c d\"", b"abc d"),
        (b"ECHO \"\"", b""),
        (b"  ECHO ''", b""),
        (b"ECHO \"\\x4\"", b"x4"),
        (b"ECHO \"\\xzz\"", b"xzz"),
        (b"ECHO \"\\xfF\\x0a\"", b"\xff\n"),
        (b"ECHO \"\\a\\b\\t\\r\\\\\"", b"\x07\x08\t\r\\"),
        (b"ECHO \x0b a\x0cb", b"a"),
        (b"ECHO a\0b", b"a\0b"),
    ] {
        for end in [&b"\r\n"[..], b"\n"] {
            let bytes = [line, end].concat();
            let (args, consumed) = command(&bytes);
            assert_eq!((&args[0][..], &args[1][..]), (&b"ECHO"[..], argument));
            assert_eq!(consumed, bytes.len());
        }
    }
    assert_eq!(command(b"PING\rX\r\n").0, [b"PING".to_vec(), b"X".to_vec()]);
}

#[test]
fn unbalanced_quotes_are_refused() {
    for line in [
        "\"abc", "\"abc\"d", "'abc", "'abc'd", "ab\"c", "ab'c d'e", "\"a\\", "\"", "'\\'",
    ] {
        assert_eq!(
            error_text(format!("ECHO {line}\r\n").as_bytes()),
            "ERR Protocol error: unbalanced quotes in request",
            "{line}"
        );
    }
}

#[test]
fn http_is_recognised() {
    for line in [
        "GET / HTTP/1.1",
        "POST / HTTP/1.1",
        "POST",
        "post x",
        "Host:",
        "HOST: a",
        "OPTIONS /x HTTP/1.0",
        "POST /it's",
    ] {
        assert_eq!(
            outcome(format!("{line}\r\n").as_bytes()),
            Err(ProtocolError::Http),
            "{line}"
        );
    }
    for line in ["GET key", "host:x y", "ECHO HTTP/1.1", "GET /key"] {
        command(format!("{line}\r\n").as_bytes());
    }
}

fn encode(args: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, args);
    bytes
}

fn arguments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let argument = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        prop::collection::vec(any::<u8>(), 95..130),
    ];
    prop::collection::vec(argument, 1..14)
}

proptest! {
    #[test]
    fn a_command_is_the_same_at_every_split(args in arguments()) {
        let bytes = encode(&args);
        for split in 0..bytes.len() {
            let mut parser = Parser::new();
            match parser.parse(&bytes[..split], &LIMITS) {
                Ok(Parsed::Incomplete { missing }) => prop_assert!((1..=bytes.len() - split).contains(&missing)),
                other => prop_assert!(false, "{:?} of a prefix", other),
            }
            let parsed = parser.parse(&bytes, &LIMITS);
            prop_assert_eq!(parsed, Ok(Parsed::Command { consumed: bytes.len() }));
            let got: Vec<&[u8]> = parser.command().args(&bytes).collect();
            prop_assert_eq!(&got, &args);
        }
    }

    /// The result does not depend on how the bytes are split.
    #[test]
    fn damaged_bytes_give_the_same_answer_in_pieces(
        mut bytes in arguments().prop_map(|args| encode(&args)),
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&b"*$\r\n0179- \"x"[..])), 1..4),
    ) {
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let whole = outcome(&bytes);
        let mut parser = Parser::new();
        let in_pieces = (0..=bytes.len()).map(|len| parser.parse(&bytes[..len], &LIMITS))
            .find(|parsed| !matches!(parsed, Ok(Parsed::Incomplete { .. })));
        match in_pieces {
            Some(in_pieces) => prop_assert_eq!(in_pieces, whole),
            None => prop_assert!(matches!(whole, Ok(Parsed::Incomplete { .. })), "{:?}", whole),
        }
    }
}
