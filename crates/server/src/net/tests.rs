//! Event loops over a simulated disk that fails: nothing is acknowledged that
//! is not there, and reads go on.

mod disk_waits;
mod leases;
mod roles;
mod rows;

use super::connection::{Connection, READ_BYTES, Workspace};
use super::event_loop::EventLoop;
use super::pipeline::Executor;
use crate::client::Session;
use crate::clients::ClientInfo;
use crate::messaging::{Mailbox, Mailboxes, Message, Socket, Why};
use crate::options::testing::{open_on, shared_on, shared_over};
use crate::state::Shared;
use latewood_engine::io::sim::{Fault, Op, SimDisk, Trouble};
use latewood_engine::{Db, Durability};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One event loop over a disk of its own.
struct Harness {
    disk: SimDisk,
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    thread: JoinHandle<std::io::Result<()>>,
}

/// A client and the server's end of its connection.
fn connected(shared: &Shared) -> (TcpStream, Socket, Arc<ClientInfo>) {
    connected_to(shared, false)
}

/// The same, to a port where READONLY is implied or not.
fn connected_to(shared: &Shared, is_reader: bool) -> (TcpStream, Socket, Arc<ClientInfo>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, peer) = listener.accept().unwrap();
    accepted.set_nonblocking(true).unwrap();
    let info = shared.clients.register(|id| {
        ClientInfo::new(id, peer.to_string(), String::new()).at_reader_port(is_reader)
    });
    let socket = Socket::Tcp(mio::net::TcpStream::from_std(accepted));
    (client, socket, info)
}

impl Harness {
    /// Over a database without threads of its own.
    fn start() -> Self {
        Self::begin(false)
    }

    fn begin(background: bool) -> Self {
        let disk = SimDisk::new();
        let db = open_on(&disk, background);
        Self {
            disk,
            ..Self::over(db)
        }
    }

    /// Over a database of another disk.
    fn over(db: Db) -> Self {
        Self::serving(|mailboxes| shared_over(db, mailboxes))
    }

    /// With the state that `share` makes for its loop.
    fn serving(share: impl FnOnce(Mailboxes) -> Arc<Shared>) -> Self {
        let event_loop = EventLoop::new(0).unwrap();
        let mailbox = event_loop.mailbox();
        let mailboxes = Mailboxes::new(vec![Arc::clone(&mailbox)]);
        let shared = share(mailboxes);
        let for_loop = Arc::clone(&shared);
        let thread = std::thread::spawn(move || event_loop.run(&for_loop));
        Self {
            disk: SimDisk::new(),
            shared,
            mailbox,
            thread,
        }
    }

    fn client(&self) -> TcpStream {
        let (client, socket, info) = connected(&self.shared);
        self.mailbox.put(Message::Connection(socket, info));
        client
    }

    /// At a port where READONLY is implied.
    fn reading_client(&self) -> TcpStream {
        let (client, socket, info) = connected_to(&self.shared, true);
        self.mailbox.put(Message::Connection(socket, info));
        client
    }

    fn fail_next(&self, op: Op) {
        self.disk.plan(Fault {
            op: Some(op),
            after: 0,
            trouble: Trouble::Fail(ErrorKind::StorageFull),
        });
    }

    fn stop(self) {
        self.shared.lifetime.stopping.store(true, Ordering::Release);
        self.mailbox.wake();
        self.thread.join().unwrap().unwrap();
    }
}

fn ask(client: &mut TcpStream, line: &str) -> String {
    client.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut reply = [0; 4096];
    let read = client.read(&mut reply).unwrap();
    String::from_utf8_lossy(&reply[..read]).into_owned()
}

#[test]
fn a_failed_write_refuses_writes_and_serves_reads() {
    let harness = Harness::start();
    let mut client = harness.client();
    assert_eq!(ask(&mut client, "TS.ADD k 1 1"), ":1\r\n");
    harness.fail_next(Op::Write);
    let refused = ask(&mut client, "TS.ADD k 2 2");
    assert!(refused.starts_with('-'), "{refused}");
    for write in [
        "TS.ADD k 3 3",
        "TS.ADD n 3 3 LABELS a b",
        "TS.CREATE n",
        "TS.DEL k 0 1",
        "DEL k",
        "FLUSHALL",
    ] {
        let refused = ask(&mut client, write);
        let expected = "-MISCONF Latewood stopped accepting writes: ";
        assert!(refused.starts_with(expected), "{write}: {refused}");
    }
    let refused = ask(&mut client, "TS.MADD k 3 3 k x 3");
    assert!(refused.starts_with("*2\r\n-MISCONF "), "{refused}");
    assert!(refused.ends_with("\r\n-ERR TSDB: invalid timestamp\r\n"));
    assert_eq!(
        ask(&mut client, "TS.RANGE k 1 1"),
        "*1\r\n*2\r\n:1\r\n+1\r\n"
    );
    assert!(!ask(&mut client, "INFO latewood").contains("halted:no"));
    harness.stop();
}

#[test]
fn a_failed_sync_closes_without_an_acknowledgement() {
    let harness = Harness::start();
    let (mut synced, mut other) = (harness.client(), harness.client());
    assert_eq!(ask(&mut synced, "CLIENT DURABILITY sync"), "+OK\r\n");
    assert_eq!(ask(&mut synced, "TS.ADD k 1 1"), ":1\r\n");
    harness.fail_next(Op::Sync);
    synced.write_all(b"TS.ADD k 2 2\r\n").unwrap();
    let mut rest = Vec::new();
    // A reset is an end as well.
    let _ = synced.read_to_end(&mut rest);
    assert_eq!(rest, b"", "an acknowledgement of what is not on disk");
    assert!(ask(&mut other, "TS.ADD k 3 3").starts_with("-MISCONF "));
    assert!(ask(&mut other, "TS.GET k").starts_with("*2\r\n"));
    harness.stop();
}

/// A client, its connection without an event loop, and what that would lend.
fn alone(shared: &Shared) -> (TcpStream, Connection, Workspace) {
    let (client, socket, info) = connected(shared);
    let session = Session::new(info, &shared.runtime.users, Durability::Interval);
    let workspace = Workspace {
        executor: Executor::default(),
        spare: Vec::with_capacity(READ_BYTES),
        pool: Vec::new(),
    };
    (client, Connection::new(socket, session), workspace)
}

#[test]
fn a_long_reply_of_which_nothing_is_read_ends_the_connection() {
    let shared = shared_on(&SimDisk::new(), Mailboxes::default());
    let (mut client, mut connection, mut workspace) = alone(&shared);
    let for_reader = Arc::clone(&shared);
    let reader = std::thread::spawn(move || for_reader.readers.run(&for_reader));
    for at in 0..200_000 {
        let add = format!("TS.ADD k{} {at} {at} LABELS all 1\r\n", at % 50);
        client.write_all(add.as_bytes()).unwrap();
        connection.note_readable(false);
        connection.serve(&shared, &mut workspace);
        connection.send(&shared, &mut workspace);
        assert!(client.read(&mut [0; 4096]).unwrap() > 0);
    }
    let query = b"TS.MRANGE - + FILTER all=1\r\n";
    client.write_all(&query.repeat(8)).unwrap();
    connection.note_readable(false);
    // Until the sockets on the way are full.
    let mut fill = |connection: &mut Connection| {
        loop {
            connection.serve(&shared, &mut workspace);
            while shared.readers.counts() != (0, 0) {
                std::thread::yield_now();
            }
            connection.resume(&shared, Why::News);
            if connection.send(&shared, &mut workspace) == 0 && !connection.wants_service() {
                break;
            }
        }
    };
    fill(&mut connection);
    let old = Instant::now().checked_sub(Duration::from_secs(61)).unwrap();
    connection.check_stalled(&shared);
    assert!(connection.stalled_since.is_some() && !connection.is_finished());
    connection.stalled_since = Some(old);
    let read = client.read(&mut vec![0; 1 << 20]).unwrap();
    assert!(read > 0);
    while connection.stalled_since == Some(old) {
        fill(&mut connection);
    }
    connection.check_stalled(&shared);
    assert!(!connection.is_finished(), "some of it was read");
    connection.stalled_since = Some(old);
    connection.check_stalled(&shared);
    assert!(connection.is_finished());
    shared.readers.stop();
    reader.join().unwrap();
}

#[test]
fn the_time_of_an_unfinished_command_begins_with_that_command() {
    let shared = shared_on(&SimDisk::new(), Mailboxes::default());
    let (mut client, mut connection, mut workspace) = alone(&shared);
    let mut serve = |client: &mut TcpStream, bytes: &[u8]| {
        client.write_all(bytes).unwrap();
        let mut left = bytes.len() as u64;
        while left > 0 {
            connection.note_readable(false);
            left -= connection.serve(&shared, &mut workspace);
        }
        connection.unfinished_since
    };
    assert_eq!(serve(&mut client, b"PING\r\n"), None);
    let begun = serve(&mut client, b"PI").unwrap();
    assert_eq!(
        serve(&mut client, b"N"),
        Some(begun),
        "more of the same command"
    );
    let next = serve(&mut client, b"G\r\nPI").unwrap();
    assert!(next > begun, "another command");
    assert_eq!(serve(&mut client, b"NG\r\n"), None);
}
