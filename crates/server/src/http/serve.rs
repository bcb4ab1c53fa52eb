//! Connections: accepted within limits, served, ended.

use super::stall::{STALL_MAX, Unstalled};
use crate::state::{Runtime, Shared};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Longest time that requests under way may take once the server stops.
pub(super) const STOP_MAX: Duration = Duration::from_secs(10);
/// Longest time for a request's head to come, from the end of the one before.
const HEAD_TIME_MAX: Duration = Duration::from_secs(75);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Lines of a request's head.
const HEADERS_MAX: usize = 100;
/// What is done when the system has no socket left.
const PAUSE: Duration = Duration::from_millis(100);

/// One open connection, for as long as it lives.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.protocols.http.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves `router` at `listener` until `stop` says so; then finishes what is under way.
///
/// # Errors
/// If the listener cannot be registered with the runtime.
pub(super) async fn serve(
    shared: Arc<Shared>,
    router: Router,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // An error says that nobody is left to say it.
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, peer)) => begin(&shared, &router, &graceful, stream, peer),
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection over HTTP; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(STOP_MAX, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some HTTP requests were not finished");
    }
    Ok(())
}

fn begin(
    shared: &Arc<Shared>,
    router: &Router,
    graceful: &GracefulShutdown,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let connections = &shared.protocols.http;
    connections.accepted.fetch_add(1, Ordering::Relaxed);
    let open = connections.open.load(Ordering::Relaxed);
    let is_full = shared.runtime.is_full(open as usize, &stream);
    if !may_come(&shared.runtime, is_full, peer) {
        connections.rejected.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%peer, "refused a connection over HTTP");
        return;
    }
    connections.open.fetch_add(1, Ordering::Relaxed);
    let open = Open(Arc::clone(shared));
    // Answers are small: they need not wait for more.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Unstalled::new(stream, STALL_MAX)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%peer, %error, "a connection over HTTP ended");
        }
        drop(open);
    });
}

/// Whether a new connection is served: by the same rules as on the Redis side.
fn may_come(runtime: &Runtime, is_full: bool, peer: SocketAddr) -> bool {
    let is_safe = peer.ip().to_canonical().is_loopback()
        || !runtime.users.default_has_no_password()
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
