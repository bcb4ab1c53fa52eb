//! Queries over many series: TS.MGET, TS.MRANGE, TS.QUERYINDEX and their like.
//!
//! Replies are shown with a blank for each line break.

mod groups;
mod later;
mod long;
mod mget;
mod mrange;

use crate::harness::{Client, Server};

/// Five series, one of them empty.
fn filled(server: &Server) {
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE mu:a LABELS mu 1 host h1 region eu", "+OK\r\n"),
        ("TS.CREATE mu:b LABELS mu 1 host h2 region eu", "+OK\r\n"),
        ("TS.CREATE mu:c LABELS mu 1 host h3", "+OK\r\n"),
        (
            "TS.CREATE mu:d LABELS mu 2 host h1 region us Mixed Case",
            "+OK\r\n",
        ),
        ("TS.CREATE mu:e LABELS mu 1 region eu host h9", "+OK\r\n"),
        (
            "TS.MADD mu:a 10 1 mu:a 20 2 mu:a 30 3 mu:b 10 5 mu:b 25 6.5 mu:c 10 7 mu:d 10 \
             0.1",
            "*7\r\n:10\r\n:20\r\n:30\r\n:10\r\n:25\r\n:10\r\n:10\r\n",
        ),
    ]);
}

/// Each command gets this reply, a blank for each of its line breaks.
fn expect(client: &mut Client, exchanges: &[(&str, &str)]) {
    for (line, expected) in exchanges {
        let reply = client.ask(line).replace("\r\n", " ");
        assert_eq!(reply.trim_end(), *expected, "reply to {line}");
    }
}
