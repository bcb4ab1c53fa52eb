//! What a handler has of the server, and the threads it may block.

use super::answer::Answer;
use super::auth;
use super::permits::Permits;
use super::work::Work;
use crate::acl::User;
use crate::client::BEHIND;
use crate::intake::Failure;
use crate::observe::Protocol;
use crate::rules::Manager;
use crate::state::Shared;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use latewood_engine::io::waiting::{leave_rows, no_wait, together};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

/// What a handler has of the server.
#[derive(Clone)]
pub(crate) struct Context {
    /// The server.
    pub(crate) shared: Arc<Shared>,
    /// Rule files.
    pub(crate) rules: Arc<Manager>,
    /// Threads and memory for requests.
    pub(crate) work: Arc<Work>,
    /// The user whom the certificate of the connection names, if it names one.
    pub(crate) certified: Option<Arc<str>>,
    /// The address of the peer, in a [`Sending`] request.
    pub(crate) peer: IpAddr,
    /// Tells, once every clone is dropped, that nothing uses the server any more.
    pub(crate) alive: mpsc::Sender<Infallible>,
}

/// The address of the peer of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// What a handler of samples has: it knows the peer.
pub(crate) struct Sending(pub(crate) Context);

impl FromRequestParts<Context> for Sending {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &Context,
    ) -> Result<Self, Self::Rejection> {
        let mut context = context.clone();
        if let Some(Peer(peer)) = parts.extensions.get() {
            context.peer = *peer;
        }
        Ok(Self(context))
    }
}

fn panicked() -> Answer {
    tracing::error!("an HTTP request panicked");
    Answer::new(StatusCode::INTERNAL_SERVER_ERROR, "internal server error")
}

impl Context {
    /// The peer of a request that came by no connection.
    pub(crate) const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    /// The user that the headers, the parameters or else the certificate names.
    ///
    /// # Errors
    /// Those of [`auth::user`].
    pub(crate) fn user(
        &self,
        headers: &HeaderMap,
        parameters: (Option<&str>, Option<&str>),
    ) -> Result<Arc<User>, Answer> {
        let certified = self.certified.as_ref();
        let certified = certified.and_then(|name| self.shared.user_of(name));
        auth::user(&self.shared.runtime.users, headers, parameters, certified)
    }

    /// Whether this node can be asked.
    ///
    /// # Errors
    /// 503 where another is to be, while the database is being loaded, or CLIENT PAUSE holds such
    /// requests up.
    pub(crate) fn ready(&self, writes: bool) -> Result<(), Answer> {
        let shared = &self.shared;
        if writes {
            let taken = shared.takes_writes();
            taken.map_err(|to| Answer::busy(format!("this node takes no writes; {to}")))?;
        } else {
            let taken = shared.takes_reads(true);
            taken.map_err(|to| Answer::busy(format!("{BEHIND}; {to}")))?;
        }
        self.loaded(writes)
    }

    /// Whether the database is there to be asked, at whatever node.
    ///
    /// # Errors
    /// 503 while it is being loaded, or CLIENT PAUSE holds such requests up.
    pub(crate) fn loaded(&self, writes: bool) -> Result<(), Answer> {
        if self.shared.db.is_loading() {
            return Err(Answer::busy("the database is loading"));
        }
        match self.shared.pause.holds(writes) {
            Some(_) if writes => Err(Answer::busy(Failure::Paused.to_string())),
            Some(_) => Err(Answer::busy("all commands are paused by CLIENT PAUSE")),
            None => Ok(()),
        }
    }

    /// Counts bytes that came by `protocol`, uncompressed.
    pub(crate) fn received(&self, protocol: Protocol, bytes: u64) {
        let counter = &self.shared.protocols.intake.of(protocol).bytes;
        counter.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Runs `work` on a thread that may block, with one of the threads of `permits`.
    ///
    /// # Errors
    /// Those of [`Context::block`].
    pub(crate) async fn block_in<T: Send + 'static>(
        &self,
        permits: &Permits,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Answer> {
        let thread = permits.thread().await;
        self.block(|| (work(), drop(thread)).0).await
    }

    /// Runs `work` on a thread that may block, without waiting for one.
    ///
    /// # Errors
    /// 500 where it panics.
    pub(crate) async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Answer> {
        let alive = self.alive.clone();
        let work = || {
            let (_alive, _task) = (alive, together());
            work()
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| panicked())
    }

    /// Runs `work` on this thread, which others wait for: it takes a moment, and its reads wait for
    /// no store. Looks for series by their labels read no rows of parked ones.
    ///
    /// # Errors
    /// 500 where it panics.
    pub(crate) fn at_once<T>(work: impl FnOnce() -> T) -> Result<T, Answer> {
        let (_no_wait, _leave_rows) = (no_wait(), leave_rows());
        // Nobody sees what it leaves behind.
        catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
    }
}
