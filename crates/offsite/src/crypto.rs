//! The TLS of every connection.

use std::sync::Once;

/// Names the provider of TLS for the whole process. It is built in from C and
/// assembly that need nothing but a C compiler.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where one is named already, that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
