//! Bodies that are too much, senders that are slow or too many, and the end.

use crate::harness::{Client, PATIENCE, Server, eventually};
use crate::http::client::{Answer, Http};
use crate::http::server;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[test]
fn bombs_are_refused_and_the_server_goes_on() {
    let server = server(&["--memory", "512mb"]);
    let mut http = Http::to(server.http());
    // More than a gigabyte of comments.
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let line = format!("#{}\n", "x".repeat((64 << 10) - 2));
    let piece = line.repeat(16).into_bytes();
    for _ in 0..1100 {
        zstd.write_all(&piece).unwrap();
        gzip.write_all(&piece).unwrap();
    }
    for (name, body) in [
        ("zstd", zstd.finish().unwrap()),
        ("gzip", gzip.finish().unwrap()),
    ] {
        let head = format!("Content-Encoding: {name}\r\n");
        let answer = http.post_with("/write", &head, &body);
        assert_eq!(answer.status, 413, "{name}: {}", answer.text());
    }
    // A snappy block that says it holds 4 GiB.
    let snappy = http.post_with(
        "/write",
        "Content-Encoding: snappy\r\n",
        b"\xff\xff\xff\xff\x0f\x00",
    );
    assert_eq!(snappy.status, 413);
    assert_eq!(http.post("/write", b"m v=1 1000000\n").status, 204);
    let too_long = format!(
        "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        1_u64 << 40
    );
    http.send(too_long.as_bytes());
    assert_eq!(http.answer().status, 413);
}

#[test]
fn a_request_to_read_is_short_whatever_it_inflates_to() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let mut read = |path: &str, head: &str, body: &[u8]| {
        let answer = http.post_with(path, head, body);
        (answer.status, crate::http::wrong::said(&answer))
    };
    let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Encoding: gzip\r\n";
    for (parameters, status, reason) in [
        (2_000, 400, "more than 1024 parameters"),
        (30_000_000, 413, "longer than 8388608 bytes"),
    ] {
        let fast = flate2::Compression::fast();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), fast);
        gzip.write_all(&b"a&".repeat(parameters)).unwrap();
        let (got, said) = read("/api/v1/labels", form, &gzip.finish().unwrap());
        assert_eq!(got, status);
        assert!(said.contains(reason), "{said}");
    }
    let path = format!("/api/v1/labels?{}", "a&".repeat(2_000));
    let (_, said) = read(&path, "", b"");
    assert!(said.contains("more than 1024 parameters"), "{said}");
    let message = snap::raw::Encoder::new().compress_vec(&vec![0; 9 << 20]);
    let snappy = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
    let (got, said) = read("/api/v1/read", snappy, &message.unwrap());
    assert_eq!(got, 413, "{said}");
}

#[test]
fn long_writes_keep_no_reader_waiting() {
    const LOOKS: usize = 10;
    let server = server(&[]);
    let mut body = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..100 {
        body.write_all(&[b'\n'; 1 << 20]).unwrap();
    }
    let (body, answered) = (body.finish().unwrap(), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    let address = server.http();
    let write = || {
        for _ in 0..LOOKS {
            if is_over.load(Ordering::Acquire) {
                break;
            }
            let mut http = Http::to(address);
            let answer = http.post_with("/write", "Content-Encoding: zstd\r\n", &body);
            answered.fetch_add(1, Ordering::AcqRel);
            assert_eq!(answer.status, 204, "{}", answer.text());
        }
    };
    // One for each thread that writes.
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let writers = cores.max(2);
    std::thread::scope(|scope| {
        (0..writers).for_each(|_| {
            scope.spawn(write);
        });
        let mut http = Http::to(server.http());
        for _ in 0..LOOKS {
            for path in ["/metrics", "/api/v1/labels"] {
                assert_eq!(http.get(path).status, 200);
            }
        }
        is_over.store(true, Ordering::Release);
        // Readers behind writers would each be answered after a write of every thread.
        let (answered, all) = (answered.load(Ordering::Acquire), LOOKS * writers);
        assert!(answered < all, "{answered} writes before {LOOKS} readers");
    });
}

#[test]
fn what_does_not_uncompress_is_a_bad_request() {
    let server = server(&[]);
    for (name, status) in [("gzip", 400), ("zstd", 400), ("snappy", 400), ("br", 415)] {
        let head = format!("Content-Encoding: {name}\r\n");
        let answer = Http::to(server.http()).post_with("/write", &head, b"m v=1 1\n");
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
    }
}

#[test]
fn a_body_that_ends_early_writes_nothing() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    http.send(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nm v=1 1\n");
    drop(http);
    let mut http = Http::to(server.http());
    assert_eq!(http.post("/write", b"n v=1 1\n").status, 204);
    assert_eq!(server.client().ask("EXISTS m_v n_v"), ":1\r\n");
}

#[test]
fn a_head_that_is_no_head_is_refused() {
    let server = server(&[]);
    let (invalid, large) = (
        "is not valid HTTP/1.1",
        "at most 65536 bytes and 100 headers",
    );
    for (head, status, reason) in [
        ("NONSENSE\r\n\r\n".to_owned(), 400, invalid),
        ("GET /ping HTTP/9.9\r\n\r\n".to_owned(), 400, invalid),
        (
            "GET /ping HTTP/1.1\r\nno header\r\n\r\n".to_owned(),
            400,
            invalid,
        ),
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(65_535)),
            414,
            "too long",
        ),
        (
            format!("GET /ping HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200_000)),
            431,
            large,
        ),
        (
            format!("GET /ping HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1000)),
            431,
            large,
        ),
    ] {
        let mut http = Http::to(server.http());
        http.send(head.as_bytes());
        let answer = http.answer();
        assert_eq!(answer.status, status, "{}", answer.head);
        let said = crate::http::wrong::said(&answer);
        assert!(said.contains(reason), "{said}");
        assert!(http.is_closed());
    }
    // Behind a request, the status is all that is said.
    let mut http = Http::to(server.http());
    assert_eq!(http.get("/ping").status, 204);
    http.send(b"NONSENSE\r\n\r\n");
    let answer = http.answer();
    assert_eq!((answer.status, answer.text().as_str()), (400, ""));
    assert!(http.is_closed());
}

#[test]
fn too_many_requests_at_a_time_are_told_to_come_again() {
    let server = server(&[]);
    // Each sends its head and waits: it holds a place and no thread.
    let mut waiting = Vec::new();
    let mut answer = None;
    for _ in 0..2000 {
        let mut http = Http::to(server.http());
        let end = b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n";
        http.send(end);
        let mut probe = Http::to(server.http());
        let probed = probe.post("/write", b"m v=1 1\n");
        if probed.status != 204 {
            answer = Some(probed);
            break;
        }
        waiting.push(http);
    }
    let answer = answer.expect("nothing was refused");
    assert_eq!(answer.status, 503);
    assert!(answer.field("retry-after").is_some());
    for http in &mut waiting {
        http.send(b"m v=2 2\n");
        assert_eq!(http.answer().status, 204);
    }
}

#[test]
fn slow_readers_keep_nobody_out_and_are_too_many_at_some_time() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    http.write_wide_rows(20_000);
    let (slow, refused) = slow_readers(&server);
    assert!(slow.len() >= 24, "{}", slow.len());
    assert_eq!(refused.status, 503);
    assert!(refused.field("retry-after").is_some());
    for at in 0..100 {
        let written = http.post("/write", format!("n v=1 {at}\n").as_bytes());
        assert_eq!(written.status, 204, "{}", written.text());
    }
    assert_eq!(http.get("/api/v1/labels").status, 200);
    server
        .client()
        .ask("ACL SETUSER other on >pw ~* +@read +ping");
    let mut other = export(&server, "Authorization: Token other:pw\r\n");
    assert_eq!(other.head().status, 200);
    drop(slow);
    eventually("a place of those who left", || {
        export(&server, "").head().status == 200
    });
}

/// Asks for 20 MB, with further lines of the head.
fn export(server: &Server, head: &str) -> Http {
    let mut reader = Http::to(server.http());
    let path = "/api/v1/export?match[]=m_v&format=csv";
    reader.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n").as_bytes());
    reader
}

/// Readers of 20 MB who take the heads of their answers and no more, as many as there may be,
/// and the answer to one more.
fn slow_readers(server: &Server) -> (Vec<Http>, Answer) {
    let mut slow = Vec::new();
    loop {
        assert!(slow.len() < 1000, "no reader was refused");
        let mut reader = export(server, "");
        let head = reader.head();
        if head.status != 200 {
            return (slow, head);
        }
        slow.push(reader);
    }
}

/// Takes as long as a reader may stand still.
#[test]
fn readers_who_stand_still_give_back_places_memory_and_files() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    http.write_wide_rows(20_000);
    let mut client = server.client();
    client.ask("SAVE");
    let (slow, _) = slow_readers(&server);
    // What they are about to read goes away.
    assert_eq!(client.ask("FLUSHALL"), "+OK\r\n");
    let process = client.info("process_id");
    let begun = Instant::now();
    let mut wait_until = |what: &str, is_so: &mut dyn FnMut(&mut Client) -> bool| {
        while !is_so(&mut client) {
            assert!(begun.elapsed() < 4 * PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    wait_until("a place", &mut |_| http.get("/api/v1/labels").status == 200);
    wait_until("connections", &mut |client| {
        http.get("/ping");
        client.info("http_connections") == 1
    });
    wait_until("deleted files", &mut |_| {
        let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let mut links = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
        !links.any(|link| link.to_string_lossy().ends_with("(deleted)"))
    });
    // There is as much room as at the beginning.
    http.write_wide_rows(20_000);
    assert_eq!(slow_readers(&server).0.len(), slow.len());
}

#[test]
fn a_stop_lets_requests_under_way_end() {
    let server = Server::with(&["--http", "127.0.0.1:0"]);
    let mut http = Http::to(server.http());
    http.send(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\nm v=1");
    let mut idle = Http::to(server.http());
    assert_eq!(idle.get("/ping").status, 204);
    let stop = std::thread::spawn(move || server.terminate());
    // The connection that waits for nothing is closed first.
    assert!(idle.is_closed());
    http.send(b" 1000000\n");
    assert_eq!(http.answer().status, 204);
    let (ended_well, dir) = stop.join().unwrap();
    assert!(ended_well);
    let again = Server::over(dir, &[]);
    assert_eq!(again.client().ask("TS.GET m_v"), "*2\r\n:1\r\n+1\r\n");
}
