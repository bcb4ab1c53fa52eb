//! Answers in pieces.
//!
//! A piece is made on a thread that may block, and the next one only once it
//! was taken: one waits while another is sent. An answer that is likely made in a
//! moment is tried on the thread of the connection first: to wake another one
//! costs more. Where the whole answer is one piece, it has a length; where
//! something fails before the first piece is there, a status that says so. Later
//! only the connection can be broken off, which a reader sees by the chunk that is
//! missing at the end.

use super::asked::Asked;
use super::packing::{Accepts, Packing};
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::stall::STALL_MAX;
use crate::observe::reads::add;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes of a piece, more or less: what is begun is ended.
pub(super) const PIECE_BYTES: usize = 256 << 10;
/// Time that a piece may take, more or less, so that others get the thread and
/// a reader who left is noticed: of much that is read, little may be answered.
pub(super) const PIECE_TIME: Duration = Duration::from_millis(100);
/// Memory of an answer under way: a piece that is made, one that waits, one
/// that is sent, and the rows that they are made of.
const MEMORY_BYTES: usize = 4 << 20;

/// The type of answers that are compressed.
pub(super) const JSON: &str = "application/json";

/// Makes an answer piece by piece.
pub(super) trait Pieces: Send + 'static {
    /// Appends the next piece, of about [`PIECE_BYTES`], to `out`; false where
    /// it is the last. May block.
    ///
    /// # Errors
    /// What ends the answer.
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer>;

    /// The same on a thread that others wait for, where the whole answer is likely made in a moment;
    /// `None` where [`Pieces::more`] has to make it.
    fn at_once(&mut self, _asked: &Arc<Asked>, _out: &mut Vec<u8>) -> Option<Result<bool, Answer>> {
        None
    }

    /// Bytes of memory that a query holds while its answer is read.
    fn query_bytes(&self) -> usize {
        0
    }

    /// Comes with what ends the answer while it waits for a thread or for its reader, if anything
    /// does.
    fn ended(&self) -> BoxFuture<'static, Answer> {
        Box::pin(pending())
    }
}

/// A piece, and whether another follows.
type Piece = (Bytes, bool);

/// The answer 200 of type `content_type` that `pieces` makes. `left` is dropped when the reader
/// has all of it or leaves.
///
/// # Errors
/// What ends it before its first piece is there.
pub(super) async fn respond(
    asked: impl Into<Arc<Asked>>,
    content_type: &'static str,
    pieces: impl Pieces,
    left: impl Send + 'static,
) -> Result<Response, Answer> {
    let asked = asked.into();
    asked.hold_bytes(MEMORY_BYTES)?;
    // What is no JSON has a compression of its own, or is made for files.
    let accepts = match content_type {
        JSON => asked.accepts,
        _ => Accepts::Plain,
    };
    let maker = Maker {
        asked,
        pieces,
        accepts,
        packing: None,
    };
    let (work, (first, follows)) = next(maker).await?;
    let mut head = HeaderMap::new();
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if content_type == JSON {
        head.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if let Some(name) = work.packing.as_ref().and_then(Packing::name) {
        head.insert(header::CONTENT_ENCODING, name);
    }
    if !follows {
        return Ok((StatusCode::OK, head, first).into_response());
    }
    let waiting = work.asked.begin_waiting(work.pieces.query_bytes())?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        make(work, (first, follows), sender).await;
        drop(waiting);
    });
    let body = stream::unfold(
        (receiver, left, false),
        |(mut receiver, left, ended)| async move {
            if ended {
                return None;
            }
            let piece: Option<Piece> = receiver.recv().await;
            Some(match piece {
                Some((bytes, follows)) => (Ok(bytes), (receiver, left, !follows)),
                None => (
                    Err(io::Error::other("the answer was aborted")),
                    (receiver, left, true),
                ),
            })
        },
    );
    Ok((StatusCode::OK, head, Body::from_stream(body)).into_response())
}

/// Pieces and what they are made for.
struct Maker<P> {
    asked: Arc<Asked>,
    pieces: P,
    accepts: Accepts,
    /// From the first piece on.
    packing: Option<Packing>,
}

impl<P: Pieces> Maker<P> {
    /// The next piece, if it can be made at once.
    fn at_once(&mut self) -> Option<Result<Piece, Answer>> {
        let mut out = Vec::new();
        let made = self.pieces.at_once(&self.asked, &mut out)?;
        Some(made.and_then(|follows| self.pack(out, follows)))
    }

    /// The next piece. May block.
    fn piece(&mut self) -> Result<Piece, Answer> {
        let mut out = Vec::with_capacity(PIECE_BYTES);
        let follows = self.pieces.more(&self.asked, &mut out)?;
        self.pack(out, follows)
    }

    fn pack(&mut self, out: Vec<u8>, follows: bool) -> Result<Piece, Answer> {
        let failed = |error: io::Error| {
            let text = format!("the answer cannot be compressed: {error}");
            Answer::new(StatusCode::INTERNAL_SERVER_ERROR, text)
        };
        let packing = match &mut self.packing {
            Some(packing) => packing,
            none => {
                let packing = Packing::begin(self.accepts, out.len(), !follows);
                none.insert(packing.map_err(failed)?)
            }
        };
        let out = packing.pack(out, !follows).map_err(failed)?;
        add(&self.asked.counters().bytes, out.len());
        Ok((Bytes::from(out), follows))
    }
}

/// Makes the pieces behind `piece` as they are taken.
async fn make<P: Pieces>(mut work: Maker<P>, mut piece: Piece, sender: mpsc::Sender<Piece>) {
    let context = work.asked.context.clone();
    let counters = context.shared.protocols.reads.of(work.asked.endpoint);
    loop {
        let follows = piece.1;
        let sent = tokio::time::timeout(STALL_MAX, sender.send(piece));
        let made = match unless_ended(&work, sent).await {
            Ok(Ok(Ok(()))) if !follows => {
                // The last piece counts until it is taken, too.
                let taken = tokio::time::timeout(STALL_MAX, sender.reserve());
                let _ = unless_ended(&work, taken).await;
                return;
            }
            Ok(Ok(Ok(()))) => next(work).await,
            Ok(_) => {
                add(&counters.cancelled, 1);
                return;
            }
            Err(answer) => Err(answer),
        };
        match made {
            Ok((rest, made)) => (work, piece) = (rest, made),
            Err(answer) => {
                add(&counters.failed, 1);
                tracing::warn!(error = answer.text, "an HTTP answer was aborted");
                return;
            }
        }
    }
}

/// What comes of `waiting`, unless the answer ends before.
fn unless_ended<P: Pieces, T, F: Future<Output = T>>(
    work: &Maker<P>,
    waiting: F,
) -> impl Future<Output = Result<T, Answer>> + use<P, T, F> {
    let ended = work.pieces.ended();
    async move {
        tokio::select! {
            biased;
            done = waiting => Ok(done),
            answer = ended => Err(answer),
        }
    }
}

async fn next<P: Pieces>(mut work: Maker<P>) -> Result<(Maker<P>, Piece), Answer> {
    let asked = Arc::clone(&work.asked);
    let thread = unless_ended(&work, asked.permits().thread()).await?;
    let made = match Context::at_once(|| work.at_once())? {
        Some(piece) => {
            drop(thread);
            (work, piece?)
        }
        None => {
            let made = asked.context.block(move || {
                let _thread = thread;
                let piece = work.piece()?;
                Ok((work, piece))
            });
            made.await??
        }
    };
    // What is in it was read by now.
    asked.proven().await?;
    Ok(made)
}
