//! A blocking connection to a server, with errors that name the server and the command.
//!
//! Speaks RESP2: every version of RedisTimeSeries supports it and prints numbers that parse
//! back bit for bit.

use crate::args::Login;
use crate::error::{Error, Result};
use crate::other_port;
use crate::value::parse_value;
use latewood_tls::rustls::StreamOwned;
use latewood_tls::{ClientOptions, Connector, Duplex, install_provider, with_hint};
use redis::{
    Client, ClientTlsConfig, Cmd, Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    Pipeline, TlsCertificates, Value,
};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The port of a server named without one.
const PORT_DEFAULT: u16 = 6379;
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Timeout of a reply; a page of a very long series is the slowest.
const REPLY_PATIENCE: Duration = Duration::from_secs(60);
/// Time that a read without a protocol waits.
const SILENCE: Duration = Duration::from_millis(200);

/// A reply: a value, or the text of an error.
pub(crate) type Answer = std::result::Result<Value, String>;

/// A connection to a server.
pub(crate) struct Link {
    connection: Connection,
    /// As in "the source 127.0.0.1:6379".
    name: String,
    /// It supports the `LATEWOOD` commands, which move every value and label.
    is_exact: bool,
    /// NaN values are read with their bits.
    tells_nans: bool,
}

impl Link {
    /// Connects, authenticates, selects `db` and sends PING.
    ///
    /// # Errors
    /// When no server listens, the password is wrong, or the server does not speak RESP.
    pub(crate) fn open(
        role: &str,
        address: &str,
        login: &Login,
        db: u16,
        tls: &ClientOptions,
    ) -> Result<Self> {
        let name = format!("{role} {address}");
        let failed = |reason: String| Error::Connect {
            server: name.clone(),
            reason,
        };
        let (address, is_tls) = tls.split(address).map_err(&failed)?;
        let place = parse_address(address, is_tls).map_err(&failed)?;
        let connection = place
            .clone()
            .into_connection_info()
            .map(|info| {
                // The handshake has no timeout; its commands are sent below instead.
                let settings = info.redis_settings().clone().set_skip_set_lib_name();
                info.set_redis_settings(settings)
            })
            .map_err(|error| error.to_string())
            .and_then(|info| client(info, &place, tls))
            .map_err(&failed)?
            .get_connection_with_timeout(CONNECT_PATIENCE)
            .and_then(|connection| {
                connection.set_read_timeout(Some(REPLY_PATIENCE))?;
                connection.set_write_timeout(Some(REPLY_PATIENCE))?;
                Ok(connection)
            })
            .map_err(|error| failed(with_hint(&error)))?;
        let mut link = Link {
            connection,
            name,
            is_exact: false,
            tells_nans: false,
        };
        link.greet(login, db).map_err(|error| match error {
            Error::Cut { server, reason } => Error::Connect {
                server,
                reason: speaks_otherwise(&place).unwrap_or(reason),
            },
            other => other,
        })?;
        let probe = redis::cmd("LATEWOOD").arg(&["RANGE", "", "0", "0"]).take();
        link.is_exact = link
            .ask(&probe)?
            .err()
            .is_none_or(|text| is_about_the_key(&text));
        link.tells_nans = link.is_exact;
        Ok(link)
    }

    fn greet(&mut self, login: &Login, db: u16) -> Result<()> {
        let mut commands = Vec::new();
        if let Some(password) = &login.password {
            let mut auth = redis::cmd("AUTH");
            if let Some(user) = &login.user {
                auth.arg(user);
            }
            commands.push(auth.arg(password).take());
        }
        if db != 0 {
            commands.push(redis::cmd("SELECT").arg(db).take());
        }
        commands.push(redis::cmd("PING"));
        for command in commands {
            if let Err(text) = self.ask(&command)? {
                return Err(Error::Connect {
                    server: self.name.clone(),
                    reason: text,
                });
            }
        }
        Ok(())
    }

    /// As in "the source 127.0.0.1:6379".
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a Latewood that accepts every value and label.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Whether its samples include the bits of a NaN.
    pub(crate) fn tells_nans(&self) -> bool {
        self.tells_nans
    }

    /// Reads every NaN as the same value from now on.
    pub(crate) fn take_nans_as_one(&mut self) {
        self.tells_nans = false;
    }

    /// Sends one command; an error reply is a result, not an error.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(crate) fn ask(&mut self, command: &Cmd) -> Result<Answer> {
        let answer = command.query::<Value>(&mut self.connection);
        self.sort(answer)
    }

    /// Sends one command that must succeed.
    ///
    /// # Errors
    /// When the connection is lost or the server refuses.
    pub(crate) fn run(&mut self, command: &Cmd) -> Result<Value> {
        let answer = self.ask(command)?;
        answer.map_err(|text| self.refused(command_name(command), text))
    }

    /// Sends all commands at once and returns their replies in order.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(crate) fn ask_all(&mut self, commands: &mut Pipeline) -> Result<Vec<Answer>> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let answers = commands
            .ignore_errors()
            .query::<Vec<redis::RedisResult<Value>>>(&mut self.connection);
        answers
            .map_err(|error| self.lost(&error))?
            .into_iter()
            .map(|answer| self.sort(answer))
            .collect()
    }

    pub(crate) fn refused(&self, command: String, text: String) -> Error {
        let server = self.name.clone();
        Error::Refused {
            server,
            command,
            text,
        }
    }

    /// The error for a reply of unknown format.
    pub(crate) fn unexpected(&self, command: &str) -> Error {
        Error::Reply {
            server: self.name.clone(),
            command: command.to_owned(),
        }
    }

    /// The reply, which may be an error; any other error is a lost connection.
    fn sort(&self, answer: redis::RedisResult<Value>) -> Result<Answer> {
        let error = match answer {
            Ok(value) => return Ok(Ok(value)),
            Err(error) => error,
        };
        match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => Ok(Err(format!("{code} {detail}"))),
            (Some(code), None) => Ok(Err(code.to_owned())),
            (None, _) => Err(self.lost(&error)),
        }
    }

    fn lost(&self, error: &redis::RedisError) -> Error {
        Error::Cut {
            server: self.name.clone(),
            reason: with_hint(error),
        }
    }
}

/// Whether an error text says that the key does not exist.
pub(crate) fn says_no_such_key(text: &str) -> bool {
    text.contains("the key does not exist")
}

/// Whether an error is about the key of a permitted command: it does not exist, or this user
/// may not access it.
pub(crate) fn is_about_the_key(text: &str) -> bool {
    says_no_such_key(text) || text.contains("No permissions to access a key")
}

/// The command `verb` of a series, as a `LATEWOOD` command if the server `is_exact`.
pub(crate) fn series_command(is_exact: bool, verb: &str) -> Cmd {
    if is_exact {
        redis::cmd("LATEWOOD").arg(verb).take()
    } else {
        redis::cmd(&format!("TS.{verb}"))
    }
}

/// The bytes of a string of any type.
pub(crate) fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.as_bytes()),
        Value::Okay => Some(b"OK"),
        _ => None,
    }
}

/// The elements of an array.
pub(crate) fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) | Value::Set(items) => Some(items),
        _ => None,
    }
}

/// An integer, also one sent as a string.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => std::str::from_utf8(bytes(other)?).ok()?.parse().ok(),
    }
}

/// A floating point number, also one sent as a string.
pub(crate) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        other => parse_value(bytes(other)?),
    }
}

fn command_name(command: &Cmd) -> String {
    match command.args_iter().next() {
        Some(redis::Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
        _ => "a command".to_owned(),
    }
}

/// The client of a server at `place`.
fn client(
    info: ConnectionInfo,
    place: &ConnectionAddr,
    tls: &ClientOptions,
) -> std::result::Result<Client, String> {
    let client = match place {
        ConnectionAddr::TcpTls { .. } => {
            install_provider();
            // What is wrong with a file is told with its name.
            tls.config()?;
            let [root_cert, cert, key] = tls.pems()?;
            let client_tls = cert
                .zip(key)
                .map(|(client_cert, client_key)| ClientTlsConfig {
                    client_cert,
                    client_key,
                });
            let certificates = TlsCertificates {
                client_tls,
                root_cert,
            };
            Client::build_with_tls(info, certificates)
        }
        _ => Client::open(info),
    };
    client.map_err(|error| error.to_string())
}

/// Connects to a server, without a word of the protocol. A read that gets nothing for a while fails:
/// [`is_silence`].
///
/// # Errors
/// When no server listens, or it does not agree on keys.
pub(crate) fn channel(name: &str, address: &str, tls: &ClientOptions) -> Result<Box<dyn Duplex>> {
    let failed = |reason: String| Error::Connect {
        server: name.to_owned(),
        reason,
    };
    let (address, is_tls) = tls.split(address).map_err(failed)?;
    let stream = match parse_address(address, is_tls).map_err(failed)? {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            let host = if host.contains(':') {
                format!("[{host}]")
            } else {
                host
            };
            let connector = tls.connector(is_tls).map_err(failed)?;
            over_tcp(&connector, &format!("{host}:{port}"))
        }
        ConnectionAddr::Unix(path) => UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(SILENCE))?;
            Ok(Box::new(stream) as Box<dyn Duplex>)
        }),
        _ => return Err(failed("unknown form of address".to_owned())),
    };
    stream.map_err(|error| failed(error.to_string()))
}

fn over_tcp(connector: &Connector, address: &str) -> io::Result<Box<dyn Duplex>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CONNECT_PATIENCE))?;
    let session = connector.agree(&mut stream, address);
    let session = session.map_err(|error| io::Error::new(error.kind(), with_hint(&error)))?;
    stream.set_read_timeout(Some(SILENCE))?;
    Ok(match session {
        Some(session) => Box::new(StreamOwned::new(session, stream)),
        None => Box::new(stream),
    })
}

/// Whether a read failed since nothing came.
pub(crate) fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn speaks_otherwise(place: &ConnectionAddr) -> Option<String> {
    match place {
        ConnectionAddr::Tcp(host, port) => other_port::as_other_than_redis((host.as_str(), *port)),
        _ => None,
    }
}

/// Where `text` is, by a connection that is encrypted or not.
fn parse_address(text: &str, is_tls: bool) -> std::result::Result<ConnectionAddr, String> {
    if text.contains('/') {
        if is_tls {
            return Err("TLS over a unix socket is not supported".to_owned());
        }
        let path = text.strip_prefix("unix:").unwrap_or(text);
        return Ok(ConnectionAddr::Unix(path.into()));
    }
    let (host, port) = match text.rsplit_once(':') {
        // `::1` is an address without a port, `[::1]:6379` one with it.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port
                .parse()
                .map_err(|_| format!("{port} is not a port number"))?;
            (host, port)
        }
        _ => (text, PORT_DEFAULT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err("missing host name".to_owned());
    }
    let host = host.to_owned();
    if !is_tls {
        return Ok(ConnectionAddr::Tcp(host, port));
    }
    Ok(ConnectionAddr::TcpTls {
        host,
        port,
        insecure: false,
        tls_params: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_every_form() {
        let tcp = |host: &str, port| Ok(ConnectionAddr::Tcp(host.to_owned(), port));
        let parse_address = |text| parse_address(text, false);
        assert_eq!(parse_address("db:7000"), tcp("db", 7000));
        assert_eq!(parse_address("db"), tcp("db", PORT_DEFAULT));
        assert_eq!(parse_address("::1"), tcp("::1", PORT_DEFAULT));
        assert_eq!(parse_address("[::1]:7000"), tcp("::1", 7000));
        for unix in ["/run/redis.sock", "unix:/run/redis.sock"] {
            assert_eq!(
                parse_address(unix),
                Ok(ConnectionAddr::Unix("/run/redis.sock".into()))
            );
        }
        let encrypted = Ok(ConnectionAddr::TcpTls {
            host: "db".to_owned(),
            port: 7000,
            insecure: false,
            tls_params: None,
        });
        assert_eq!(super::parse_address("db:7000", true), encrypted);
        assert!(super::parse_address("/run/redis.sock", true).is_err());
        for wrong in ["db:port", "db:99999", ":6379", ""] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_in_words_read_back() {
        for (text, number) in [("1E300", 1e300_f64), ("5E-324", 5e-324), ("-0", -0.0)] {
            let value = Value::SimpleString(text.to_owned());
            assert_eq!(float(&value).map(f64::to_bits), Some(number.to_bits()));
        }
        assert!(float(&Value::SimpleString("NaN".into())).is_some_and(f64::is_nan));
        assert_eq!(float(&Value::Nil), None);
        assert_eq!(integer(&Value::BulkString(b"12".to_vec())), Some(12));
    }
}
