//! Connections to brokers, each for one request at a time.
//!
//! A broker answers the requests of a connection one after the other, and a read may wait: what
//! shared its connection would wait with it, and fail with it. So a request takes a connection
//! that nothing else uses, and gives it back with the answer. One that an error or a time limit
//! ended is closed, never used again.

use super::failure::{no_answer, not_sent};
use crate::kafka::options::{Access, Login, Mechanism, Tls};
use crate::kafka::{KafkaError, Result};
use bytes::BytesMut;
use krafka::__private::network::{BrokerConnection, ConnectionConfig};
use krafka::__private::protocol::{ApiKey, VersionedDecode, VersionedEncode};
use krafka::auth::{AuthConfig, TlsConfig};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Brokers close what was idle for ten minutes; a request must not meet that.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Longest answer, in bytes. A read asks for less.
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// The kind of a request, and the version of it that is spoken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind(pub(super) ApiKey, pub(super) i16);

/// The connections that no request uses now, by address.
pub(super) struct Connections {
    config: ConnectionConfig,
    idle: Mutex<HashMap<String, Vec<BrokerConnection>>>,
}

impl Connections {
    /// # Errors
    /// `Refused` if the settings contradict each other.
    pub(super) fn new(access: &Access) -> Result<Self> {
        let mut config = ConnectionConfig::builder()
            .client_id("latewood")
            .request_timeout(access.limit)
            .connect_timeout(access.limit)
            .max_response_size(ANSWER_BYTES_MAX)
            .max_in_flight_requests(1);
        if access.tls.is_some() || access.login.is_some() {
            config = config.auth(credentials(access));
        }
        let config = config.build();
        Ok(Self {
            config: config.map_err(|error| KafkaError::Refused(error.to_string()))?,
            idle: Mutex::default(),
        })
    }

    /// A connection to a broker, that nothing else uses.
    ///
    /// # Errors
    /// `Refused` if the broker does, else `Unavailable`.
    pub(super) async fn take(&self, broker: &str) -> Result<BrokerConnection> {
        if let Some(connection) = self.take_idle(broker) {
            return Ok(connection);
        }
        let connection = BrokerConnection::connect(broker, self.config.clone()).await;
        connection.map_err(|error| not_sent(broker, &error))
    }

    /// The one used last, which is the least likely to have been closed.
    fn take_idle(&self, broker: &str) -> Option<BrokerConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let of_broker = idle.get_mut(broker)?;
        of_broker.retain(|one| one.is_usable() && one.idle_duration() < IDLE_MAX);
        of_broker.pop()
    }

    fn give_back(&self, connection: BrokerConnection) {
        let broker = connection.address().to_owned();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(broker).or_default().push(connection);
    }

    /// Sends one request, once, and waits for its answer.
    ///
    /// # Errors
    /// `Refused` if the broker does not know the request; `Unknown` without an answer.
    pub(super) async fn ask<Request, Answer>(
        &self,
        connection: BrokerConnection,
        kind: Kind,
        request: &Request,
        wait: Duration,
    ) -> Result<Answer>
    where
        Request: VersionedEncode,
        Answer: VersionedDecode,
    {
        let put = |buffer: &mut BytesMut| request.encode_versioned(kind.1, buffer);
        self.ask_with(connection, kind, put, wait).await
    }

    /// [`Connections::ask`] with a body as it is put into a buffer.
    pub(super) async fn ask_with<Answer: VersionedDecode>(
        &self,
        connection: BrokerConnection,
        Kind(key, version): Kind,
        put: impl FnOnce(&mut BytesMut) -> krafka::Result<()>,
        wait: Duration,
    ) -> Result<Answer> {
        let broker = connection.address().to_owned();
        if connection
            .negotiate_api_version(key, version, version)
            .is_none()
        {
            let text = format!("{broker} does not support version {version} of {key:?}");
            return Err(KafkaError::Refused(text));
        }
        let limit = self.config.request_timeout() + wait;
        let answer = connection.send_request_with_timeout(key, version, limit, put);
        let answer = answer.await.and_then(|mut answer| {
            self.give_back(connection);
            Answer::decode_versioned(version, &mut answer)
        });
        answer.map_err(|error| no_answer(&broker, &error))
    }
}

/// What the client needs to encrypt and to log in.
fn credentials(access: &Access) -> AuthConfig {
    let config = match &access.login {
        None => AuthConfig::plaintext(),
        Some(Login {
            mechanism,
            user,
            password,
        }) => match mechanism {
            Mechanism::Plain => AuthConfig::sasl_plain(user, password.reveal()),
            Mechanism::ScramSha256 => AuthConfig::sasl_scram_sha256(user, password.reveal()),
            Mechanism::ScramSha512 => AuthConfig::sasl_scram_sha512(user, password.reveal()),
        },
    };
    match &access.tls {
        None => config,
        Some(tls) => config.with_tls(trust(tls)),
    }
}

/// The files of TLS, as the client takes them.
pub(super) fn trust(tls: &Tls) -> TlsConfig {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let config = match &tls.cacert {
        Some(path) => TlsConfig::new().with_ca_cert(text(path)),
        None => TlsConfig::new().with_native_roots(),
    };
    match &tls.identity {
        Some((cert, key)) => config.with_client_cert(text(cert), text(key)),
        None => config,
    }
}
