//! The TLS provider of every connection.

use std::sync::Once;

/// Installs the TLS provider of the process: `ring`, which needs only a C compiler to build.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A provider that is already installed is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
