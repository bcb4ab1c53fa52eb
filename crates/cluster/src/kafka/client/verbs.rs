//! The six verbs: their requests, and what their answers say.

use super::failure::{answered, check, malformed, of_append, of_partition, of_topic};
use super::{Client, batch, leaders, topic_name};
use crate::kafka::{Kafka, KafkaError, NewTopic, Offset, Partition, Records, Result, Topic};
use bytes::Bytes;
use kafka_protocol::ResponseError as Code;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, CreateTopicsRequest, DeleteRecordsRequest, DescribeConfigsRequest, FetchRequest,
    ProduceRequest,
};
use std::thread;
use std::time::{Duration, Instant};

/// Every replica in sync has the record before it is answered.
const ACKS_ALL: i16 = -1;
/// The resource of a topic's settings.
const TOPIC: i8 = 2;
/// How long after a topic is made its brokers are asked for it again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What a read asks for at most, in bytes.
const READ_BYTES_MAX: usize = 64 << 20;

impl Kafka for Client {
    fn create(&self, topic: &NewTopic) -> Result<()> {
        let deadline = self.deadline();
        // Finds a broker that answers, since the request itself is sent once.
        let (broker, _) = self.leaders.ask(&self.connections, None, deadline)?;
        let request = create_request(topic, self.limit);
        let answer = self.connections.ask(&broker, &request, deadline)?;
        let made = answer.topics.into_iter().next();
        let no_topic = || KafkaError::Unknown("no topic".into());
        let made = made.ok_or_else(no_topic).and_then(|made| {
            let message = made.error_message;
            check(made.error_code, |code| of_topic(code, &topic.name, message))
        });
        made.map_err(|error| answered(&broker, ApiKey::CreateTopics, error))?;
        // Other brokers hear of it later; whoever is asked next should know it.
        self.wait_for_topic(topic);
        Ok(())
    }

    fn describe(&self, name: &str) -> Result<Topic> {
        let deadline = self.deadline();
        let (broker, answer) = self.leaders.ask(&self.connections, Some(name), deadline)?;
        let topic = &answer.topics[0];
        let mut partitions: Vec<_> = topic.partitions.iter().collect();
        partitions.sort_by_key(|partition| partition.partition_index);
        let replicas = partitions.iter();
        let replicas = replicas.map(|one| u32::try_from(one.replica_nodes.len()));
        let resource = DescribeConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(topic_name(name))
            .with_configuration_keys(None);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let settings = self.connections.ask(&broker, &request, deadline)?;
        let settings = settings.results.into_iter().next();
        let settings = settings.ok_or_else(|| malformed("no settings"));
        let settings = settings.and_then(|settings| {
            let message = settings.error_message;
            check(settings.error_code, |code| of_topic(code, name, message))?;
            Ok(settings.configs)
        });
        let settings =
            settings.map_err(|error| answered(&broker, ApiKey::DescribeConfigs, error))?;
        let pairs = settings.into_iter();
        let pairs = pairs.filter_map(|one| Some((one.name.to_string(), one.value?.to_string())));
        let id = topic.topic_id.into_bytes();
        if id == [0; 16] {
            return Err(malformed("a topic without id"));
        }
        Ok(Topic {
            id,
            replicas: replicas.map(|count| count.unwrap_or(u32::MAX)).collect(),
            settings: pairs.collect(),
        })
    }

    fn bounds(&self, partition: &Partition) -> Result<(Offset, Offset)> {
        self.both_bounds(partition, self.deadline())
    }

    fn append(&self, partition: &Partition, value: &[u8]) -> Result<Offset> {
        let request = produce_request(partition, batch::encode(value)?, self.limit);
        self.at_leader(partition, &request, self.deadline(), |answer| {
            let topic = answer.responses.first();
            let done = topic.and_then(|topic| topic.partition_responses.first());
            let Some(done) = done else {
                return Err(KafkaError::Unknown("no partition".into()));
            };
            check(done.error_code, |code| of_append(code, partition))?;
            let offset = u64::try_from(done.base_offset);
            offset.map_err(|_| KafkaError::Unknown("no offset".into()))
        })
    }

    fn read(
        &self,
        partition: &Partition,
        from: Offset,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Records> {
        let deadline = self.deadline() + wait;
        let fetch = |from, wait| {
            self.fetch(
                &Fetch {
                    partition,
                    from,
                    bytes_max,
                    wait,
                },
                deadline,
            )
        };
        let mut found = fetch(from, wait)?;
        // Behind what is no record there may be one.
        while found.records.is_empty() && found.next > from && found.next < found.end {
            let behind = fetch(found.next, Duration::ZERO)?;
            if behind.next == found.next {
                break;
            }
            found = behind;
        }
        Ok(found)
    }

    fn trim(&self, partition: &Partition, before: Offset) -> Result<()> {
        let deadline = self.deadline();
        let of_number = DeleteRecordsPartition::default()
            .with_partition_index(partition.number.cast_signed())
            .with_offset(signed(before));
        let of_topic = DeleteRecordsTopic::default()
            .with_name(topic_name(&partition.topic))
            .with_partitions(vec![of_number]);
        let request = DeleteRecordsRequest::default()
            .with_topics(vec![of_topic])
            .with_timeout_ms(millis(self.limit));
        let is_held = self.at_leader(partition, &request, deadline, |answer| {
            let topic = answer.topics.first();
            let done = topic.and_then(|topic| topic.partitions.first());
            let done = done.ok_or_else(|| malformed("no partition"))?;
            is_in_range(done.error_code, partition)
        })?;
        if is_held {
            return Ok(());
        }
        Err(self.out_of_range(partition, deadline))
    }
}

/// One request of a read.
struct Fetch<'a> {
    partition: &'a Partition,
    from: Offset,
    bytes_max: usize,
    wait: Duration,
}

impl Client {
    /// Returns when every broker knows the topic, and each partition's leader that it leads, or
    /// when a call takes no longer.
    fn wait_for_topic(&self, topic: &NewTopic) {
        let deadline = self.deadline();
        let until = |is_done: &dyn Fn() -> bool| {
            while !is_done() && Instant::now() < deadline {
                thread::sleep(LOOK_AGAIN);
            }
        };
        for broker in self.leaders.brokers() {
            let name = Some(topic.name.as_str());
            until(&|| leaders::ask_one(&self.connections, &broker, name, deadline).is_ok());
        }
        for number in 0..topic.partitions {
            let topic = topic.name.clone();
            let partition = Partition { topic, number };
            until(&|| self.both_bounds(&partition, deadline).is_ok());
        }
    }

    fn fetch(&self, fetch: &Fetch<'_>, deadline: Instant) -> Result<Records> {
        let (partition, from) = (fetch.partition, fetch.from);
        let found = self.at_leader(partition, &fetch.request(), deadline, |answer| {
            check(answer.error_code, |code| of_partition(code, partition))?;
            let topic = answer.responses.into_iter().next();
            let found = topic.and_then(|topic| topic.partitions.into_iter().next());
            let found = found.ok_or_else(|| malformed("no partition"))?;
            if !is_in_range(found.error_code, partition)? {
                return Ok(None);
            }
            let end = batch::offset(found.high_watermark)?;
            batch::decode(&found.records.unwrap_or_default(), from, end).map(Some)
        })?;
        found.ok_or_else(|| self.out_of_range(partition, deadline))
    }
}

impl Fetch<'_> {
    fn request(&self) -> FetchRequest {
        let bytes_max = i32::try_from(self.bytes_max.min(READ_BYTES_MAX)).unwrap_or(i32::MAX);
        let of_number = FetchPartition::default()
            .with_partition(self.partition.number.cast_signed())
            .with_fetch_offset(signed(self.from))
            .with_partition_max_bytes(bytes_max);
        let of_topic = FetchTopic::default()
            .with_topic(topic_name(&self.partition.topic))
            .with_partitions(vec![of_number]);
        FetchRequest::default()
            .with_max_wait_ms(millis(self.wait))
            .with_min_bytes(1)
            .with_max_bytes(bytes_max)
            .with_topics(vec![of_topic])
    }
}

fn create_request(topic: &NewTopic, limit: Duration) -> CreateTopicsRequest {
    let settings = topic.settings.iter().map(|(name, value)| {
        CreatableTopicConfig::default()
            .with_name(topic_name(name))
            .with_value(Some(topic_name(value)))
    });
    let made = CreatableTopic::default()
        .with_name(topic_name(&topic.name))
        .with_num_partitions(topic.partitions.cast_signed())
        .with_replication_factor(i16::try_from(topic.replicas).unwrap_or(i16::MAX))
        .with_configs(settings.collect());
    CreateTopicsRequest::default()
        .with_topics(vec![made])
        .with_timeout_ms(millis(limit))
}

fn produce_request(partition: &Partition, batch: Bytes, limit: Duration) -> ProduceRequest {
    let of_number = PartitionProduceData::default()
        .with_index(partition.number.cast_signed())
        .with_records(Some(batch));
    let of_topic = TopicProduceData::default()
        .with_name(topic_name(&partition.topic))
        .with_partition_data(vec![of_number]);
    ProduceRequest::default()
        .with_acks(ACKS_ALL)
        .with_timeout_ms(millis(limit))
        .with_topic_data(vec![of_topic])
}

/// Whether the offset asked for is one that the partition holds.
fn is_in_range(code: i16, partition: &Partition) -> Result<bool> {
    if code == Code::OffsetOutOfRange.code() {
        return Ok(false);
    }
    check(code, |code| of_partition(code, partition)).map(|()| true)
}

/// As the protocol counts offsets.
fn signed(offset: Offset) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// As the protocol counts times.
fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}
