//! The reason for a head that is not one.
//!
//! hyper answers such a head itself, with a status alone, before any handler is asked. Until
//! the first request of a connection was taken, all that is written is that answer: here a
//! sentence is put in its place. A later head that is not one gets the status alone: what
//! follows an answer of a handler cannot be told from it.
//!
//! Tested by `tests/http/limits.rs`.

use super::answer::Answer;
use super::serve::{HEAD_BYTES_MAX, HEADERS_MAX};
use axum::http::StatusCode;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose first answer says why, if hyper gives it.
pub(super) struct Explained<S> {
    stream: S,
    /// A request was taken.
    is_taken: Arc<AtomicBool>,
    /// What goes out in the place of an answer.
    instead: Vec<u8>,
    sent: usize,
}

impl<S> Explained<S> {
    /// A stream of which `is_taken` will say whether a request came over it.
    pub(super) fn new(stream: S, is_taken: Arc<AtomicBool>) -> Self {
        Self {
            stream,
            is_taken,
            instead: Vec::new(),
            sent: 0,
        }
    }
}

/// The whole answer in the place of one of hyper's, if it is one to be explained.
fn explain(answer: &[u8]) -> Option<Vec<u8>> {
    let status = answer.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let status = StatusCode::from_bytes(status).ok()?;
    let text = match status {
        StatusCode::BAD_REQUEST => {
            "the request is not valid HTTP/1.1: its first line or a header cannot be read"
                .to_owned()
        }
        StatusCode::URI_TOO_LONG => "the path of the request is too long".to_owned(),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => format!(
            "the head of the request must be at most {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} headers"
        ),
        _ => return None,
    };
    let body = Answer::new(status, text).body();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    Some([head, body].concat().into_bytes())
}

impl<S: AsyncRead + Unpin> AsyncRead for Explained<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Explained<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_taken.load(Ordering::Relaxed) {
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        }
        if self.instead.is_empty() {
            match explain(bytes) {
                Some(instead) => self.instead = instead,
                None => return Pin::new(&mut self.stream).poll_write(context, bytes),
            }
        }
        let this = &mut *self;
        while this.sent < this.instead.len() {
            let rest = &this.instead[this.sent..];
            let sent = ready!(Pin::new(&mut this.stream).poll_write(context, rest))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            this.sent += sent;
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_taken.load(Ordering::Relaxed) {
            return Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        }
        let first = pieces.iter().find(|piece| !piece.is_empty());
        self.poll_write(context, first.map_or(&[], |piece| piece))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
