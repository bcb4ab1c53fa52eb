//! The generator against a server of a few lines that answers in pieces, with errors, or not at all.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use latewood_wire::resp::{encode_command, skip_reply};

use super::{Load, Outcome, Shape, Source};
use crate::base::address::Address;

/// Sends `PING` a number of times and counts the answers.
struct Pings {
    left: usize,
    answered: usize,
}

impl Source for Pings {
    fn fill(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        let count = self.left.min(most);
        for _ in 0..count {
            encode_command(out, &[b"PING"]);
        }
        self.left -= count;
        count
    }

    fn answered(&mut self, count: usize) {
        self.answered += count;
    }
}

/// A server that answers every command with the next of `replies`, a few bytes at a time, and
/// closes each connection after `commands_max` commands.
fn serve(replies: &'static [&'static [u8]], commands_max: usize) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::loopback(listener.local_addr().unwrap().port());
    let answer = move |mut stream: std::net::TcpStream| {
        let (mut held, mut seen) = (Vec::new(), 0);
        let mut room = [0; 4096];
        while let Ok(got @ 1..) = stream.read(&mut room) {
            held.extend_from_slice(&room[..got]);
            let mut out = Vec::new();
            while let Ok(Some((len, _))) = skip_reply(&held) {
                held.drain(..len);
                if seen == commands_max {
                    return;
                }
                out.extend_from_slice(replies[seen % replies.len()]);
                seen += 1;
            }
            let mut pieces = out.chunks(1001);
            if pieces.any(|piece| stream.write_all(piece).is_err()) {
                return;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn run(address: &Address, sources: usize, each: usize, shape: Shape) -> (Outcome, Vec<Pings>) {
    let pings = |_| Pings {
        left: each,
        answered: 0,
    };
    let sources = (0..sources).map(pings).collect();
    let mut load = Load::connect(address, sources, shape).unwrap();
    let outcome = load.run(|_| ()).unwrap();
    (outcome, load.into_sources())
}

#[test]
fn every_command_is_sent_and_counted() {
    const REPLIES: &[&[u8]] = &[b":1\r\n", b"-ERR no\r\n", b"*2\r\n:1\r\n$3\r\nabc\r\n"];
    let address = serve(REPLIES, usize::MAX);
    for (pipeline, threads) in [(1, 1), (50, 2), (1000, 3)] {
        let shape = Shape {
            threads,
            ..Shape::pipelined(pipeline)
        };
        let (outcome, sources) = run(&address, 5, 999, shape);
        assert_eq!(outcome.answered, 5 * 999);
        assert_eq!(outcome.latencies_ns.len(), 5 * 999);
        assert_eq!(outcome.errors.by_text(), [("ERR no".to_owned(), 5 * 333)]);
        assert_eq!(outcome.lost, None);
        assert!(sources.iter().all(|source| source.answered == 999));
    }
}

#[test]
fn a_server_that_goes_away_leaves_an_exact_count() {
    let address = serve(&[b"+PONG\r\n"], 100);
    let (outcome, sources) = run(&address, 1, 1000, Shape::pipelined(8));
    assert!(outcome.lost.is_some());
    assert!(outcome.answered <= 100, "{} answered", outcome.answered);
    assert_eq!(sources[0].answered as u64, outcome.answered);
}

#[test]
fn a_rate_is_kept() {
    let address = serve(&[b"+PONG\r\n"], usize::MAX);
    let shape = Shape {
        rate: 2_000.0,
        ..Shape::pipelined(10)
    };
    let (outcome, _) = run(&address, 4, 100, shape);
    assert_eq!(outcome.answered, 400);
    // 400 commands at 2,000 a second are 10 intervals of 20 ms; nine lie between first and last.
    assert!(outcome.elapsed >= Duration::from_millis(150), "{outcome:?}");
}
