//! Replies whole, cut off everywhere, malformed and hostile.

use super::{ReplyError, ReplyKind, Value, parse_reply, skip_reply};

const MIXED: &[u8] = b"*9\r\n+OK\r\n-ERR x\r\n:-12\r\n$3\r\na\r\n\r\n%1\r\n$1\r\nk\r\n~2\r\n#t\r\n_\r\n,1.5\r\n(123456789012345678901234567890\r\n=6\r\ntxt:hi\r\n!5\r\nERR y\r\n";

#[test]
fn every_type_is_read() {
    let expected = Value::Array(vec![
        Value::Simple(b"OK".to_vec()),
        Value::Error(b"ERR x".to_vec()),
        Value::Integer(-12),
        Value::Bulk(b"a\r\n".to_vec()),
        Value::Map(vec![(
            Value::Bulk(b"k".to_vec()),
            Value::Set(vec![Value::Boolean(true), Value::Null]),
        )]),
        Value::Double(1.5),
        Value::BigNumber(b"123456789012345678901234567890".to_vec()),
        Value::Verbatim(*b"txt", b"hi".to_vec()),
        Value::Error(b"ERR y".to_vec()),
    ]);
    assert_eq!(parse_reply(MIXED), Ok(Some((MIXED.len(), expected))));
    assert_eq!(
        skip_reply(MIXED),
        Ok(Some((MIXED.len(), ReplyKind::Success)))
    );
}

#[test]
fn every_prefix_is_incomplete() {
    for len in 0..MIXED.len() {
        assert_eq!(parse_reply(&MIXED[..len]), Ok(None), "tree of {len} bytes");
        assert_eq!(skip_reply(&MIXED[..len]), Ok(None), "end of {len} bytes");
    }
}

#[test]
fn replies_in_a_row_are_counted_by_kind() {
    let mut rest = &b"+OK\r\n-ERR no\r\n:1700000000000\r\n*1\r\n-ERR inside\r\n>1\r\n+x\r\n*-1\r\n$-1\r\n*0\r\n!2\r\nno\r\n"[..];
    let mut kinds = Vec::new();
    while let Some((bytes, kind)) = skip_reply(rest).unwrap() {
        assert_eq!(parse_reply(rest).unwrap().unwrap().0, bytes);
        kinds.push(kind);
        rest = &rest[bytes..];
    }
    use ReplyKind::{Error, Push, Success};
    assert_eq!(
        kinds,
        [
            Success, Error, Success, Success, Push, Success, Success, Success, Error
        ]
    );
    assert!(rest.is_empty());
}

#[test]
fn malformed_replies_are_refused() {
    for (bytes, expected) in [
        (&b"?\r\n"[..], ReplyError::UnknownType(b'?')),
        (b":x\r\n", ReplyError::Malformed),
        (b":\r\n", ReplyError::Malformed),
        (b"$-2\r\n", ReplyError::Malformed),
        (b"*99999999999999999999\r\n", ReplyError::Malformed),
        (b"%18446744073709551615\r\n", ReplyError::Malformed),
        (b"$18446744073709551615\r\n", ReplyError::Malformed),
        (b"*2\r\n*18446744073709551615\r\n", ReplyError::Malformed),
        (b",x\r\n", ReplyError::Malformed),
        (b"#x\r\n", ReplyError::Malformed),
        (b"*1\r\n$x\r\n", ReplyError::Malformed),
    ] {
        assert_eq!(skip_reply(bytes), Err(expected), "{bytes:?}");
    }
    assert_eq!(parse_reply(b"=2\r\nhi\r\n"), Err(ReplyError::Malformed));
    let endless = vec![b'+'; 1024 * 1024];
    assert_eq!(skip_reply(&endless), Err(ReplyError::LineTooLong));
}

#[test]
fn deep_nesting_is_refused_and_skipped_without_recursion() {
    let deep = b"*1\r\n".repeat(1_000_000);
    assert_eq!(parse_reply(&deep), Err(ReplyError::TooDeep));
    assert_eq!(skip_reply(&deep), Ok(None));
    let whole = [&deep[..], b":1\r\n"].concat();
    assert_eq!(
        skip_reply(&whole),
        Ok(Some((whole.len(), ReplyKind::Success)))
    );
}

#[test]
fn a_promised_length_is_only_incomplete() {
    assert_eq!(parse_reply(b"*1000000000\r\n:1\r\n"), Ok(None));
    assert_eq!(parse_reply(b"$1000000000\r\nabc"), Ok(None));
}
