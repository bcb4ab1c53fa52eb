//! The cryptography of every connection.

use std::sync::{Arc, Once};

/// That of the connections of this crate.
pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Makes the provider that of the process, for libraries that make connections by themselves.
pub fn install_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A provider that is already installed is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
