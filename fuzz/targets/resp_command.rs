//! Requests: commands and errors do not depend on how the bytes are split, and
//! parsed commands round-trip.
#![cfg_attr(fuzzing, no_main)]

use latewood_wire::resp::{Limits, Parsed, Parser, ProtocolError, encode_command};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits {
    arguments_max: 64,
    argument_bytes_max: 1024,
    command_bytes_max: 2048,
    inline_bytes_max: 256,
    authenticated: true,
};

type Commands = Vec<Vec<Vec<u8>>>;

/// All commands of a stream that arrives `piece` bytes at a time.
fn commands(bytes: &[u8], piece: usize) -> (Commands, Option<ProtocolError>) {
    let (mut parser, mut commands) = (Parser::new(), Vec::new());
    let (mut start, mut end) = (0, 0);
    loop {
        let buffer = &bytes[start..end];
        match parser.parse(buffer, &LIMITS) {
            Ok(Parsed::Command { consumed }) => {
                assert!(consumed <= buffer.len());
                commands.push(parser.command().args(buffer).map(<[u8]>::to_vec).collect());
                start += consumed;
            }
            Ok(Parsed::Empty { consumed }) => start += consumed,
            Ok(Parsed::Incomplete { missing }) => {
                assert!(missing > 0);
                if end == bytes.len() {
                    return (commands, None);
                }
                end = bytes.len().min(end + piece);
            }
            Err(error) => return (commands, Some(error)),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let whole = commands(bytes, bytes.len().max(1));
    assert_eq!(whole, commands(bytes, 1));
    assert_eq!(whole, commands(bytes, 7));
    for command in &whole.0 {
        let mut encoded = Vec::new();
        encode_command(&mut encoded, command);
        // Encoded headers may be longer than the parsed ones.
        if encoded.len() <= LIMITS.command_bytes_max {
            assert_eq!(
                commands(&encoded, encoded.len()).0,
                std::slice::from_ref(command)
            );
        }
    }
});
