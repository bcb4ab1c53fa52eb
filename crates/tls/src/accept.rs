//! The server's side of an encrypted connection on the runtime.
//!
//! The Redis port, whose loops are its own, has [`crate::Stream`] instead.

use crate::files::common_name;
use crate::server::{HANDSHAKE_MAX, InForce};
use std::io;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A connection that has agreed on keys.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: TlsStream<TcpStream>,
    /// The user that the peer's certificate names, where certificates name users.
    pub user_name: Option<String>,
}

/// Agrees on keys with a peer, within [`HANDSHAKE_MAX`].
///
/// # Errors
/// Those of the socket and of the handshake; `TimedOut`.
pub async fn accept(stream: TcpStream, tls: InForce) -> io::Result<Accepted> {
    let agreed = TlsAcceptor::from(tls.config).accept(stream);
    let stream = timeout(HANDSHAKE_MAX, agreed).await??;
    let name = common_name(stream.get_ref().1.peer_certificates());
    let user_name = name.filter(|_| tls.maps_users);
    Ok(Accepted { stream, user_name })
}
