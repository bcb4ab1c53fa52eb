//! Two connections on two event loops that change the same thing at once.

use crate::harness::{PATIENCE, Server};
use crate::resp::memory::pipeline;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

#[test]
fn two_first_samples_of_a_series_add_up() {
    let server = Server::start();
    // Many, so that it takes a while from the look for the series to the append.
    let labels: String = (0..100).map(|n| format!(" name{n} value{n}")).collect();
    for round in 0..20 {
        let line = |n| format!("TS.ADD c{round}:{n} 60000 1 ON_DUPLICATE SUM LABELS{labels}");
        let lines: Vec<String> = (0..100).map(line).collect();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for mut client in [server.client(), server.client()] {
                let (lines, start) = (&lines, &start);
                scope.spawn(move || {
                    start.wait();
                    let replies = pipeline(&mut client, lines);
                    for (line, reply) in lines.iter().zip(replies) {
                        assert_eq!(reply, ":60000\r\n", "reply to {line}");
                    }
                });
            }
        });
        let asked: Vec<String> = (0..100).map(|n| format!("TS.GET c{round}:{n}")).collect();
        for (line, reply) in asked.iter().zip(pipeline(&mut server.client(), &asked)) {
            assert_eq!(reply, "*2\r\n:60000\r\n+2\r\n", "reply to {line}");
        }
    }
}

#[test]
fn a_series_that_is_made_anew_has_its_options() {
    let server = Server::start();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (mut remover, is_over) = (server.client(), &is_over);
        scope.spawn(move || {
            let lines = vec!["DEL k".to_owned(); 50];
            let begun = Instant::now();
            while !is_over.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
                pipeline(&mut remover, &lines);
            }
        });
        let mut client = server.client();
        let lines = [
            "TS.ADD k 1 1 ON_DUPLICATE LAST RETENTION 7000",
            "TS.INFO k",
            "TS.INCRBY k 1 TIMESTAMP 1 RETENTION 7000",
            "TS.INFO k",
        ];
        let lines: Vec<String> = lines.repeat(50).into_iter().map(str::to_owned).collect();
        let mut wrong = None;
        for _ in 0..100 {
            let replies = pipeline(&mut client, &lines);
            let is_wrong = |reply: &&String| match reply.as_bytes()[0] {
                // It is gone again, or it is as its commands say.
                b'-' => !reply.contains("the key does not exist"),
                b'*' => !reply.contains("+retentionTime\r\n:7000\r\n"),
                _ => *reply != ":1\r\n",
            };
            wrong = wrong.or_else(|| replies.iter().find(is_wrong).cloned());
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(wrong, None);
    });
}

#[test]
fn no_setting_of_new_series_is_lost() {
    let server = Server::start();
    thread::scope(|scope| {
        for (name, unit) in [("ts-retention-policy", 1), ("ts-chunk-size-bytes", 48)] {
            let mut client = server.client();
            scope.spawn(move || {
                for n in 1..500 {
                    let value = (n * unit).to_string();
                    let lines = [
                        format!("CONFIG SET {name} {value}"),
                        format!("CONFIG GET {name}"),
                    ];
                    let replies = pipeline(&mut client, &lines);
                    assert_eq!(replies[0], "+OK\r\n");
                    assert!(
                        replies[1].contains(&format!("\r\n{value}\r\n")),
                        "{n} {replies:?}"
                    );
                }
            });
        }
    });
}
