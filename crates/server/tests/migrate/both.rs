//! Copies to a target that others write to as well.

use crate::harness::{Client, Server};
use crate::migrate::{assert_same, contents, run};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// The end of a name and the key, in a request that reads samples.
const READS: &[u8] = b"\r\nRANGE\r\n$1\r\nk\r\n";

/// An address behind which is that of a server; `before` is called ahead of each request there that
/// reads samples.
fn in_front_of(server: &Server, mut before: impl FnMut() + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.address().to_owned();
    thread::spawn(move || {
        let mut near = listener.accept().unwrap().0;
        let mut far = TcpStream::connect(server).unwrap();
        let (mut replies, mut asker) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        // Either end may hang up first.
        thread::spawn(move || std::io::copy(&mut replies, &mut asker));
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = near.read(&mut buffer) {
            if buffer[..read]
                .windows(READS.len())
                .any(|word| word == READS)
            {
                before();
            }
            far.write_all(&buffer[..read]).unwrap();
        }
        let _ = far.shutdown(Shutdown::Both);
    });
    address
}

fn add(client: &mut Client, timestamps: impl Iterator<Item = u64>) {
    let words = timestamps.flat_map(|at| ["k".to_owned(), at.to_string(), "1".to_owned()]);
    let words: Vec<String> = ["TS.MADD".to_owned()].into_iter().chain(words).collect();
    let reply = client.ask_words(&words);
    assert!(!reply.contains('-'), "{reply}");
}

#[test]
fn what_comes_to_both_sides_while_they_are_read_stays_on_both() {
    let (source, target) = (Server::start(), Server::start());
    source.client().ask("TS.CREATE k");
    add(&mut source.client(), 0..100);
    let mut both = [source.client(), target.client()];
    let mut at = 1_000;
    let from = in_front_of(&source, move || {
        at += 1;
        both.iter_mut().for_each(|side| add(side, at..at + 1));
    });
    let words = ["import", "redis", "--from", &from, "--to", target.address()];
    let options = ["--delete", "--passes", "1"];
    let (status, summary, errors) = run(&[&words[..], &options].concat());
    assert_eq!(status, Some(0), "{summary}{errors}");
    assert_same(&contents(source.address()), &contents(target.address()));
}

#[test]
fn what_only_the_target_has_behind_the_last_sample_is_extra() {
    let (source, target) = (Server::start(), Server::start());
    for (server, end) in [(&source, 10), (&target, 12_010)] {
        server.client().ask("TS.CREATE k");
        add(&mut server.client(), 0..end);
    }
    let (from, to) = (source.address(), target.address());
    let words = ["import", "redis", "--from", from, "--to", to, "--overwrite"];
    let (status, summary, _) = run(&words);
    assert_eq!(status, Some(3), "{summary}");
    let told = "k: 12000 samples are not on the source (use --delete)";
    assert!(summary.contains(told), "{summary}");
    let (status, summary, _) = run(&[&words[..], &["--delete"]].concat());
    assert_eq!(status, Some(0), "{summary}");
    assert_same(&contents(from), &contents(to));
}
