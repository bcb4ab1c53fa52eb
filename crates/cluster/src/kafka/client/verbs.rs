//! The six verbs: their requests, and what their answers say.

use super::connections::Kind;
use super::failure::{malformed, of_append, of_partition, of_topic};
use super::{Client, batch, leaders};
use crate::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Result, Topic};
use krafka::__private::protocol::{
    ApiKey, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
    DescribeConfigsRequest, DescribeConfigsResponse, FetchPartitionRequest, FetchRequest,
    FetchResponse, FetchTopicRequest, ProduceResponse,
};
use krafka::error::ErrorCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const PRODUCE: Kind = Kind(ApiKey::Produce, 8);
const FETCH: Kind = Kind(ApiKey::Fetch, 11);
const DELETE_RECORDS: Kind = Kind(ApiKey::DeleteRecords, 2);
const CREATE_TOPICS: Kind = Kind(ApiKey::CreateTopics, 5);
const DESCRIBE_CONFIGS: Kind = Kind(ApiKey::DescribeConfigs, 1);

/// How long after a topic is made its brokers are asked for it again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What a read asks for at most, in bytes.
const READ_BYTES_MAX: usize = 64 << 20;

impl Kafka for Client {
    fn create(&self, topic: &NewTopic) -> Result<()> {
        self.run(self.create_topic(topic))?;
        // Other brokers hear of it later; whoever is asked next should know it.
        let _ = self.run(async {
            self.wait_for_topic(topic).await;
            Ok(())
        });
        Ok(())
    }

    fn describe(&self, name: &str) -> Result<Topic> {
        self.run(self.describe_topic(name))
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset)> {
        let deadline = Instant::now() + self.limit;
        self.runtime.block_on(self.both_bounds(partition, deadline))
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset> {
        let batch = batch::encode(value)?;
        self.runtime.block_on(self.produce(partition, &batch))
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Records> {
        let read = async {
            let deadline = Instant::now() + self.limit + wait;
            let mut found = self
                .fetch(partition, from, bytes_max, wait, deadline)
                .await?;
            // Behind what is no record there may be one.
            while found.records.is_empty() && found.next > from && found.next < found.end {
                let no_wait = Duration::ZERO;
                let behind = self.fetch(partition, found.next, bytes_max, no_wait, deadline);
                let behind = behind.await?;
                if behind.next == found.next {
                    break;
                }
                found = behind;
            }
            Ok(found)
        };
        self.runtime.block_on(read)
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<()> {
        self.runtime
            .block_on(self.delete_records(partition, before))
    }
}

impl Client {
    async fn create_topic(&self, topic: &NewTopic) -> Result<()> {
        // Finds a broker that answers, since the request itself is sent once.
        let (broker, _) = self
            .leaders
            .ask(&self.connections, None, self.limit)
            .await?;
        let settings = topic.settings.iter();
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: topic.name.clone(),
                num_partitions: topic.partitions.cast_signed(),
                replication_factor: i16::try_from(topic.replicas).unwrap_or(i16::MAX),
                assignments: Vec::new(),
                configs: settings
                    .map(|(name, value)| CreatableTopicConfig {
                        name: name.clone(),
                        value: Some(value.clone()),
                    })
                    .collect(),
            }],
            timeout_ms: millis(self.limit),
            validate_only: false,
        };
        let connection = self.connections.take(&broker).await?;
        let asked = self
            .connections
            .ask(connection, CREATE_TOPICS, &request, Duration::ZERO);
        let answer: CreateTopicsResponse = asked.await?;
        match answer.topics.into_iter().next() {
            Some(made) if made.error_code.is_ok() => Ok(()),
            Some(made) => Err(of_topic(made.error_code, &topic.name, made.error_message)),
            None => Err(KafkaError::Unknown("an answer without a topic".into())),
        }
    }

    /// Returns when every broker knows the topic, and each partition's leader that it leads.
    async fn wait_for_topic(&self, topic: &NewTopic) {
        for broker in self.leaders.brokers() {
            let ask = || leaders::ask_one(&self.connections, &broker, Some(&topic.name));
            while ask().await.is_err() {
                sleep(LOOK_AGAIN).await;
            }
        }
        for number in 0..topic.partitions {
            let topic = topic.name.clone();
            let partition = Partition { topic, number };
            let deadline = Instant::now() + self.limit;
            while self.both_bounds(&partition, deadline).await.is_err() {
                sleep(LOOK_AGAIN).await;
            }
        }
    }

    async fn describe_topic(&self, name: &str) -> Result<Topic> {
        let asked = self.leaders.ask(&self.connections, Some(name), self.limit);
        let (broker, answer) = asked.await?;
        let topic = &answer.topics[0];
        let mut partitions: Vec<_> = topic.partitions.iter().collect();
        partitions.sort_by_key(|partition| partition.partition_index);
        let replicas = partitions.iter();
        let replicas = replicas
            .map(|one| u32::try_from(one.replica_nodes.len()).unwrap_or(u32::MAX))
            .collect();
        let request = DescribeConfigsRequest::for_topic(name);
        let connection = self.connections.take(&broker).await?;
        let asked = self
            .connections
            .ask(connection, DESCRIBE_CONFIGS, &request, Duration::ZERO);
        let settings: DescribeConfigsResponse = asked.await?;
        let settings = settings.results.into_iter().next();
        let settings = settings.ok_or_else(|| malformed("no settings"))?;
        if !settings.error_code.is_ok() {
            return Err(of_topic(settings.error_code, name, settings.error_message));
        }
        let pairs = settings.configs.into_iter();
        let pairs = pairs.filter_map(|one| Some((one.name, one.value?)));
        Ok(Topic {
            id: topic
                .topic_id
                .ok_or_else(|| malformed("a topic without id"))?,
            replicas,
            settings: pairs.collect(),
        })
    }

    async fn produce(&self, partition: &Partition, batch: &[u8]) -> Result<Offset> {
        let send = |connection| async {
            let put = |buffer: &mut bytes::BytesMut| {
                batch::put_produce(buffer, partition, batch, millis(self.limit));
                Ok(())
            };
            let asked = self
                .connections
                .ask_with(connection, PRODUCE, put, Duration::ZERO);
            let answer: ProduceResponse = asked.await?;
            let topic = answer.responses.first();
            let done = topic.and_then(|topic| topic.partition_responses.first());
            let Some(done) = done else {
                return Err(KafkaError::Unknown("an answer without a partition".into()));
            };
            if !done.error_code.is_ok() {
                return Err(of_append(done.error_code, partition));
            }
            let offset = u64::try_from(done.base_offset);
            offset.map_err(|_| KafkaError::Unknown("an answer without an offset".into()))
        };
        let deadline = Instant::now() + self.limit;
        self.at_leader(partition, deadline, send).await
    }

    async fn fetch(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
        deadline: Instant,
    ) -> Result<Records> {
        let request = fetch_request(partition, from, bytes_max, wait);
        let send = |connection| async {
            let asked = self.connections.ask(connection, FETCH, &request, wait);
            let answer: FetchResponse = asked.await?;
            if !answer.error_code.is_ok() {
                return Err(of_partition(answer.error_code, partition));
            }
            let mut topics = answer.responses.into_iter();
            let found = topics
                .next()
                .and_then(|topic| topic.partitions.into_iter().next());
            let found = found.ok_or_else(|| malformed("no partition"))?;
            match found.error_code {
                ErrorCode::None => {
                    let end = batch::offset(found.high_watermark)?;
                    batch::decode(found.records.unwrap_or_default(), from, end).map(Some)
                }
                ErrorCode::OffsetOutOfRange => Ok(None),
                code => Err(of_partition(code, partition)),
            }
        };
        match self.at_leader(partition, deadline, send).await? {
            Some(found) => Ok(found),
            None => Err(self.out_of_range(partition, deadline).await),
        }
    }

    async fn delete_records(&self, partition: &Partition, before: Offset) -> Result<()> {
        let deadline = Instant::now() + self.limit;
        let request = DeleteRecordsRequest {
            topics: vec![DeleteRecordsTopic {
                name: partition.topic.clone(),
                partitions: vec![DeleteRecordsPartition {
                    partition_index: partition.number.cast_signed(),
                    offset: i64::try_from(before).unwrap_or(i64::MAX),
                }],
            }],
            timeout_ms: millis(self.limit),
        };
        let send = |connection| async {
            let asked = self
                .connections
                .ask(connection, DELETE_RECORDS, &request, Duration::ZERO);
            let answer: DeleteRecordsResponse = asked.await?;
            let topic = answer.topics.first();
            let done = topic.and_then(|topic| topic.partitions.first());
            match done.ok_or_else(|| malformed("no partition"))?.error_code {
                ErrorCode::None => Ok(true),
                ErrorCode::OffsetOutOfRange => Ok(false),
                code => Err(of_partition(code, partition)),
            }
        };
        match self.at_leader(partition, deadline, send).await? {
            true => Ok(()),
            false => Err(self.out_of_range(partition, deadline).await),
        }
    }
}

fn fetch_request(
    partition: &Partition,
    from: Offset,
    bytes_max: usize,
    wait: Duration,
) -> FetchRequest {
    let bytes_max = i32::try_from(bytes_max.min(READ_BYTES_MAX)).unwrap_or(i32::MAX);
    let mut of_partition = FetchPartitionRequest::default();
    of_partition.partition = partition.number.cast_signed();
    of_partition.fetch_offset = i64::try_from(from).unwrap_or(i64::MAX);
    of_partition.partition_max_bytes = bytes_max;
    let mut of_topic = FetchTopicRequest::default();
    of_topic.topic.clone_from(&partition.topic);
    of_topic.partitions = vec![of_partition];
    let mut request = FetchRequest::default();
    request.max_wait_ms = millis(wait);
    request.min_bytes = 1;
    request.max_bytes = bytes_max;
    request.topics = vec![of_topic];
    request
}

/// As the protocol counts times.
fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}
