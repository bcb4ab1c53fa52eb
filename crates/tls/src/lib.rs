//! TLS: the certificates of the server's ports, what tools trust, and a stream that is encrypted
//! and never waits.
//!
//! ```text
//! server    options, files and the configuration in force on the ports; reloads
//! client    options of tools and their connections
//! stream    one encrypted connection on a socket that does not block
//! files     certificates and keys in PEM, with errors that name the file
//! hint      what the errors of handshakes mean
//! provider  the cryptography
//! ```
//!
//! The protocol is that of `rustls`, versions 1.2 and 1.3; its cryptography is `ring`, which
//! needs only a C compiler to build.
//!
//! Tested by `crates/server/tests/tls/` on every port, with certificates that are made there.

mod client;
mod files;
mod hint;
mod provider;
mod server;
mod stream;

pub use client::{ClientOptions, Connector, Duplex};
pub use files::common_name;
pub use hint::with_hint;
pub use provider::install_provider;
pub use rustls;
pub use server::{AuthClients, InForce, Protocols, ServerOptions, ServerTls};
pub use stream::{HELD_BYTES_MAX, Stream};
