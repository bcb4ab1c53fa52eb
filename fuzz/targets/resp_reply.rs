//! Replies: skipping and parsing agree on any bytes, and no prefix of a reply is a reply.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::resp::{ReplyError, parse_reply, skip_reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    loop {
        let skipped = skip_reply(rest);
        match (&skipped, parse_reply(rest)) {
            (Ok(Some((len, _))), Ok(Some((parsed_len, _)))) => {
                assert_eq!(*len, parsed_len);
                if *len < 256 {
                    for prefix in 0..*len {
                        assert_eq!(skip_reply(&rest[..prefix]), Ok(None));
                        assert_eq!(parse_reply(&rest[..prefix]), Ok(None));
                    }
                }
                rest = &rest[*len..];
            }
            // Parsing checks content that skipping does not read.
            (Ok(_), Err(ReplyError::TooDeep | ReplyError::Malformed)) => return,
            (Ok(None), Ok(None)) => return,
            (Err(a), Err(b)) => {
                assert!(*a == b || matches!(b, ReplyError::TooDeep | ReplyError::Malformed));
                return;
            }
            (skipped, parsed) => panic!("skipped {skipped:?}, parsed {parsed:?}"),
        }
    }
});
