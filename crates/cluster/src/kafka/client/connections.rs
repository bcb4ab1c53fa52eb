//! The connections to all brokers, each for one request at a time.
//!
//! A broker answers the requests of a connection one after the other, and a read may wait: what
//! shared its connection would wait with it, and fail with it. So a request takes a connection
//! that nothing else uses, and gives it back with the answer. One that an error or a deadline
//! ended is closed, never used again.

use super::connection::{Ask, Connection, Watch};
use super::failure::not_asked;
use super::{login, stream};
use crate::kafka::options::Access;
use crate::kafka::{KafkaError, Result};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The part of a call's limit that connecting may take.
const CONNECTING: u32 = 2;

/// How to connect, and the connections that no request uses now, by address.
pub(super) struct Connections {
    access: Access,
    idle: Mutex<HashMap<String, Vec<Connection>>>,
}

impl Connections {
    /// # Errors
    /// `Refused` with a sentence that names a file of TLS that cannot be used.
    pub(super) fn new(access: &Access) -> Result<Self> {
        if let Some(tls) = &access.tls {
            tls.config().map_err(KafkaError::Refused)?;
        }
        Ok(Self {
            access: access.clone(),
            idle: Mutex::default(),
        })
    }

    /// Sends one request, once, and waits for its answer.
    ///
    /// # Errors
    /// `Refused` if the broker does not let the client in or know the request, `Unavailable` if
    /// it was not sent, `Unknown` if it may have been.
    pub(super) fn ask<R: Ask>(
        &self,
        broker: &str,
        request: &R,
        deadline: Instant,
    ) -> Result<R::Answer> {
        self.ask_watched(broker, request, deadline, None)
    }

    /// The same, as long as `watch` does not know that the answer will not come.
    pub(super) fn ask_watched<R: Ask>(
        &self,
        broker: &str,
        request: &R,
        deadline: Instant,
        watch: Option<Watch<'_>>,
    ) -> Result<R::Answer> {
        let mut connection = match self.take_idle(broker) {
            Some(connection) => connection,
            None => {
                // A broker that hangs accepts connections, and another may lead by then.
                let soon = Instant::now() + self.access.limit / CONNECTING;
                let connected = self.connect(broker, deadline.min(soon));
                connected.map_err(|error| not_asked(R::KEY, error))?
            }
        };
        let answer = connection.ask(request, deadline, watch)?;
        let mut idle = self.idle();
        idle.entry(broker.to_owned()).or_default().push(connection);
        // Those of brokers that nobody asks any more, too.
        let now = Instant::now();
        idle.retain(|_, of_broker| {
            of_broker.retain(|one| one.is_fresh(now));
            !of_broker.is_empty()
        });
        Ok(answer)
    }

    fn connect(&self, broker: &str, deadline: Instant) -> Result<Connection> {
        let Access { tls, login, .. } = &self.access;
        let stream = stream::connect(broker, tls.as_ref(), deadline)?;
        let mut connection = Connection::new(broker, stream, deadline)?;
        if let Some(login) = login {
            login::log_in(&mut connection, login, deadline)?;
        }
        Ok(connection)
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<String, Vec<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one used last, which is the least likely to have been closed.
    fn take_idle(&self, broker: &str) -> Option<Connection> {
        let mut idle = self.idle();
        let of_broker = idle.get_mut(broker)?;
        let now = Instant::now();
        of_broker.retain(|one| one.is_fresh(now));
        std::iter::from_fn(|| of_broker.pop()).find(Connection::is_quiet)
    }
}
