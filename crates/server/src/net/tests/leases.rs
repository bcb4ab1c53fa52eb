//! An event loop whose reads need a lease that the test renews: what reads waits for it, everything
//! else is answered.

use super::disk_waits::{expect, expect_end, expect_silence, send, wait_for};
use super::{Harness, ask};
use crate::state::Reads;
use latewood_cluster::remote::{LEASE, Lease};
use latewood_engine::io::sim::SimClock;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const LEASE_MS: u32 = LEASE.as_millis() as u32;
/// What is said of a read in vain begins so.
const REFUSED: &str = "-TRYAGAIN the read was not answered, because Kafka ";

/// CONFIG SET is not for servers without a lease.
fn set_reads(leased: &Leased, name: &str) {
    let reads = Reads::of_name(name.as_bytes()).unwrap();
    leased.harness.shared.runtime.set_reads(reads);
}

/// A loop and the lease of its reads, of which no record is proven yet.
struct Leased {
    harness: Harness,
    clock: Arc<SimClock>,
    lease: Arc<Lease>,
}

impl Leased {
    fn start() -> Self {
        let (harness, clock) = (Harness::start(), Arc::<SimClock>::default());
        // What ends a wait is a record, or the end of the log.
        let hold = Duration::from_secs(24 * 3600);
        let lease = Lease::after(Duration::ZERO, hold, Arc::clone(&clock) as _);
        let lease = Arc::new(lease);
        assert!(harness.shared.lease.set(Arc::clone(&lease)).is_ok());
        Self {
            harness,
            clock,
            lease,
        }
    }

    /// With two samples under `k` and a lease.
    fn with_samples() -> (Self, TcpStream, TcpStream) {
        let leased = Self::start();
        leased.renew();
        let mut client = leased.harness.client();
        assert_eq!(ask(&mut client, "TS.ADD k 1 1 LABELS a b"), ":1\r\n");
        assert_eq!(ask(&mut client, "TS.ADD k 2 2"), ":2\r\n");
        let other = leased.harness.client();
        (leased, client, other)
    }

    /// A record that is sent now counts, and all groups are in the log.
    fn renew(&self) {
        self.lease.prove(u64::MAX);
        self.lease.renew(self.lease.send());
    }

    fn expire(&self) {
        self.clock.advance_ms(LEASE_MS);
    }

    /// A reader thread, until [`stop`].
    fn reader(&self) -> JoinHandle<()> {
        let shared = Arc::clone(&self.harness.shared);
        std::thread::spawn(move || shared.readers.run(&shared))
    }

    fn stop(self, reader: JoinHandle<()>) {
        self.harness.shared.readers.stop();
        reader.join().unwrap();
        self.harness.stop();
    }
}

#[test]
fn a_read_waits_for_the_first_record_and_what_does_not_read_is_answered() {
    let leased = Leased::start();
    let (mut client, mut other) = (leased.harness.client(), leased.harness.client());
    send(&mut client, &["PING", "TS.ADD k 1 1", "TS.GET k", "ECHO x"]);
    expect(&mut client, "+PONG\r\n:1\r\n");
    expect_silence(&mut client, &mut other);
    assert_eq!(ask(&mut other, "TS.ADD k 2 2"), ":2\r\n");
    leased.renew();
    expect(&mut client, "*2\r\n:1\r\n+1\r\n$1\r\nx\r\n");
    assert_eq!(ask(&mut client, "TS.GET k"), "*2\r\n:2\r\n+2\r\n");
    leased.harness.stop();
}

#[test]
fn a_read_after_the_lease_waits_for_a_later_record() {
    let (leased, mut client, mut other) = Leased::with_samples();
    leased.expire();
    // That a key is not there is something that was read, too.
    for (read, reply) in [
        ("TS.GET k", "*2\r\n:2\r\n+2\r\n"),
        ("EXISTS no", ":0\r\n"),
        ("TS.GET no", "-ERR TSDB: the key does not exist\r\n"),
        ("TS.MGET FILTER a=c", "*0\r\n"),
    ] {
        let sent = leased.lease.send();
        leased.clock.advance_ms(LEASE_MS);
        send(&mut client, &[read]);
        expect_silence(&mut client, &mut other);
        // It was sent before the snapshot, longer ago than a lease.
        leased.lease.renew(sent);
        expect_silence(&mut client, &mut other);
        leased.renew();
        expect(&mut client, reply);
        leased.expire();
    }
    leased.harness.stop();
}

#[test]
fn without_the_log_reads_are_refused_and_writes_are_not_told_a_lie() {
    let (leased, mut client, mut other) = Leased::with_samples();
    leased.lease.end();
    for read in [
        "TS.GET k",
        "TS.RANGE k - +",
        "TS.MRANGE - + FILTER a=b GROUPBY a REDUCE sum",
        "KEYS *",
        "TS.READ k 0",
    ] {
        let reply = ask(&mut client, read);
        assert!(reply.starts_with(REFUSED), "{read}: {reply}");
    }
    assert!(ask(&mut client, "INFO errorstats").contains("errorstat_TRYAGAIN:count=5"));
    let in_exec = |client: &mut TcpStream, commands: &[&str]| {
        assert_eq!(ask(client, "MULTI"), "+OK\r\n");
        for command in commands {
            assert_eq!(ask(client, command), "+QUEUED\r\n");
        }
        send(client, &["EXEC"]);
    };
    in_exec(&mut client, &["TS.GET k", "EXISTS k"]);
    expect(&mut client, REFUSED);
    // Whoever sends it again would add twice.
    in_exec(&mut other, &["TS.INCRBY k 1 TIMESTAMP 3", "TS.GET k"]);
    expect_end(&mut other);
    leased.harness.stop();
}

#[test]
fn samples_that_were_waited_for_need_a_lease() {
    let (leased, mut client, mut other) = Leased::with_samples();
    send(&mut client, &["TS.READ k 3 BLOCK 0 1"]);
    expect_silence(&mut client, &mut other);
    leased.expire();
    assert_eq!(ask(&mut other, "TS.ADD k 3 3"), ":3\r\n");
    expect_silence(&mut client, &mut other);
    leased.renew();
    expect(&mut client, "*1\r\n*2\r\n:3\r\n+3\r\n");
    leased.harness.stop();
}

#[test]
fn a_long_read_that_waits_for_a_lease_has_no_thread() {
    let (leased, mut client, mut other) = Leased::with_samples();
    assert_eq!(ask(&mut other, "TS.ADD k 300001 1"), ":300001\r\n");
    leased.expire();
    let reader = leased.reader();
    // So many empty buckets are no work for an event loop.
    let long = "TS.RANGE k - + AGGREGATION count 1 EMPTY";
    send(&mut client, &[long]);
    let readers = &leased.harness.shared.readers;
    wait_for(|| readers.ended.load(std::sync::atomic::Ordering::Relaxed) == 1);
    expect_silence(&mut client, &mut other);
    leased.renew();
    expect(&mut client, "*300001\r\n*2\r\n:1\r\n+1\r\n");
    leased.stop(reader);
}

#[test]
fn replies_that_wait_take_bounded_memory() {
    let (leased, mut client, _) = Leased::with_samples();
    leased.expire();
    let shared = &leased.harness.shared;
    let (held, share_bytes) = (&shared.clients.unproven, shared.db.reply_bytes_max());
    let mut own = [0; 1000];
    let bytes = own.each_mut().map(|own| {
        let grants = std::iter::successors(Some(1 << 30), |bytes| Some(bytes / 2));
        let grants = grants.take_while(|bytes| *bytes > 0);
        grants
            .filter(|bytes| held.grant(own, *bytes, share_bytes).is_ok())
            .sum::<usize>()
    });
    assert!(bytes[0] > 0 && bytes[999] == 0, "all is taken");
    let reply = ask(&mut client, "TS.GET k");
    assert!(reply.starts_with(REFUSED), "{reply}");
    leased.harness.stop();
}

#[test]
fn a_read_shows_what_is_in_the_log_unless_told_otherwise() {
    let leased = Leased::start();
    leased.lease.renew(leased.lease.send());
    let (mut client, mut other) = (leased.harness.client(), leased.harness.client());
    assert_eq!(ask(&mut other, "TS.ADD k 1 1"), ":1\r\n");
    send(&mut client, &["TS.GET k"]);
    expect_silence(&mut client, &mut other);
    set_reads(&leased, "unproven");
    assert_eq!(ask(&mut other, "TS.GET k"), "*2\r\n:1\r\n+1\r\n");
    leased.renew();
    expect(&mut client, "*2\r\n:1\r\n+1\r\n");
    leased.harness.stop();
}

#[test]
fn a_strict_read_waits_for_a_record_that_is_sent_after_it() {
    let (leased, mut client, mut other) = Leased::with_samples();
    let sent = leased.lease.send();
    set_reads(&leased, "strict");
    send(&mut client, &["TS.GET k", "TS.GET no"]);
    wait_for(|| leased.lease.is_asked());
    leased.lease.renew(sent);
    expect_silence(&mut client, &mut other);
    leased.renew();
    expect(&mut client, "*2\r\n:2\r\n+2\r\n");
    // The next one arrives when the one before is answered.
    wait_for(|| leased.lease.is_asked());
    leased.renew();
    expect(&mut client, "-ERR TSDB: the key does not exist\r\n");
    // What does not read waits for nothing.
    assert_eq!(ask(&mut client, "TS.ADD k 3 3"), ":3\r\n");
    leased.lease.end();
    let reply = ask(&mut client, "TS.GET k");
    assert!(reply.starts_with(REFUSED), "{reply}");
    leased.harness.stop();
}

#[test]
fn a_long_read_needs_one_record_that_was_sent_since_it_began() {
    let (leased, mut client, mut other) = Leased::with_samples();
    set_reads(&leased, "strict");
    assert_eq!(ask(&mut other, "TS.ADD k 300001 1"), ":300001\r\n");
    send(&mut client, &["TS.RANGE k - + AGGREGATION count 1 EMPTY"]);
    let readers = Arc::clone(&leased.harness.shared.readers);
    wait_for(|| readers.counts().1 == 1);
    // It has not read yet.
    leased.renew();
    let reader = leased.reader();
    expect(&mut client, "*300001\r\n*2\r\n:1\r\n+1\r\n");
    assert!(!leased.lease.is_asked());
    leased.stop(reader);
}

#[test]
fn reads_without_a_lease_are_not_promised_anything() {
    let harness = Harness::start();
    let mut client = harness.client();
    assert!(ask(&mut client, "CONFIG GET reads").ends_with("$6\r\nproven\r\n"));
    let reply = ask(&mut client, "CONFIG SET reads strict");
    assert!(
        reply.contains("reads strict: needs read-lease on, or cluster on"),
        "{reply}"
    );
    let reply = ask(&mut client, "CONFIG SET reads stale");
    let choices = "Invalid reads: stale; it takes proven, strict or unproven";
    assert!(reply.contains(choices), "{reply}");
    for (name, choices) in [
        ("log-level", "error, warn, info, debug or trace"),
        (
            "sender-duplicate-policy",
            "block, first, last, min, max or sum",
        ),
        ("tls-auth-clients", "yes, no or optional"),
        ("durability", "sync, interval or none"),
    ] {
        let reply = ask(&mut client, &format!("CONFIG SET {name} bogus"));
        let is_fixed = reply.contains("immutable");
        assert!(is_fixed || reply.contains(choices), "{name}: {reply}");
    }
    assert_eq!(ask(&mut client, "CONFIG SET reads proven"), "+OK\r\n");
    harness.stop();
}
