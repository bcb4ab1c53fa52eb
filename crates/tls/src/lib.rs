//! TLS: the certificates of the server's ports, what tools trust, and encrypted streams for the two
//! kinds of sockets of the server; and the runtime that one of them is for.
//!
//! ```text
//! server    options, files and the configuration in force on the ports; reloads
//! client    options of tools and their connections
//! stream    one encrypted connection on a socket that does not block: the Redis port
//! accept    one on the runtime: all other ports
//! runtime   what those ports and clients of the process run on
//! files     certificates and keys in PEM, with errors that name the file
//! hint      what the errors of handshakes mean
//! provider  the cryptography
//! ```
//!
//! The protocol is that of `rustls`, versions 1.2 and 1.3; its cryptography is `ring`, which
//! needs only a C compiler to build.
//!
//! Tested by `crates/server/tests/tls/` on every port, with certificates that are made there.

mod accept;
mod client;
mod files;
mod hint;
mod provider;
mod runtime;
mod server;
mod stream;

pub use accept::{Accepted, accept};
pub use client::{ClientOptions, Connector, Duplex, nothing_trusted};
pub use files::common_name;
pub use hint::{client_hint, with_hint};
pub use provider::install_provider;
pub use runtime::runtime;
pub use rustls;
pub use server::{AuthClients, HANDSHAKE_MAX, InForce, Protocols, ServerOptions, ServerTls};
pub use stream::{HELD_BYTES_MAX, Stream};
