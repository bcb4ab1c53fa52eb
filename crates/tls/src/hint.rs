//! What the errors of handshakes mean to who reads them.

/// A part of the text, and what it means.
const HINTS: [(&str, &str); 5] = [
    (
        "InvalidContentType",
        "the server does not speak TLS there: leave out --tls",
    ),
    (
        "UnknownIssuer",
        "--cacert names a file with the authority of the server's certificate",
    ),
    (
        "CaUsedAsEndEntity",
        "the certificate must not be that of an authority (basicConstraints CA:FALSE)",
    ),
    (
        "UnsupportedCertVersion",
        "the certificate must be of version 3",
    ),
    (
        "CertificateRequired",
        "the server asks for a certificate: give --cert and --key",
    ),
];

/// The text of a failed handshake, and what it means where that is known.
pub fn with_hint(error: &str) -> String {
    let hint = HINTS.iter().find(|(mark, _)| error.contains(mark));
    hint.map_or_else(|| error.to_owned(), |(_, hint)| format!("{error}; {hint}"))
}
