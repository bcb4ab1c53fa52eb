//! A Kafka cluster over the network: the six verbs as single requests.
//!
//! ```text
//! stream       sockets with a deadline, plain or encrypted
//! login        SASL
//! connection   one request in flight: its frame, and an answer that is what it claims to be
//! connections  those that no request uses now
//! leaders      which broker to ask about a partition
//! batch        records as brokers store them
//! failure      what an error proves
//! verbs        their requests and answers
//! ```
//!
//! The messages are those of `kafka-protocol`, which has no client. A verb that changes something
//! is one request, sent once; one that finds the wrong leader, or none, fails, and the next call
//! asks anew who leads. `krafka` hides its single requests, and its producer sends again by
//! itself. `rdkafka` offers no single requests, needs a C library, and has one connection to a
//! broker, which answers one request of a connection after the other: with one record in flight
//! in each of many partitions it writes far fewer of them, for more processor time each.
//!
//! Calls block, as their callers do: a thread that waits for its one record in flight needs no
//! runtime between it and the socket.
//!
//! Invariant: a call takes no longer than the client's limit, whatever the brokers do. It ends
//! before, with an unknown outcome, where another broker was elected to lead the partition.
//!
//! Tested in `tests/broker` with real brokers, of which one is killed and one hangs, and below.

mod batch;
mod connection;
mod connections;
mod failure;
mod leaders;
mod login;
mod stream;
mod verbs;

use super::options::{Access, Address, Given, Password};
use super::{KafkaError, Offset, Partition, Result};
use connection::{Ask, Watch};
use connections::Connections;
use failure::{answered, check, malformed, of_partition};
use kafka_protocol::messages::ListOffsetsRequest;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::protocol::StrBytes;
use leaders::Leaders;
use std::fmt;
use std::time::{Duration, Instant};

/// Times that `ListOffsets` takes for the first offset and the one behind the last.
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

/// How often it is looked whether a leader that does not answer still leads.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// A client of one cluster. Any number of threads may call it: each request has a connection
/// for itself.
pub struct Client {
    connections: Connections,
    leaders: Leaders,
    limit: Duration,
    watch_every: Duration,
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
        Ok(Self {
            connections: Connections::new(access)?,
            leaders: Leaders::new(address.brokers.clone()),
            limit: access.limit,
            watch_every: WATCH_EVERY,
        })
    }

    /// When a call that begins now ends, if it waits for nothing but brokers.
    fn deadline(&self) -> Instant {
        Instant::now() + self.limit
    }

    /// What `judge` makes of the answer of the partition's leader, which is looked for first.
    fn at_leader<R: Ask, T>(
        &self,
        partition: &Partition,
        request: &R,
        deadline: Instant,
        judge: impl FnOnce(R::Answer) -> Result<T>,
    ) -> Result<T> {
        let (connections, leaders) = (&self.connections, &self.leaders);
        let leader = leaders.find(connections, partition, deadline)?;
        let mut why_never = || {
            let later = leaders.successor(connections, partition, &leader, deadline)?;
            Some(format!("{} leads the partition since", later.address))
        };
        let watch = Some(Watch {
            every: self.watch_every,
            why_never: &mut why_never,
        });
        let answer = connections.ask_watched(&leader.address, request, deadline, watch);
        let judged = |answer| {
            let judged = judge(answer);
            judged.map_err(|error| answered(&leader.address, R::KEY, error))
        };
        let done = answer.and_then(judged);
        if !matches!(done, Ok(_) | Err(KafkaError::Refused(_))) {
            leaders.forget(partition, &leader);
        }
        done
    }

    /// One of the two bounds of a partition.
    fn bound(&self, partition: &Partition, time: i64, deadline: Instant) -> Result<Offset> {
        let of_number = ListOffsetsPartition::default()
            .with_partition_index(partition.number.cast_signed())
            .with_timestamp(time);
        let of_topic = ListOffsetsTopic::default()
            .with_name(topic_name(&partition.topic))
            .with_partitions(vec![of_number]);
        let request = ListOffsetsRequest::default()
            .with_replica_id((-1).into())
            .with_topics(vec![of_topic]);
        self.at_leader(partition, &request, deadline, |answer| {
            let topic = answer.topics.first();
            let found = topic.and_then(|topic| topic.partitions.first());
            let found = found.ok_or_else(|| malformed("no partition"))?;
            check(found.error_code, |code| of_partition(code, partition))?;
            batch::offset(found.offset)
        })
    }

    fn both_bounds(&self, partition: &Partition, deadline: Instant) -> Result<(Offset, Offset)> {
        let begin = self.bound(partition, EARLIEST, deadline)?;
        Ok((begin, self.bound(partition, LATEST, deadline)?))
    }

    /// The error that says what the partition holds.
    fn out_of_range(&self, partition: &Partition, deadline: Instant) -> KafkaError {
        match self.both_bounds(partition, deadline) {
            Ok((begin, end)) => KafkaError::OutOfRange { begin, end },
            Err(error) => error,
        }
    }
}

/// A name as messages have it.
fn topic_name<T: From<StrBytes>>(name: &str) -> T {
    StrBytes::from_string(name.to_owned()).into()
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
