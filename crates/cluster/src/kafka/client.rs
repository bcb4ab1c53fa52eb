//! A Kafka cluster over the network: the six verbs as single requests.
//!
//! ```text
//! connections  each for one request at a time
//! leaders      which broker to ask about a partition
//! batch        records as brokers store them
//! failure      what an error proves
//! verbs        their requests and answers
//! ```
//!
//! The protocol is spoken by `krafka`, whose producer and consumer are not used: they send again
//! by themselves. Here a verb that changes something is one request, sent once; one that finds
//! the wrong leader, or none, fails, and the next call asks anew who leads. `rdkafka` offers no
//! single requests, needs a C library, and has one connection to a broker, which answers one
//! request of a connection after the other: with one record in flight in each of many partitions
//! it writes far fewer of them, for more processor time each.
//!
//! Tested in `tests/broker` with real brokers, of which one is killed and one hangs.

mod batch;
mod connections;
mod failure;
mod leaders;
mod verbs;

use super::options::{Access, Address, Given, Password};
use super::{KafkaError, Offset, Partition, Result};
use connections::{Connections, Kind};
use failure::{malformed, of_partition};
use krafka::__private::network::BrokerConnection;
use krafka::__private::protocol::{
    ApiKey, ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic,
    ListOffsetsResponse,
};
use krafka::__private::tls::build_tls_config;
use leaders::Leaders;
use std::fmt;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout_at};

const LIST_OFFSETS: Kind = Kind(ApiKey::ListOffsets, 6);
/// Times that `ListOffsets` takes for the first offset and the one behind the last.
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

/// A client of one cluster. Any number of threads may call it: each request has a connection
/// for itself.
///
/// Calls block, and run on a runtime of the client's own: called or dropped on a thread of
/// another runtime of tokio, it panics.
pub struct Client {
    runtime: Runtime,
    connections: Connections,
    leaders: Leaders,
    limit: Duration,
}

/// A client of the Kafka in a URL. The password is in a file, or in the environment.
///
/// # Errors
/// What is wrong with the URL or the options.
pub fn connect(url: &str, given: Given) -> std::result::Result<(Address, Client), String> {
    let address: Address = url.parse()?;
    let password = Password::from_environment();
    let access = Access::try_from(Given { password, ..given })?;
    let client = Client::new(&address, &access).map_err(|error| error.to_string())?;
    Ok((address, client))
}

impl Client {
    /// A client that connects when it is first asked.
    ///
    /// # Errors
    /// `Refused` with a sentence that names a file of TLS that cannot be used.
    pub fn new(address: &Address, access: &Access) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("kafka")
            .enable_all()
            .build()
            .map_err(|error| KafkaError::Unavailable(error.to_string()))?;
        if let Some(tls) = &access.tls {
            let trust = connections::trust(tls);
            let built = runtime.block_on(build_tls_config(&trust, access.limit));
            built.map_err(|error| KafkaError::Refused(error.to_string()))?;
        }
        Ok(Self {
            runtime,
            connections: Connections::new(access)?,
            leaders: Leaders::new(address.brokers.clone()),
            limit: access.limit,
        })
    }

    /// Waits for a call, which must not take longer than the client's limit.
    fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = |_| KafkaError::Unknown(format!("no answer within {:?}", self.limit));
        let done = async { tokio::time::timeout(self.limit, work).await };
        self.runtime.block_on(done).map_err(late)?
    }

    /// What `send` does with a connection to the partition's leader, which is looked for first.
    async fn at_leader<T, Sent: Future<Output = Result<T>>>(
        &self,
        partition: &Partition,
        deadline: Instant,
        send: impl FnOnce(BrokerConnection) -> Sent,
    ) -> Result<T> {
        let connect = async {
            let leader = self.leaders.find(&self.connections, partition, self.limit);
            self.connections.take(&leader.await?).await
        };
        let late = |_| KafkaError::Unavailable(format!("no leader within {:?}", self.limit));
        let connected = timeout_at(deadline, connect).await.map_err(late);
        let done = match connected.and_then(|connected| connected) {
            Ok(connection) => {
                let late = |_| KafkaError::Unknown(format!("no answer within {:?}", self.limit));
                let sent = timeout_at(deadline, send(connection)).await.map_err(late);
                sent.and_then(|answer| answer)
            }
            Err(error) => Err(error),
        };
        if !matches!(done, Ok(_) | Err(KafkaError::Refused(_))) {
            self.leaders.forget(partition);
        }
        done
    }

    /// One of the two bounds of a partition.
    async fn bound(&self, partition: &Partition, time: i64, deadline: Instant) -> Result<Offset> {
        let request = ListOffsetsRequest {
            replica_id: -1,
            isolation_level: 0,
            timeout_ms: None,
            topics: vec![ListOffsetsRequestTopic {
                name: partition.topic.clone(),
                partitions: vec![ListOffsetsRequestPartition {
                    partition_index: partition.number.cast_signed(),
                    current_leader_epoch: -1,
                    timestamp: time,
                }],
            }],
        };
        let send = |connection| async {
            let asked = self
                .connections
                .ask(connection, LIST_OFFSETS, &request, Duration::ZERO);
            let answer: ListOffsetsResponse = asked.await?;
            let found = answer
                .topics
                .first()
                .and_then(|topic| topic.partitions.first());
            let found = found.ok_or_else(|| malformed("no partition"))?;
            match found.error_code.is_ok() {
                true => batch::offset(found.offset),
                false => Err(of_partition(found.error_code, partition)),
            }
        };
        self.at_leader(partition, deadline, send).await
    }

    async fn both_bounds(
        &self,
        partition: &Partition,
        deadline: Instant,
    ) -> Result<(Offset, Offset)> {
        let begin = self.bound(partition, EARLIEST, deadline).await?;
        Ok((begin, self.bound(partition, LATEST, deadline).await?))
    }

    /// The error that says what the partition holds.
    async fn out_of_range(&self, partition: &Partition, deadline: Instant) -> KafkaError {
        match self.both_bounds(partition, deadline).await {
            Ok((begin, end)) => KafkaError::OutOfRange { begin, end },
            Err(error) => error,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::Kafka;
    use std::net::TcpListener;

    #[test]
    fn who_accepts_and_never_answers_does_not_hold_a_call_for_ever() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("kafka://{}/m", silent.local_addr().unwrap());
        let access = Access {
            limit: Duration::from_millis(200),
            ..Access::default()
        };
        let client = Client::new(&address.parse().unwrap(), &access).unwrap();
        let topic = "m".to_owned();
        let partition = Partition { topic, number: 0 };
        let nothing_done = |error: &KafkaError| matches!(error, KafkaError::Unavailable(_));
        let error = client.append(&partition, b"a").unwrap_err();
        assert!(nothing_done(&error), "{error}");
        let error = client.describe("m").unwrap_err();
        assert!(nothing_done(&error), "{error}");
    }
}
