//! WATCH while others write over HTTP.

use crate::http::client::Http;
use crate::http::server;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Series of one batch: telling of all of them takes a while.
const SERIES: usize = 4096;

#[test]
fn no_transaction_runs_on_what_a_batch_over_http_has_changed() {
    let server = server(&[]);
    let body = |round: usize| {
        let mut body = String::new();
        for series in 0..SERIES {
            writeln!(body, "m,s={series} v={round} 1").unwrap();
        }
        body
    };
    let mut http = Http::to(server.http());
    let mut write = |round| {
        let answer = http.post("/write?precision=ms", body(round).as_bytes());
        assert_eq!(answer.status, 204, "{}", answer.text());
    };
    write(0);
    let mut client = server.client();
    let ended = AtomicBool::new(false);
    thread::scope(|threads| {
        let ran = threads.spawn(|| {
            let key = format!("m_v{{s=\"{}\"}}", SERIES - 1);
            let get = ["TS.GET", &key];
            let mut ran = 0;
            while !ended.load(Ordering::Relaxed) {
                client.ask_words(&["WATCH", &key]);
                let before = client.ask_words(&get);
                client.ask("MULTI");
                client.ask_words(&get);
                let inside = client.ask("EXEC");
                if inside != "*-1\r\n" {
                    assert_eq!(inside, format!("*1\r\n{before}"));
                    ran += 1;
                }
            }
            ran
        });
        for round in 1..1000 {
            if ran.is_finished() {
                break;
            }
            write(round);
        }
        ended.store(true, Ordering::Relaxed);
        assert!(ran.join().unwrap() > 0, "no transaction ran");
    });
}
