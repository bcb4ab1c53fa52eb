//! Peers who do not read: a connection that waits for one too long fails.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Longest time that a peer may leave an answer waiting; shorter in builds for tests, which wait
/// for it.
pub(super) const STALL_MAX: Duration =
    Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 60 });

/// A stream whose writes, flushes and end fail where none of them came on for a time.
pub(super) struct Unstalled<S> {
    stream: S,
    time_max: Duration,
    /// Until when a write waits that has begun to.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Unstalled<S> {
    /// A stream that waits up to `time_max` for its peer.
    pub(super) fn new(stream: S, time_max: Duration) -> Self {
        let until = None;
        Self {
            stream,
            time_max,
            until,
        }
    }

    /// What a write that came to `written` is, for how long it has waited.
    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self
            .until
            .get_or_insert_with(|| Box::pin(sleep(self.time_max)));
        ready!(until.as_mut().poll(context));
        let text = "the peer does not read its answer";
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, text)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.bounded(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What an encrypted stream took may wait until here.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use hyper::server::conn::http1;
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter, duplex};

    const SOON: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn a_connection_ends_whose_peer_asks_and_asks_and_reads_nothing() {
        let (mut near, far) = duplex(1000);
        let router = Router::new().route("/", get(|| async { "x".repeat(500) }));
        let connection = http1::Builder::new().serve_connection(
            TokioIo::new(Unstalled::new(far, SOON)),
            TowerToHyperService::new(router),
        );
        let asks = async {
            let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
            while near.write_all(request).await.is_ok() {}
        };
        let (served, ()) = tokio::join!(connection, asks);
        assert!(served.is_err());
    }

    #[tokio::test]
    async fn a_peer_who_reads_gets_all() {
        let (mut near, far) = duplex(10);
        let mut far = Unstalled::new(far, Duration::from_secs(3600));
        let sent = async move { far.write_all(&[7; 1000]).await };
        let mut got = Vec::new();
        let (sent, read) = tokio::join!(sent, near.read_to_end(&mut got));
        assert!(sent.is_ok() && read.is_ok());
        assert_eq!(got, [7; 1000]);
    }

    #[tokio::test]
    async fn what_a_stream_holds_back_fails_where_nobody_takes_it() {
        for ends in [false, true] {
            let (_near, far) = duplex(10);
            let mut far = Unstalled::new(BufWriter::with_capacity(2000, far), SOON);
            far.write_all(&[7; 1000]).await.unwrap();
            let sent = if ends {
                far.shutdown().await
            } else {
                far.flush().await
            };
            assert_eq!(sent.unwrap_err().kind(), ErrorKind::TimedOut);
        }
    }

    #[tokio::test]
    async fn a_write_that_nobody_takes_fails() {
        let (_near, far) = duplex(10);
        let mut far = Unstalled::new(far, SOON);
        let error = far.write_all(&[7; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
