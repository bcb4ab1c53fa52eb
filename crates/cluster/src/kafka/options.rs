//! Where a Kafka cluster is and how one gets in: the URL and the options beside it.
//!
//! Invariant: a password is in no error and no `Debug` text, and a URL with a password in it is
//! refused without being repeated.
//!
//! Tested here as tables of texts, and in `tests/broker/access.rs` against brokers that ask for
//! TLS and passwords.

use latewood_tls::ClientOptions;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, fs};

const SCHEME: &str = "kafka://";
/// Longest name, in bytes. A topic's may have 249, and those of a database add to its own.
pub const NAME_BYTES_MAX: usize = 200;
const PORT_DEFAULT: u16 = 9092;
/// Where the password is taken from when no file is named.
pub const PASSWORD_VARIABLE: &str = "LATEWOOD_KAFKA_PASSWORD";
/// How long a call may take, unless said otherwise.
const LIMIT_DEFAULT: Duration = Duration::from_secs(10);

/// `kafka://HOST:PORT,HOST:PORT/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `HOST:PORT` of the brokers to ask first, at least one; they name the others.
    pub brokers: Vec<String>,
    /// What the topics of this database begin with.
    pub name: String,
}

/// How a client connects.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Connections are encrypted. The files are read anew for each, as they may be renewed.
    pub tls: Option<ClientOptions>,
    /// As whom; nobody without it.
    pub login: Option<Login>,
    /// How long a call may take, connecting included.
    pub limit: Duration,
}

/// A user and how it proves itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// How.
    pub mechanism: Mechanism,
    /// The name.
    pub user: String,
    /// The password.
    pub password: Password,
}

/// A SASL mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The password as it is: only with TLS.
    Plain,
    /// `SCRAM-SHA-256`.
    ScramSha256,
    /// `SCRAM-SHA-512`.
    ScramSha512,
}

/// A password, which no text shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// The options beside the URL, as given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Encrypt; implied by the three files.
    pub tls: bool,
    /// File of authorities.
    pub cacert: Option<PathBuf>,
    /// File of the certificate to show; needs `key`.
    pub cert: Option<PathBuf>,
    /// File of its private key; needs `cert`.
    pub key: Option<PathBuf>,
    /// `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`; the last without it, if there is a user.
    pub mechanism: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// A file with the password, whose last line break does not count.
    pub password_file: Option<PathBuf>,
    /// The password from the environment, for when there is no file.
    pub password: Option<Password>,
    /// How long a call may take.
    pub limit: Option<Duration>,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            return Err(
                "invalid Kafka URL: user and password are options, not a part of it".into(),
            );
        }
        let refused = |reason: &str| format!("invalid Kafka URL \"{text}\": {reason}");
        let rest = text.strip_prefix(SCHEME);
        let rest = rest.ok_or_else(|| refused("must begin with kafka://"))?;
        if rest.contains(['?', '#']) {
            return Err(refused("? and # are not supported in it"));
        }
        let (brokers, name) = rest.split_once('/').unwrap_or((rest, ""));
        if name.is_empty() {
            return Err(refused("missing name: kafka://HOST:PORT,.../NAME"));
        }
        check_name(name).map_err(|reason| refused(&reason))?;
        let brokers = brokers.split(',').map(parse_broker);
        Ok(Self {
            brokers: brokers
                .collect::<Result<_, _>>()
                .map_err(|reason| refused(&reason))?,
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}/{}", self.brokers.join(","), self.name)
    }
}

/// Whether topics may begin so.
fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !name.bytes().all(is_allowed) {
        return Err("invalid name: letters, digits, '.', '_' and '-' are allowed".into());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "name is too long: {NAME_BYTES_MAX} characters are allowed"
        ));
    }
    Ok(())
}

/// `HOST:PORT` of a broker; a host of IPv6 is in brackets.
fn parse_broker(text: &str) -> Result<String, String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
    if host.is_empty() || (host.contains([':', '[', ']']) && !is_bracketed) {
        return Err(format!("invalid broker \"{text}\": must be HOST:PORT"));
    }
    let port = match port.map(str::parse::<u16>) {
        None => PORT_DEFAULT,
        Some(Ok(port)) if port > 0 => port,
        Some(_) => return Err(format!("invalid port number in \"{text}\"")),
    };
    Ok(format!("{host}:{port}"))
}

impl Default for Access {
    fn default() -> Self {
        Self {
            tls: None,
            login: None,
            limit: LIMIT_DEFAULT,
        }
    }
}

impl TryFrom<Given> for Access {
    type Error = String;

    /// Reads the file of the password.
    fn try_from(given: Given) -> Result<Self, String> {
        match (&given.cert, &given.key) {
            (Some(_), None) => return Err("a certificate needs its private key".into()),
            (None, Some(_)) => return Err("a private key needs its certificate".into()),
            (None, None) | (Some(_), Some(_)) => {}
        }
        let is_encrypted = given.tls || given.cacert.is_some() || given.cert.is_some();
        let tls = is_encrypted.then(|| ClientOptions {
            tls: true,
            cacert: given.cacert.clone(),
            cert: given.cert.clone(),
            key: given.key.clone(),
        });
        Ok(Self {
            login: given.login(is_encrypted)?,
            tls,
            limit: given.limit.unwrap_or(LIMIT_DEFAULT),
        })
    }
}

impl Given {
    fn login(&self, is_encrypted: bool) -> Result<Option<Login>, String> {
        let Some(user) = &self.user else {
            return match (&self.mechanism, &self.password_file) {
                (None, None) => Ok(None),
                (Some(_), _) => Err("a SASL mechanism needs a user".into()),
                (None, Some(_)) => Err("a password needs a user".into()),
            };
        };
        if user.is_empty() || user.contains('\0') {
            return Err("invalid user name".into());
        }
        let mechanism = match &self.mechanism {
            Some(name) => name.parse()?,
            None => Mechanism::ScramSha512,
        };
        if mechanism == Mechanism::Plain && !is_encrypted {
            return Err("PLAIN sends the password as it is: TLS is required".into());
        }
        let password = match (&self.password_file, &self.password) {
            (Some(path), _) => Password::read(path)?,
            (None, Some(password)) => password.clone(),
            (None, None) => {
                return Err(format!(
                    "no password supplied for user \"{user}\": name a file, or set {PASSWORD_VARIABLE}"
                ));
            }
        };
        Ok(Some(Login {
            mechanism,
            user: user.clone(),
            password,
        }))
    }
}

impl Mechanism {
    /// As the protocol and the options spell it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl FromStr for Mechanism {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = [Self::Plain, Self::ScramSha256, Self::ScramSha512].into_iter();
        let named = all.find(|mechanism| mechanism.name().eq_ignore_ascii_case(text));
        named.ok_or_else(|| {
            format!(
                "unknown SASL mechanism \"{text}\": PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are supported"
            )
        })
    }
}

impl Password {
    /// A password as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The one of the environment.
    pub fn from_environment() -> Option<Self> {
        std::env::var(PASSWORD_VARIABLE).ok().map(Self)
    }

    /// The one in a file, without the line break that editors put behind it.
    fn read(path: &Path) -> Result<Self, String> {
        let failed = |reason: String| {
            let path = path.display();
            format!("could not read password file \"{path}\": {reason}")
        };
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() || text.contains('\0') {
            return Err(failed("it is empty, or binary".into()));
        }
        Ok(Self(text.to_owned()))
    }

    /// What is sent to a broker.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(a password)")
    }
}

#[cfg(test)]
mod tests;
