//! Commands of two connections, one of a user who may do everything and one of a user with
//! rules: every reply is whole, and the second sees and changes nothing that its rules forbid.
#![cfg_attr(fuzzing, no_main)]

use latewood_server::fuzz::Redis;
use latewood_wire::resp::{encode_command, parse_reply, skip_reply};
use libfuzzer_sys::fuzz_target;

/// What only the first user may see.
const SECRETS: [&[u8]; 2] = [b"31415926.53125", b"hiddenvalue"];

const SETUP: [&str; 5] = [
    "TS.CREATE secret LABELS all 1 hidden hiddenvalue",
    "TS.ADD secret 1 31415926.53125",
    "TS.ADD k1 1 1 LABELS all 1 l v",
    "ACL SETUSER limited on >p ~k* &k* +@all -@dangerous",
    // Or the second could become the first.
    "ACL SETUSER default resetpass >no-one-knows",
];
const LOOK: &str = "TS.RANGE secret - +";

fn send(server: &mut Redis, client: usize, line: &str) -> Vec<u8> {
    let words: Vec<_> = line
        .split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect();
    let mut command = Vec::new();
    encode_command(&mut command, &words);
    let reply = server.send(client, &command);
    assert!(!reply.starts_with(b"-"), "{line}: {}", reply.escape_ascii());
    reply
}

fn check_whole(mut replies: &[u8]) {
    while !replies.is_empty() {
        let shown = || replies[..replies.len().min(200)].escape_ascii().to_string();
        let skipped = skip_reply(replies);
        let Ok(Some((len, _))) = skipped else {
            panic!("{skipped:?}: {}", shown());
        };
        let parsed = parse_reply(replies);
        assert!(
            matches!(parsed, Ok(Some((parsed, _))) if parsed == len),
            "{}",
            shown()
        );
        replies = &replies[len..];
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut server = Redis::default();
    let clients = [server.connect(), server.connect()];
    for line in SETUP {
        send(&mut server, clients[0], line);
    }
    send(&mut server, clients[1], "AUTH limited p");
    let before = send(&mut server, clients[0], LOOK);
    let mut first_spoke = false;
    for (at, piece) in bytes.split(|byte| *byte == 0xff).enumerate() {
        let client = at % 2;
        first_spoke |= client == 0 && !piece.is_empty();
        let replies = server.send(clients[client], piece);
        check_whole(&replies);
        if !first_spoke {
            for secret in SECRETS {
                let is_in = |text: &[u8]| text.windows(secret.len()).any(|part| part == secret);
                assert!(
                    !is_in(&replies) || is_in(bytes),
                    "{}",
                    replies.escape_ascii()
                );
            }
        }
    }
    if !first_spoke {
        assert_eq!(send(&mut server, clients[0], LOOK), before);
    }
});
