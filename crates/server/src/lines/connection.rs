//! One connection: what arrives is a batch, and the answers go back.
//!
//! Reading and writing are a task of the runtime. A batch may wait for memory, for an EXEC or for
//! the disk, so it is applied on a thread that may block; until it is, nothing more is read, which
//! makes the sender wait.

use super::speaker::{Next, Speaker, blocking, intake_for, takes_none, user_for};
use crate::intake::EngineIntake;
use crate::state::{LineProtocol, Shared};
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

/// Most bytes that are read at a time: a batch of some thousand samples.
const BUFFER_BYTES: usize = 256 * 1024;
/// What is still taken of a connection that must end: what a kernel may hold of it.
const LAST_BYTES_MAX: usize = 8 << 20;
/// Memory for answers that a connection keeps from one batch to the next.
const OUT_BYTES_KEPT: usize = 16 * 1024;
/// How long a peer may leave its errors unread before it is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a browser begins a connection with. Pages of others could send lines to this
/// port in the body of a request.
const HTTP_METHODS: [&[u8]; 6] = [
    b"GET ",
    b"POST ",
    b"PUT ",
    b"HEAD ",
    b"OPTIONS ",
    b"CONNECT ",
];
/// Bytes of the longest of them.
const HTTP_METHOD_BYTES_MAX: usize = 8;
const NOT_HTTP: &[u8] = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n\
    this port does not speak HTTP\n";

/// When whole lines of a connection were last worked off: bytes that make none do not count.
#[derive(Debug)]
pub(super) struct LastRead {
    began: Instant,
    after_ms: AtomicU64,
}

impl Default for LastRead {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            after_ms: AtomicU64::new(0),
        }
    }
}

impl LastRead {
    /// Notes that something is being worked off, and the peer is not silent. What was noted
    /// before.
    fn begin(&self) -> u64 {
        self.after_ms.swap(u64::MAX, Ordering::Relaxed)
    }

    /// Notes again what was noted before: nothing was whole. The time that the server
    /// made the peer wait does not count.
    fn end_in_vain(&self, before: u64, waited: Duration) {
        let after_ms = before.saturating_add(waited.as_millis() as u64);
        self.after_ms.store(after_ms, Ordering::Relaxed);
    }

    /// Notes that it is worked off now.
    pub(super) fn note(&self) {
        let after_ms = self.began.elapsed().as_millis() as u64;
        self.after_ms.store(after_ms, Ordering::Relaxed);
    }

    /// One that began `time` ago and was silent since.
    #[cfg(test)]
    pub(super) fn ago(time: Duration) -> Self {
        Self {
            began: Instant::now().checked_sub(time).unwrap(),
            ..Self::default()
        }
    }

    /// How long that is ago.
    pub(super) fn elapsed(&self) -> Duration {
        let after = Duration::from_millis(self.after_ms.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(after)
    }
}

/// An open connection, as others see it.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) protocol: LineProtocol,
    pub(super) last_read: LastRead,
    /// Told when it has to end: it takes what has arrived, and closes.
    pub(super) end: Notify,
}

impl Connected {
    /// One that begins now.
    pub(super) fn new(protocol: LineProtocol) -> Self {
        Self {
            protocol,
            last_read: LastRead::default(),
            end: Notify::new(),
        }
    }
}

/// What a connection brings, and what becomes of it. Goes to a thread that may block for each
/// batch, and comes back.
pub(super) struct Batch {
    shared: Arc<Shared>,
    protocol: LineProtocol,
    address: IpAddr,
    /// The user with whose rights is written; `default` without a name.
    user_name: Option<String>,
    speaker: Box<dyn Speaker>,
    /// With the rights of the user at the epoch.
    intake: EngineIntake,
    epoch: u64,
    buffer: Vec<u8>,
    /// Bytes at its start that are a part of a line.
    held: usize,
    out: Vec<u8>,
}

/// What became of a batch.
struct Applied {
    taken: usize,
    next: Next,
}

impl Batch {
    /// One of lines that come from `address`.
    ///
    /// # Errors
    /// That there is no such user.
    pub(super) fn new(
        shared: Arc<Shared>,
        protocol: LineProtocol,
        speaker: Box<dyn Speaker>,
        address: IpAddr,
        user_name: Option<String>,
    ) -> io::Result<Self> {
        let epoch = shared.runtime.users.epoch();
        Ok(Self {
            intake: intake(&shared, protocol, address, user_name.as_deref())?,
            shared,
            protocol,
            address,
            user_name,
            speaker,
            epoch,
            // Pages that no sender fills are not taken from the system.
            buffer: vec![0; BUFFER_BYTES],
            held: 0,
            out: Vec::new(),
        })
    }

    /// Applies what is whole, now that `got` bytes more have come. May block.
    fn apply(&mut self, got: usize) -> io::Result<Applied> {
        let epoch = self.shared.runtime.users.epoch();
        if epoch != self.epoch {
            let user_name = self.user_name.as_deref();
            self.intake = intake(&self.shared, self.protocol, self.address, user_name)?;
            self.epoch = epoch;
        }
        self.intake.begin();
        let end = self.held + got;
        let arrived = &self.buffer[..end];
        let (taken, next) =
            self.speaker
                .read(arrived, &mut self.intake, &self.shared, &mut self.out);
        self.speaker.answer(&self.intake.finish(), &mut self.out);
        let counters = self.shared.protocols.intake.of(self.protocol.counted_as());
        counters.bytes.fetch_add(taken as u64, Ordering::Relaxed);
        if taken > 0 {
            self.buffer.copy_within(taken..end, 0);
        }
        self.held = end - taken;
        Ok(Applied { taken, next })
    }

    /// Applies what is left, on which nothing follows. May block.
    fn end(&mut self) {
        self.intake.begin();
        self.speaker
            .end(&self.buffer[..self.held], &mut self.intake);
        self.speaker.answer(&self.intake.finish(), &mut self.out);
    }

    /// Sends what is to be answered.
    async fn answer(&mut self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if !self.out.is_empty() {
            timeout(WRITE_TIMEOUT, stream.write_all(&self.out)).await??;
            timeout(WRITE_TIMEOUT, stream.flush()).await??;
            self.out.clear();
            self.out.shrink_to(OUT_BYTES_KEPT);
        }
        Ok(())
    }
}

/// An intake with the rights that the user of the connection has now.
fn intake(
    shared: &Arc<Shared>,
    protocol: LineProtocol,
    address: IpAddr,
    user_name: Option<&str>,
) -> io::Result<EngineIntake> {
    let user = user_for(shared, user_name).map_err(io::Error::other)?;
    let mut intake = intake_for(shared, protocol, &user);
    intake.sent_by(address, &user.name);
    Ok(intake)
}

/// Whether the first bytes of a connection are those of a request.
fn is_http(bytes: &[u8]) -> bool {
    HTTP_METHODS.iter().any(|method| bytes.starts_with(method))
}

/// Serves a connection until its peer ends it, or `connected` is told to end. Batches are applied
/// with one of `places`.
///
/// # Errors
/// Those of the socket; `TimedOut` where the peer was idle for too long; that its user is gone.
pub(super) async fn serve(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    mut batch: Batch,
    connected: &Connected,
    places: &Semaphore,
) -> io::Result<()> {
    let shared = Arc::clone(&batch.shared);
    let (mut is_first, mut left_bytes) = (true, None);
    let ended = loop {
        let idle_s = shared.runtime.idle_timeout_s.load(Ordering::Relaxed);
        let space = &mut batch.buffer[batch.held..];
        let read = match left_bytes {
            None => tokio::select! {
                biased;
                // First: a peer that never pauses is ended, too.
                () = connected.end.notified() => {
                    left_bytes = Some(LAST_BYTES_MAX);
                    continue;
                }
                read = within(idle_s, read(stream, space)) => read,
            },
            Some(0) => break Ok(()),
            // What has arrived, if anything has.
            Some(_) => timeout(Duration::ZERO, read(stream, space))
                .await
                .unwrap_or(Ok(0)),
        };
        let got = match read {
            Ok(0) => break Ok(()),
            Ok(got) => got,
            // An encrypted connection that ends without a word, as many senders do.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break Ok(()),
            Err(error) => break Err(error),
        };
        left_bytes = left_bytes.map(|left: usize| left.saturating_sub(got));
        if is_first && is_http(&batch.buffer[..batch.held + got]) {
            let protocol = batch.protocol.name();
            tracing::warn!(protocol, "closed a connection that speaks HTTP");
            batch.out = NOT_HTTP.to_vec();
            return batch.answer(stream).await;
        }
        if let Err(to) = shared.takes_writes() {
            batch.out = format!("-ERR {}\r\n", takes_none(&to)).into_bytes();
            return batch.answer(stream).await;
        }
        let (begun, before) = (Instant::now(), connected.last_read.begin());
        shared.pause.ended(&shared.lifetime.stopping).await;
        let waited = begun.elapsed();
        let applied;
        (batch, applied) = apply(places, batch, move |batch| batch.apply(got)).await;
        let Applied { taken, next } = applied?;
        is_first &= taken == 0 && batch.held < HTTP_METHOD_BYTES_MAX;
        batch.answer(stream).await?;
        if taken == 0 {
            connected.last_read.end_in_vain(before, waited);
        } else {
            connected.last_read.note();
        }
        if next == Next::Close {
            return Ok(());
        }
    };
    (batch, ()) = apply(places, batch, Batch::end).await;
    // A peer that has ended its own side may still read.
    ended.and(batch.answer(stream).await)
}

/// Reads what has arrived, and sends what TLS answers by itself, such as that it negotiates
/// nothing anew: a read alone leaves that unsent.
async fn read(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    space: &mut [u8],
) -> io::Result<usize> {
    poll_fn(|context| {
        let mut buffer = ReadBuf::new(space);
        let read = Pin::new(&mut *stream).poll_read(context, &mut buffer);
        if read.is_pending()
            && let Poll::Ready(Err(error)) = Pin::new(&mut *stream).poll_flush(context)
        {
            return Poll::Ready(Err(error));
        }
        read.map_ok(|()| buffer.filled().len())
    })
    .await
}

/// What `work` makes of a batch, on a thread that may block.
async fn apply<T: Send + 'static>(
    places: &Semaphore,
    mut batch: Batch,
    work: impl FnOnce(&mut Batch) -> T + Send + 'static,
) -> (Batch, T) {
    // Nobody closes it.
    let _place = places.acquire().await;
    blocking(move || {
        let done = work(&mut batch);
        (batch, done)
    })
    .await
}

/// What `read` reads, within `limit_s` seconds; 0 sets no limit.
async fn within(limit_s: u64, read: impl Future<Output = io::Result<usize>>) -> io::Result<usize> {
    if limit_s == 0 {
        return read.await;
    }
    timeout(Duration::from_secs(limit_s), read).await?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::by_line::ByLine;
    use crate::lines::opentsdb::Telnet;
    use crate::messaging::Mailboxes;
    use crate::options::testing::{self, TestLog};

    /// Serves a connection that brings `sent` and takes every answer.
    async fn served(shared: &Arc<Shared>, sent: &str, connected: &Connected) {
        let mut stream = tokio::io::join(sent.as_bytes(), tokio::io::sink());
        let speaker = Box::new(ByLine::new(Telnet::default()));
        let address = IpAddr::from([127, 0, 0, 1]);
        let shared = Arc::clone(shared);
        let batch = Batch::new(shared, LineProtocol::OpenTsdb, speaker, address, None);
        let places = Semaphore::new(1);
        let served = serve(&mut stream, batch.unwrap(), connected, &places);
        served.await.unwrap();
    }

    /// What a connection is told that brings a point, while `meanwhile` is done.
    fn told(shared: &Arc<Shared>, meanwhile: impl FnOnce() + Send) -> String {
        let mut answer = Vec::new();
        let mut stream = tokio::io::join("put a 1 1 host=a\n".as_bytes(), &mut answer);
        let speaker = Box::new(ByLine::new(Telnet::default()));
        let (protocol, near) = (LineProtocol::OpenTsdb, IpAddr::from([127, 0, 0, 1]));
        let batch = Batch::new(Arc::clone(shared), protocol, speaker, near, None);
        let (connected, places) = (Connected::new(protocol), Semaphore::new(1));
        let runtime = latewood_tls::runtime().unwrap();
        std::thread::scope(|threads| {
            threads.spawn(meanwhile);
            let served = serve(&mut stream, batch.unwrap(), &connected, &places);
            runtime.block_on(served).unwrap();
        });
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn a_connection_of_a_node_that_lost_the_log_is_told_and_closed() {
        let shared = testing::shared();
        let _ = testing::follow(&shared);
        let lost = "-ERR this node takes no lines; db-2:6379 owns the log\r\n";
        assert_eq!(told(&shared, || ()), lost);
        assert!(shared.db.is_empty());
    }

    /// An owner over a log.
    fn owner(log: &Arc<TestLog>) -> Arc<Shared> {
        let db = testing::open_on_log(Arc::clone(log));
        let mut shared = testing::shared_over(db, Mailboxes::default());
        testing::promise_sync(&mut shared);
        shared
    }

    #[test]
    fn a_connection_of_an_owner_that_loses_the_log_is_told_what_is_known() {
        let log = Arc::new(TestLog::default());
        let after_it_is_queued = || {
            while log.newest() == 0 {
                std::thread::yield_now();
            }
            log.lose();
        };
        assert_eq!(
            told(&owner(&log), after_it_is_queued),
            "put: Please throttle writes: unknown: nobody knows whether samples are kept: node 7 \
             owns the log; 1 samples may be stored, or may not\n"
        );
        let log = Arc::new(TestLog::default());
        log.lose_after(0, || ());
        assert_eq!(
            told(&owner(&log), || ()),
            "put: Please throttle writes: node 7 owns the log; 1 samples are not stored\n"
        );
    }

    #[test]
    fn who_sends_bytes_and_no_line_is_silent() {
        let shared = testing::shared();
        for (sent, is_silent) in [("put a", true), ("put a 1 1 host=a\nput", false)] {
            let connected = Connected {
                last_read: LastRead::ago(Duration::from_secs(3600)),
                ..Connected::new(LineProtocol::OpenTsdb)
            };
            let runtime = latewood_tls::runtime().unwrap();
            runtime.block_on(served(&shared, sent, &connected));
            let silent = connected.last_read.elapsed() > Duration::from_secs(3000);
            assert_eq!(silent, is_silent, "{sent}");
        }
    }

    #[test]
    fn who_waits_for_the_end_of_a_pause_is_not_silent() {
        const PAUSE: Duration = Duration::from_millis(50);
        let shared = testing::shared();
        let connected = Connected::new(LineProtocol::OpenTsdb);
        let until = Instant::now() + Duration::from_secs(3600);
        shared.pause.begin(until, false);
        let runtime = latewood_tls::runtime().unwrap();
        runtime.block_on(async {
            let ending = async {
                while connected.last_read.after_ms.load(Ordering::Relaxed) != u64::MAX {
                    tokio::task::yield_now().await;
                }
                tokio::time::sleep(PAUSE).await;
                shared.pause.end();
            };
            tokio::join!(served(&shared, "put a", &connected), ending);
        });
        let after_ms = connected.last_read.after_ms.load(Ordering::Relaxed);
        assert!(Duration::from_millis(after_ms) >= PAUSE);
    }
}
