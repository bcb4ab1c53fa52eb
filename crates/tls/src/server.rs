//! What the ports that speak TLS speak it with.
//!
//! ServerOptions name files; the files make a configuration, which new connections begin with.
//! A reload makes another of the files as they are now, or leaves the one in force; open
//! connections keep theirs.

use crate::files;
use crate::hint::with_hint;
use crate::provider::provider;
use parking_lot::{Mutex, RwLock};
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Time that a peer has to agree on keys.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How often the reason of a failed handshake is told aloud.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Whether clients are asked for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthClients {
    /// They need one.
    Yes,
    /// They are not asked.
    No,
    /// They are asked, and served without one.
    Optional,
}

impl AuthClients {
    /// The word as the option spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Optional => "optional",
        }
    }

    /// What `word` says.
    pub fn parse(word: &[u8]) -> Option<Self> {
        let all = [Self::Yes, Self::No, Self::Optional];
        all.into_iter().find(|each| each.name().as_bytes() == word)
    }
}

/// Versions of the protocol that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// TLS 1.2.
    pub tls12: bool,
    /// TLS 1.3.
    pub tls13: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        let (tls12, tls13) = (true, true);
        Self { tls12, tls13 }
    }
}

impl Protocols {
    /// Reads `TLSv1.2 TLSv1.3`, as Redis has it.
    ///
    /// # Errors
    /// That one of the words is not a version, or that there is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut tls12, mut tls13) = (false, false);
        for word in text.split_ascii_whitespace() {
            match word.to_ascii_lowercase().as_str() {
                "tlsv1.2" => tls12 = true,
                "tlsv1.3" => tls13 = true,
                _ => {
                    let text = "is not supported: expected TLSv1.2, TLSv1.3 or both";
                    return Err(format!("{word} {text}"));
                }
            }
        }
        if !tls12 && !tls13 {
            return Err("expected TLSv1.2, TLSv1.3 or both".to_owned());
        }
        Ok(Self { tls12, tls13 })
    }

    /// The same as text.
    pub fn show(self) -> String {
        let names = [(self.tls12, "TLSv1.2"), (self.tls13, "TLSv1.3")];
        let spoken = names.into_iter().filter(|(is_spoken, _)| *is_spoken);
        spoken.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
    }

    fn versions(self) -> Vec<&'static SupportedProtocolVersion> {
        let versions = [(self.tls12, &version::TLS12), (self.tls13, &version::TLS13)];
        let spoken = versions.into_iter().filter(|(is_spoken, _)| *is_spoken);
        spoken.map(|(_, version)| version).collect()
    }
}

/// The options of the ports that speak TLS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerOptions {
    /// The server's certificate, and those between it and its authority.
    pub cert_file: Option<PathBuf>,
    /// Its private key.
    pub key_file: Option<PathBuf>,
    /// Authorities whose certificates clients may have.
    pub ca_cert_file: Option<PathBuf>,
    /// Whether clients are asked; without a word they need one where `ca_cert_file` is given.
    pub auth_clients: Option<AuthClients>,
    /// Versions that are spoken.
    pub protocols: Protocols,
    /// Whether the common name of a client's certificate is that of its user.
    pub maps_users: bool,
}

/// What new connections begin with.
#[derive(Clone, Debug)]
pub struct InForce {
    /// For `rustls`.
    pub config: Arc<ServerConfig>,
    /// Whether the common name of a client's certificate is that of its user.
    pub maps_users: bool,
    /// When the certificate expires, in seconds since 1970.
    pub expiry_s: i64,
}

impl InForce {
    /// The same without tickets for sessions. Peers that never read would leave them unread:
    /// then the kernel resets the connection at its end and drops what has not arrived.
    #[must_use]
    pub fn without_tickets(mut self) -> Self {
        Arc::make_mut(&mut self.config).send_tls13_tickets = 0;
        self
    }
}

/// What the ports speak TLS with, which a reload changes.
#[derive(Debug, Default)]
pub struct ServerTls {
    in_force: RwLock<Option<InForce>>,
    /// What it was made of. The lock is held during a reload, so that one follows the other.
    options: Mutex<ServerOptions>,
    /// Connections that ended before they were encrypted.
    pub failed: AtomicU64,
    told: Mutex<Option<Instant>>,
}

impl ServerOptions {
    /// Whether clients are asked for certificates.
    pub fn asks_clients(&self) -> AuthClients {
        self.auth_clients.unwrap_or(match self.ca_cert_file {
            Some(_) => AuthClients::Yes,
            None => AuthClients::No,
        })
    }

    /// Reads the files; nothing where none is named.
    ///
    /// # Errors
    /// A sentence that names the option or the file and says what is wrong.
    pub fn load(&self) -> Result<Option<InForce>, String> {
        let asks = self.asks_clients();
        let (cert_file, key_file) = match (&self.cert_file, &self.key_file) {
            (Some(cert_file), Some(key_file)) => (cert_file, key_file),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err("tls-cert-file needs tls-key-file".to_owned()),
            (None, Some(_)) => return Err("tls-key-file needs tls-cert-file".to_owned()),
        };
        let chain = files::certificates(cert_file)?;
        let expiry_s = files::expiry_s(cert_file, &chain)?;
        let key = files::private_key(key_file)?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&self.protocols.versions())
            .map_err(|error| error.to_string())?;
        let builder = match (asks, &self.ca_cert_file) {
            (AuthClients::No, _) if self.maps_users => {
                let text = "tls-auth-clients-user needs tls-ca-cert-file, and tls-auth-clients \
                            yes or optional";
                return Err(text.to_owned());
            }
            (AuthClients::No, _) => builder.with_no_client_auth(),
            (asks, None) => {
                let text = format!("tls-auth-clients {} needs tls-ca-cert-file", asks.name());
                return Err(text);
            }
            (asks, Some(path)) => {
                let authorities = Arc::new(files::authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider());
                let verifier = match asks {
                    AuthClients::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build();
                let verifier = verifier.map_err(|error| format!("{}: {error}", path.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| {
            let (cert_file, key_file) = (cert_file.display(), key_file.display());
            format!("{cert_file} with {key_file}: {}", with_hint(&error))
        })?;
        Ok(Some(InForce {
            config: Arc::new(config),
            maps_users: self.maps_users,
            expiry_s,
        }))
    }
}

impl ServerTls {
    /// One with the files of `options`.
    ///
    /// # Errors
    /// Those of [`ServerOptions::load`].
    pub fn load(options: &ServerOptions) -> Result<Self, String> {
        Ok(Self {
            in_force: RwLock::new(options.load()?),
            options: Mutex::new(options.clone()),
            ..Self::default()
        })
    }

    /// Whether the reason of a failed handshake is to be told aloud: that of one in a while, so
    /// that nobody fills the log.
    pub fn tells(&self) -> bool {
        let mut told = self.told.lock();
        let tells = told.is_none_or(|told| told.elapsed() >= TOLD_EVERY);
        if tells {
            *told = Some(Instant::now());
        }
        tells
    }

    /// What new connections begin with; `None` where there is no certificate.
    pub fn in_force(&self) -> Option<InForce> {
        self.in_force.read().clone()
    }

    /// Has new connections begin with the files of `options` from now on.
    ///
    /// # Errors
    /// Those of [`ServerOptions::load`], and that there is no certificate where there was one; what
    /// was in force stays.
    pub fn change(&self, options: &ServerOptions) -> Result<(), String> {
        let mut current = self.options.lock();
        self.put_in_force(options)?;
        current.clone_from(options);
        Ok(())
    }

    /// Reads the same files anew, for connections from now on.
    ///
    /// # Errors
    /// Those of [`ServerTls::change`].
    pub fn reload(&self) -> Result<(), String> {
        self.put_in_force(&self.options.lock())
    }

    fn put_in_force(&self, options: &ServerOptions) -> Result<(), String> {
        let loaded = options.load()?;
        let mut in_force = self.in_force.write();
        if in_force.is_some() && loaded.is_none() {
            return Err("tls-cert-file and tls-key-file must not be empty".to_owned());
        }
        *in_force = loaded;
        Ok(())
    }
}
