//! What the errors of brokers and connections prove.
//!
//! Invariant: an error of an append is anything but `Unknown` only if no broker has the record.
//! The codes for that are listed; every other is `Unknown`, also `NOT_LEADER_OR_FOLLOWER`: a
//! broker that loses a partition while a record waits for its replicas answers so, and the next
//! leader may have the record.

use crate::kafka::{KafkaError, Partition};
use krafka::KrafkaError;
use krafka::error::ErrorCode;

/// Why a connection was not made, or a request was not sent: nothing was done.
pub(super) fn not_sent(broker: &str, error: &KrafkaError) -> KafkaError {
    let text = format!("{broker}: {error}");
    match error {
        KrafkaError::Auth { .. } | KrafkaError::Config { .. } => KafkaError::Refused(text),
        _ => KafkaError::Unavailable(text),
    }
}

/// Why a request that may have been sent has no answer.
pub(super) fn no_answer(broker: &str, error: &KrafkaError) -> KafkaError {
    KafkaError::Unknown(format!("{broker}: {error}"))
}

/// An answer that is not what the protocol says.
pub(super) fn malformed(what: &str) -> KafkaError {
    KafkaError::Unavailable(format!("malformed answer: {what}"))
}

/// What the code of a Produce answer proves.
pub(super) fn of_append(code: ErrorCode, partition: &Partition) -> KafkaError {
    let text = text(code, partition);
    match code {
        // Checked before the leader appends.
        ErrorCode::NotEnoughReplicas | ErrorCode::CorruptMessage => KafkaError::Unavailable(text),
        ErrorCode::UnknownTopicOrPartition => KafkaError::NoSuchTopic(text),
        code if is_refusal(code) => KafkaError::Refused(text),
        _ => KafkaError::Unknown(text),
    }
}

/// What the code of an answer means where doing it twice is as good as once.
pub(super) fn of_partition(code: ErrorCode, partition: &Partition) -> KafkaError {
    of_other(code, text(code, partition))
}

/// What the code of an answer about a topic means; `message` is the broker's own.
pub(super) fn of_topic(code: ErrorCode, topic: &str, message: Option<String>) -> KafkaError {
    let message = message.filter(|message| !message.is_empty());
    let message = message.map_or_else(|| format!("{code:?}"), |text| format!("{code:?}: {text}"));
    of_other(code, format!("topic {topic}: {message}"))
}

fn of_other(code: ErrorCode, text: String) -> KafkaError {
    match code {
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => {
            KafkaError::NoSuchTopic(text)
        }
        ErrorCode::RequestTimedOut
        | ErrorCode::NetworkException
        | ErrorCode::UnknownServerError
        | ErrorCode::Unknown(_) => KafkaError::Unknown(text),
        code if is_refusal(code) => KafkaError::Refused(text),
        _ => KafkaError::Unavailable(text),
    }
}

/// Whether a broker that answers so did nothing, and would not another time.
fn is_refusal(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::MessageTooLarge
            | ErrorCode::RecordListTooLarge
            | ErrorCode::InvalidMessageSize
            | ErrorCode::InvalidRequiredAcks
            | ErrorCode::InvalidTimestamp
            | ErrorCode::InvalidRecord
            | ErrorCode::InvalidRequest
            | ErrorCode::UnsupportedForMessageFormat
            | ErrorCode::UnsupportedCompressionType
            | ErrorCode::UnsupportedVersion
            | ErrorCode::TopicAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::SecurityDisabled
            | ErrorCode::PolicyViolation
            | ErrorCode::InvalidTopic
            | ErrorCode::TopicAlreadyExists
            | ErrorCode::InvalidPartitions
            | ErrorCode::InvalidReplicationFactor
            | ErrorCode::InvalidReplicaAssignment
            | ErrorCode::InvalidConfig
    )
}

fn text(code: ErrorCode, partition: &Partition) -> String {
    let Partition { topic, number } = partition;
    format!("topic {topic}, partition {number}: {code:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of Kafka 4.1, by number.
    const CODES: std::ops::RangeInclusive<i16> = -1..=133;

    fn append(code: ErrorCode) -> KafkaError {
        let topic = "t".to_owned();
        of_append(code, &Partition { topic, number: 0 })
    }

    #[test]
    fn an_append_may_have_happened_unless_the_code_is_known_to_deny_it() {
        let denying =
            |code: &i16| !matches!(append(ErrorCode::from(*code)), KafkaError::Unknown(_));
        let denying: Vec<i16> = CODES.filter(|code| *code != 0).filter(denying).collect();
        let expected = [
            2, 3, 4, 10, 17, 18, 19, 21, 29, 31, 32, 35, 36, 37, 38, 39, 40, 42, 43, 44, 54, 76, 87,
        ];
        assert_eq!(denying, expected);
    }

    #[test]
    fn codes_of_brokers_that_may_have_the_record() {
        for code in [
            ErrorCode::NotLeaderForPartition,
            ErrorCode::NotEnoughReplicasAfterAppend,
            ErrorCode::RequestTimedOut,
            ErrorCode::KafkaStorageException,
            ErrorCode::UnknownServerError,
            ErrorCode::Unknown(999),
        ] {
            assert!(matches!(append(code), KafkaError::Unknown(_)), "{code:?}");
        }
    }

    #[test]
    fn a_refused_login_is_final_and_a_refused_connection_is_not() {
        let auth = KrafkaError::auth("no");
        assert!(matches!(not_sent("b:1", &auth), KafkaError::Refused(_)));
        let network = KrafkaError::timeout("connecting");
        assert!(matches!(
            not_sent("b:1", &network),
            KafkaError::Unavailable(_)
        ));
        assert!(matches!(no_answer("b:1", &network), KafkaError::Unknown(_)));
    }
}
