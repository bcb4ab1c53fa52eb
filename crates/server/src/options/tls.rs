//! Options of TLS, named as in Redis.
//!
//! CONFIG SET puts the files in force for new connections; what is wrong with one is its error,
//! and what was in force stays.

use super::kind::{Kind, Written};
use super::nodes::NEEDS_CLUSTER;
use super::row::{Apply, Check, Need, Row, computed, row};
use latewood_engine::{Error, ErrorKind};
use latewood_tls::{AuthClients, Protocols};

pub(super) const ROWS: &[Row] = &[
    row("tls-listen ADDR:PORT", "")
        .is(Kind::Addresses(|of| &mut of.tls_listen))
        .help("Address and port to serve with TLS; may be given several times"),
    row("tls-read-listen ADDR:PORT", "")
        .is(Kind::Addresses(|of| &mut of.tls_read_listen))
        .help(
            "Address and port as those of --read-listen, to serve with TLS; may be given several \
             times",
        )
        .needs(NEEDS_CLUSTER),
    row("https ADDR:PORT", "")
        .is(Kind::Address(|of| &mut of.senders.https))
        .help("Address and port to serve HTTP with TLS"),
    row("tls-cert-file FILE", "")
        .is(Kind::Path(|of| &mut of.tls.cert_file))
        .help(
            "Certificate of the server in PEM, followed by those between it and its authority; \
             read anew at SIGHUP",
        )
        .live(RELOAD)
        .checked(LOADS)
        .needs(NEEDS_PORT),
    row("tls-key-file FILE", "")
        .is(Kind::Path(|of| &mut of.tls.key_file))
        .help("Private key of that certificate in PEM, without a passphrase")
        .live(RELOAD)
        .checked(LOADS)
        .needs(NEEDS_PORT),
    row("tls-ca-cert-file FILE", "")
        .is(Kind::Path(|of| &mut of.tls.ca_cert_file))
        .help("Certificates in PEM of the authorities whose certificates clients may have")
        .live(RELOAD)
        .checked(LOADS)
        .needs(NEEDS_PORT),
    computed(
        "tls-auth-clients yes|no|optional",
        "yes with --tls-ca-cert-file, else no",
    )
    .is(Kind::Form {
        takes: "yes, no or optional",
        written: Written::Text,
        put: |settings, text| {
            let word = AuthClients::parse(text.as_bytes());
            let none = || format!("{text:?} is not supported: expected yes, no or optional");
            settings.tls.auth_clients = Some(word.ok_or_else(none)?);
            Ok(())
        },
        show: |settings| settings.tls.asks_clients().name().to_owned(),
    })
    .help("Whether clients need a certificate of one of these authorities")
    .live(RELOAD)
    .checked(LOADS)
    .needs(NEEDS_PORT),
    row("tls-auth-clients-user CN|off", "off")
        .is(Kind::Form {
            takes: "CN or off",
            written: Written::Text,
            put: |settings, text| {
                settings.tls.maps_users = match text {
                    "CN" => true,
                    "off" => false,
                    _ => return Err(format!("{text:?} is not supported: expected CN or off")),
                };
                Ok(())
            },
            show: |settings| {
                let word = if settings.tls.maps_users { "CN" } else { "off" };
                word.to_owned()
            },
        })
        .help(
            "Whether the common name of a client's certificate is that of its ACL user, who is \
             then logged in",
        )
        .live(RELOAD)
        .checked(LOADS)
        .needs(NEEDS_PORT),
    row("tls-protocols VERSIONS", "TLSv1.2 TLSv1.3")
        .is(Kind::Form {
            takes: "TLSv1.2, TLSv1.3 or both",
            written: Written::Text,
            put: |settings, text| {
                settings.tls.protocols = Protocols::parse(text)?;
                Ok(())
            },
            show: |settings| settings.tls.protocols.show(),
        })
        .help("Versions of TLS to speak")
        .live(RELOAD)
        .checked(LOADS)
        .needs(NEEDS_PORT),
];

/// Without a port that speaks TLS nothing is encrypted.
const NEEDS_PORT: Need = |settings| {
    let has_line = settings.senders.lines.iter().any(|port| port.is_tls);
    let has_port = !settings.tls_listen.is_empty()
        || !settings.tls_read_listen.is_empty()
        || settings.senders.https.is_some();
    let missing =
        "a port that speaks TLS: tls-listen, tls-read-listen, https, or listen-lines with tls";
    (!has_line && !has_port).then_some(missing)
};

const RELOAD: Apply = |shared, settings| {
    let changed = shared.tls.change(&settings.tls);
    changed.map_err(|reason| Error::new(ErrorKind::Invalid, reason))
};

const LOADS: Check = |settings| settings.tls.load().map(drop);
