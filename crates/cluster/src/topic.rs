//! The topic of a database's log: how it is made, and settings that would lose what is in it.
//!
//! A partition is the log of one tablet. It is trimmed by its owner and by nothing else, so no
//! age, size or key may remove a record; and an acknowledged record must outlive a broker.
//!
//! Tested here, each setting of the table with the values that are refused.

use crate::kafka::{Kafka, KafkaError, NewTopic, Topic};

/// Fewest replicas of a partition: one may be away for long while another fails.
const REPLICAS_MIN: u32 = 3;
/// What the topic of the log adds to the name of the database.
const SUFFIX: &str = "-log";

/// How many brokers must have a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Three replicas, of which two are in sync: nothing is lost with a broker.
    Durable,
    /// One will do: for tests, and where a disk may take the log with it.
    Any,
}

/// What a setting must be.
#[derive(Clone, Copy, Debug)]
enum Need {
    Is(&'static str),
    AtLeast(u64),
}

struct Rule {
    name: &'static str,
    need: Need,
    /// The value a topic is made with.
    made: &'static str,
    /// What happens otherwise.
    why: &'static str,
    /// Brokers that do not know the setting do not do it.
    is_optional: bool,
}

const IN_SYNC: &str = "min.insync.replicas";

/// Settings of a topic, by the names of Kafka.
const RULES: [Rule; 9] = [
    Rule {
        name: "cleanup.policy",
        need: Need::Is("delete"),
        made: "delete",
        why: "compaction removes records, and a compacted log cannot be trimmed",
        is_optional: false,
    },
    Rule {
        name: "retention.ms",
        need: Need::Is("-1"),
        made: "-1",
        why: "records are removed by age",
        is_optional: false,
    },
    Rule {
        name: "retention.bytes",
        need: Need::Is("-1"),
        made: "-1",
        why: "records are removed by size",
        is_optional: false,
    },
    Rule {
        name: IN_SYNC,
        need: Need::AtLeast(2),
        made: "2",
        why: "an acknowledged record may be on one broker only",
        is_optional: false,
    },
    Rule {
        name: "unclean.leader.election.enable",
        need: Need::Is("false"),
        made: "false",
        why: "a broker without the newest records may become the leader, and they are lost",
        is_optional: false,
    },
    Rule {
        name: "max.message.bytes",
        need: Need::AtLeast(1 << 20),
        // The default of Kafka.
        made: "1048588",
        why: "large writes are refused",
        is_optional: false,
    },
    Rule {
        name: "message.timestamp.type",
        need: Need::Is("LogAppendTime"),
        made: "LogAppendTime",
        why: "writes of a node whose clock is wrong are refused",
        is_optional: false,
    },
    Rule {
        name: "compression.type",
        need: Need::Is("producer"),
        made: "producer",
        why: "brokers compress records, which is not supported",
        is_optional: false,
    },
    Rule {
        name: "remote.storage.enable",
        need: Need::Is("false"),
        made: "false",
        why: "records are moved out of the replicas",
        is_optional: true,
    },
];

/// The name of the topic of a database's log.
pub fn log_name(database: &str) -> String {
    format!("{database}{SUFFIX}")
}

/// The topic `name` as it is now.
///
/// # Errors
/// Those of [`Kafka::describe`]; `NoSuchTopic` says what makes it.
pub fn find(kafka: &dyn Kafka, name: &str) -> Result<Topic, KafkaError> {
    kafka.describe(name).map_err(|error| match error {
        KafkaError::NoSuchTopic(_) => {
            KafkaError::NoSuchTopic("`latewood cluster init` makes it".to_owned())
        }
        error => error,
    })
}

/// The topic of a database's log, to be made: a partition for each tablet.
pub fn new_topic(database: &str, tablets: u32, replication: Replication) -> NewTopic {
    let is_given = |rule: &&Rule| match replication {
        Replication::Durable => !rule.is_optional,
        Replication::Any => !rule.is_optional && rule.name != IN_SYNC,
    };
    let rules = RULES.iter().filter(is_given);
    NewTopic {
        name: log_name(database),
        partitions: tablets,
        replicas: match replication {
            Replication::Durable => REPLICAS_MIN,
            Replication::Any => 1,
        },
        settings: rules
            .map(|rule| (rule.name.to_owned(), rule.made.to_owned()))
            .collect(),
    }
}

/// What is wrong with a topic as the place of a log: a sentence for each setting, with its value
/// and the one that is needed. Empty if nothing is.
pub fn unsafe_settings(topic: &Topic, replication: Replication) -> Vec<String> {
    let mut sentences = Vec::new();
    let is_durable = replication == Replication::Durable;
    let fewest = topic.replicas.iter().copied().min().unwrap_or(0);
    if is_durable && fewest < REPLICAS_MIN {
        sentences.push(format!(
            "replication factor is {fewest}, must be at least {REPLICAS_MIN}: an acknowledged \
             record may be lost with two brokers"
        ));
    }
    for rule in &RULES {
        if is_durable || rule.name != IN_SYNC {
            sentences.extend(rule.breach(topic));
        }
    }
    sentences
}

/// Refuses a topic that would lose records.
///
/// # Errors
/// All sentences of [`unsafe_settings`].
pub fn require_safe(topic: &Topic, name: &str, replication: Replication) -> Result<(), String> {
    let sentences = unsafe_settings(topic, replication);
    if sentences.is_empty() {
        return Ok(());
    }
    Err(format!("topic {name} is unsafe: {}", sentences.join("; ")))
}

/// What happened to a topic since it was described as `before` that its log does not survive:
/// another topic under its name, another number of partitions, settings that became unsafe.
/// Empty if nothing did.
pub fn changed(before: &Topic, now: &Topic, replication: Replication) -> Vec<String> {
    let mut sentences = Vec::new();
    if before.id != now.id {
        sentences.push("the topic was deleted and made again: its records are gone".to_owned());
    }
    let (partitions, were) = (now.replicas.len(), before.replicas.len());
    if partitions != were {
        sentences.push(format!(
            "number of partitions is {partitions}, must stay {were}: each is the log of one tablet"
        ));
    }
    let known = unsafe_settings(before, replication);
    let found = unsafe_settings(now, replication);
    sentences.extend(found.into_iter().filter(|one| !known.contains(one)));
    sentences
}

impl Rule {
    /// The sentence about a topic that breaks the rule.
    fn breach(&self, topic: &Topic) -> Option<String> {
        let mut settings = topic.settings.iter();
        let value = settings.find(|(name, _)| name == self.name);
        let value = value.map(|(_, value)| value.as_str());
        let is_kept = match (value, self.need) {
            (None, _) => self.is_optional,
            (Some(value), Need::Is(needed)) => value.eq_ignore_ascii_case(needed),
            (Some(value), Need::AtLeast(least)) => {
                value.parse::<u64>().is_ok_and(|value| value >= least)
            }
        };
        let must = match self.need {
            Need::Is(needed) => format!("must be {needed}"),
            Need::AtLeast(least) => format!("must be at least {least}"),
        };
        let is = match value {
            None => "not known to the brokers",
            Some("") => "empty",
            Some(value) => value,
        };
        (!is_kept).then(|| format!("{} is {is}, {must}: {}", self.name, self.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Replication::{Any, Durable};

    /// A topic as it is made, with one setting changed.
    fn topic(change: Option<(&str, &str)>) -> Topic {
        let made = new_topic("m", 4, Durable);
        let mut topic = Topic {
            id: [1; 16],
            replicas: vec![made.replicas; 4],
            settings: made.settings,
        };
        if let Some((name, value)) = change {
            topic.settings.retain(|(other, _)| other != name);
            topic.settings.push((name.into(), value.into()));
        }
        topic
    }

    #[test]
    fn a_topic_as_it_is_made_is_safe() {
        let made = new_topic("m", 4, Durable);
        assert_eq!(
            (made.name.as_str(), made.partitions, made.replicas),
            ("m-log", 4, 3)
        );
        assert_eq!(unsafe_settings(&topic(None), Durable), [""; 0]);
    }

    #[test]
    fn settings_that_lose_records_are_named_with_the_value_that_is_needed() {
        for (name, value, sentence) in [
            (
                "cleanup.policy",
                "compact",
                "cleanup.policy is compact, must be delete",
            ),
            (
                "cleanup.policy",
                "compact,delete",
                "is compact,delete, must be delete",
            ),
            (
                "cleanup.policy",
                "",
                "cleanup.policy is empty, must be delete",
            ),
            (
                "retention.ms",
                "604800000",
                "retention.ms is 604800000, must be -1",
            ),
            ("retention.bytes", "0", "retention.bytes is 0, must be -1"),
            (
                "min.insync.replicas",
                "1",
                "min.insync.replicas is 1, must be at least 2",
            ),
            (
                "unclean.leader.election.enable",
                "true",
                "is true, must be false",
            ),
            (
                "max.message.bytes",
                "1048575",
                "is 1048575, must be at least 1048576",
            ),
            (
                "max.message.bytes",
                "many",
                "is many, must be at least 1048576",
            ),
            (
                "message.timestamp.type",
                "CreateTime",
                "is CreateTime, must be LogAppendTime",
            ),
            (
                "compression.type",
                "zstd",
                "compression.type is zstd, must be producer",
            ),
            (
                "remote.storage.enable",
                "true",
                "remote.storage.enable is true, must be false",
            ),
        ] {
            let found = unsafe_settings(&topic(Some((name, value))), Durable);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(sentence), "{found:?}");
        }
    }

    #[test]
    fn values_on_the_safe_side_are_allowed() {
        for (name, value) in [
            ("min.insync.replicas", "3"),
            ("max.message.bytes", "1048576"),
            ("unclean.leader.election.enable", "FALSE"),
            ("remote.storage.enable", "false"),
            ("segment.bytes", "1"),
        ] {
            let found = unsafe_settings(&topic(Some((name, value))), Durable);
            assert_eq!(found, [""; 0]);
        }
    }

    #[test]
    fn a_setting_that_the_brokers_do_not_tell_is_not_taken_for_safe() {
        let mut unknown = topic(None);
        unknown.settings.clear();
        let found = unsafe_settings(&unknown, Durable);
        assert_eq!(found.len(), RULES.len() - 1, "{found:?}");
        assert!(found[1].starts_with("retention.ms is not known to the brokers, must be -1"));
    }

    #[test]
    fn few_replicas_are_unsafe_unless_they_are_allowed() {
        let mut few = topic(Some(("min.insync.replicas", "1")));
        few.replicas[2] = 1;
        let found = unsafe_settings(&few, Durable);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("replication factor is 1, must be at least 3"));
        assert_eq!(unsafe_settings(&few, Any), [""; 0]);
        let made = new_topic("m", 1, Any);
        assert_eq!(made.replicas, 1);
        assert!(made.settings.iter().all(|(name, _)| name != IN_SYNC));
    }

    #[test]
    fn a_topic_that_changed_is_noticed() {
        let before = topic(Some(("retention.ms", "5")));
        assert_eq!(changed(&before, &before, Durable), [""; 0]);
        let mut now = before.clone();
        now.id = [2; 16];
        now.replicas.push(3);
        now.settings
            .push(("remote.storage.enable".into(), "true".into()));
        let found = changed(&before, &now, Durable);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("deleted and made again"));
        assert!(found[1].contains("number of partitions is 5, must stay 4"));
        assert!(found[2].contains("remote.storage.enable is true"));
    }
}
