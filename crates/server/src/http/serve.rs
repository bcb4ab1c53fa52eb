//! Connections: accepted within limits, served, ended.

use super::context::{Context, Peer};
use super::refusal::Explained;
use super::stall::{STALL_MAX, Unstalled};
use super::{Listeners, routes};
use crate::base::clock::now_ms;
use crate::state::{Runtime, Shared};
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use latewood_tls::{Accepted, accept as accept_tls};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Longest time that requests under way may take once the server stops.
pub(super) const STOP_MAX: Duration = Duration::from_secs(10);
/// Longest time for a request's head to come, from the end of the one before.
const HEAD_TIME_MAX: Duration = Duration::from_secs(75);
/// Bytes of a request's head.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Lines of a request's head.
pub(super) const HEADERS_MAX: usize = 100;
/// What is done when the system has no socket left.
const PAUSE: Duration = Duration::from_millis(100);

/// One open connection, for as long as it lives.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.protocols.http.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves at `listeners` until `stop` says so; then finishes what is under way.
///
/// # Errors
/// If a listener cannot be registered with the runtime.
pub(super) async fn serve(
    context: Context,
    listeners: Listeners,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let register = |listener: Option<_>| listener.map(TcpListener::from_std).transpose();
    let (plain, tls) = (register(listeners.plain)?, register(listeners.tls)?);
    let mut server = Server {
        router: routes(context.clone()),
        context,
        graceful: GracefulShutdown::new(),
        stop: stop.clone(),
        connections: JoinSet::new(),
    };
    loop {
        let (accepted, is_tls) = tokio::select! {
            accepted = accept(plain.as_ref()) => (accepted, false),
            accepted = accept(tls.as_ref()) => (accepted, true),
            Some(_) = server.connections.join_next() => continue,
            // An error says that nobody is left to say it.
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, peer)) => server.begin(stream, peer, is_tls),
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection over HTTP; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop((plain, tls));
    let graceful = server.graceful;
    if tokio::time::timeout(STOP_MAX, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some HTTP requests were not finished");
    }
    server.connections.shutdown().await;
    Ok(())
}

/// The next connection; never one where there is no listener.
async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// What connections are served with.
struct Server {
    context: Context,
    router: Router,
    graceful: GracefulShutdown,
    stop: watch::Receiver<bool>,
    /// The tasks of connections.
    connections: JoinSet<()>,
}

impl Server {
    fn begin(&mut self, stream: TcpStream, peer: SocketAddr, is_tls: bool) {
        let shared = &self.context.shared;
        let connections = &shared.protocols.http;
        connections.accepted.fetch_add(1, Ordering::Relaxed);
        let open = connections.open.load(Ordering::Relaxed);
        let is_full = shared.runtime.is_full(open as usize, &stream);
        if !may_come(&shared.runtime, is_full, peer) {
            connections.rejected.note(now_ms());
            tracing::debug!(%peer, "refused a connection over HTTP");
            return;
        }
        connections.open.fetch_add(1, Ordering::Relaxed);
        let open = Open(Arc::clone(shared));
        // Answers are small: they need not wait for more.
        let _ = stream.set_nodelay(true);
        let watcher = self.graceful.watcher();
        if !is_tls {
            let router = self.router.clone();
            self.connections
                .spawn(run(stream, router, watcher, peer, open));
            return;
        }
        let (mut context, mut stop) = (self.context.clone(), self.stop.clone());
        self.connections.spawn(async move {
            let agreed = tokio::select! {
                agreed = agree(&context.shared, stream) => agreed,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            match agreed {
                Ok(Accepted { stream, user_name }) => {
                    context.certified = user_name.map(Arc::from);
                    run(stream, routes(context), watcher, peer, open).await;
                }
                Err(error) => context.shared.handshake_failed(peer, &error),
            }
        });
    }
}

/// Agrees on keys with a peer.
async fn agree(shared: &Shared, stream: TcpStream) -> io::Result<Accepted> {
    let tls = shared.tls.in_force().ok_or(ErrorKind::NotConnected)?;
    accept_tls(stream, tls).await
}

/// Serves a connection until it ends.
async fn run(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    watcher: Watcher,
    peer: SocketAddr,
    open: Open,
) {
    let is_taken = Arc::new(AtomicBool::new(false));
    let stream = Explained::new(Unstalled::new(stream, STALL_MAX), Arc::clone(&is_taken));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer.ip()));
        is_taken.store(true, Ordering::Relaxed);
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%peer, %error, "a connection over HTTP ended");
    }
    drop(open);
}

/// Whether a new connection is served: by the same rules as on the Redis side.
fn may_come(runtime: &Runtime, is_full: bool, peer: SocketAddr) -> bool {
    let is_safe = peer.ip().to_canonical().is_loopback()
        || !runtime.users.is_open()
        || !runtime.protected_mode.load(Ordering::Relaxed);
    is_safe && !is_full
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::testing;
    use crate::state::Settings;

    #[test]
    fn protected_mode_serves_this_machine_only_until_there_is_a_password() {
        let settings = Settings {
            connections_max: 10,
            protected_mode: true,
            ..Settings::default()
        };
        let runtime = Runtime::new(&settings, testing::users());
        let near: SocketAddr = "[::ffff:127.0.0.1]:1".parse().unwrap();
        let far: SocketAddr = "192.0.2.1:1".parse().unwrap();
        assert!(may_come(&runtime, false, near) && !may_come(&runtime, false, far));
        assert!(!may_come(&runtime, true, near));
        runtime.set_password("sesame");
        assert!(may_come(&runtime, false, far));
        runtime.set_password("");
        runtime.protected_mode.store(false, Ordering::Relaxed);
        assert!(may_come(&runtime, false, far));
    }
}
