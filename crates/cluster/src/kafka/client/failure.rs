//! What the errors of brokers and connections prove.
//!
//! Invariant: an error of an append is anything but `Unknown` only if no broker has the record.
//! The codes for that are listed; every other is `Unknown`, also `NOT_LEADER_OR_FOLLOWER`: a
//! broker that loses a partition while a record waits for its replicas answers so, and the next
//! leader may have the record.

use crate::kafka::{KafkaError, Partition};
use kafka_protocol::ResponseError as Code;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::StrBytes;
use std::io::{Error, ErrorKind};

/// Why a connection was not made, or a request was not sent: nothing was done. Of invalid data
/// only TLS speaks: one side does not trust the other.
pub(super) fn not_sent(broker: &str, what: &str, error: &Error) -> KafkaError {
    let text = format!("{broker}: {what}: {error}");
    if error.kind() == ErrorKind::InvalidData {
        return KafkaError::Refused(text);
    }
    KafkaError::Unavailable(text)
}

/// Why a request that may have been sent has no answer.
pub(super) fn no_answer(broker: &str, error: &Error) -> KafkaError {
    KafkaError::Unknown(format!("{broker}: {error}"))
}

/// The error that the request `key` was not sent to a broker, because of `error`.
pub(super) fn not_asked(key: ApiKey, error: KafkaError) -> KafkaError {
    with_text(error, |text| format!("{text}; {key:?} was not sent"))
}

/// The error that is the answer of a broker to the request `key`.
pub(super) fn answered(broker: &str, key: ApiKey, error: KafkaError) -> KafkaError {
    with_text(error, |text| format!("{broker} answers {key:?}: {text}"))
}

fn with_text(error: KafkaError, say: impl FnOnce(String) -> String) -> KafkaError {
    match error {
        KafkaError::Unknown(text) => KafkaError::Unknown(say(text)),
        KafkaError::Unavailable(text) => KafkaError::Unavailable(say(text)),
        KafkaError::Refused(text) => KafkaError::Refused(say(text)),
        KafkaError::NoSuchTopic(text) => KafkaError::NoSuchTopic(say(text)),
        error @ KafkaError::OutOfRange { .. } => error,
    }
}

/// Nothing if the code is that of success.
///
/// # Errors
/// What `of` says about the code.
pub(super) fn check(code: i16, of: impl FnOnce(Code) -> KafkaError) -> Result<(), KafkaError> {
    Code::try_from_code(code).map_or(Ok(()), |code| Err(of(code)))
}

/// An answer that is not what the protocol says.
pub(super) fn malformed(what: &str) -> KafkaError {
    KafkaError::Unavailable(format!("malformed answer: {what}"))
}

/// What the code of a Produce answer proves.
pub(super) fn of_append(code: Code, partition: &Partition) -> KafkaError {
    let text = text(code, partition);
    match code {
        // Checked before the leader appends.
        Code::NotEnoughReplicas | Code::CorruptMessage => KafkaError::Unavailable(text),
        Code::UnknownTopicOrPartition => KafkaError::NoSuchTopic(text),
        code if is_refusal(code) => KafkaError::Refused(text),
        _ => KafkaError::Unknown(text),
    }
}

/// What the code of an answer means where doing it twice is as good as once.
pub(super) fn of_partition(code: Code, partition: &Partition) -> KafkaError {
    of_other(code, text(code, partition))
}

/// What the code of an answer about a topic means; `message` is the broker's own.
pub(super) fn of_topic(code: Code, topic: &str, message: Option<StrBytes>) -> KafkaError {
    let message = message.filter(|message| !message.is_empty());
    let message = message.map_or_else(|| format!("{code:?}"), |text| format!("{code:?}: {text}"));
    of_other(code, format!("topic {topic}: {message}"))
}

fn of_other(code: Code, text: String) -> KafkaError {
    match code {
        Code::UnknownTopicOrPartition | Code::UnknownTopicId => KafkaError::NoSuchTopic(text),
        Code::RequestTimedOut
        | Code::NetworkException
        | Code::UnknownServerError
        | Code::Unknown(_) => KafkaError::Unknown(text),
        code if is_refusal(code) => KafkaError::Refused(text),
        _ => KafkaError::Unavailable(text),
    }
}

/// Whether a broker that answers so did nothing, and would not another time.
fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::MessageTooLarge
            | Code::RecordListTooLarge
            | Code::InvalidFetchSize
            | Code::InvalidRequiredAcks
            | Code::InvalidTimestamp
            | Code::InvalidRecord
            | Code::InvalidRequest
            | Code::UnsupportedForMessageFormat
            | Code::UnsupportedCompressionType
            | Code::UnsupportedVersion
            | Code::TopicAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::SecurityDisabled
            | Code::PolicyViolation
            | Code::InvalidTopicException
            | Code::TopicAlreadyExists
            | Code::InvalidPartitions
            | Code::InvalidReplicationFactor
            | Code::InvalidReplicaAssignment
            | Code::InvalidConfig
    )
}

fn text(code: Code, partition: &Partition) -> String {
    let Partition { topic, number } = partition;
    format!("topic {topic}, partition {number}: {code:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of Kafka 4.1, by number.
    const CODES: std::ops::RangeInclusive<i16> = -1..=133;

    fn append(code: Code) -> KafkaError {
        let topic = "t".to_owned();
        of_append(code, &Partition { topic, number: 0 })
    }

    #[test]
    fn an_append_may_have_happened_unless_the_code_is_known_to_deny_it() {
        let is_denying = |code: &i16| {
            let found = Code::try_from_code(*code).map(append);
            found.is_some_and(|error| !matches!(error, KafkaError::Unknown(_)))
        };
        let denying: Vec<i16> = CODES.filter(is_denying).collect();
        let expected = [
            2, 3, 4, 10, 17, 18, 19, 21, 29, 31, 32, 35, 36, 37, 38, 39, 40, 42, 43, 44, 54, 76, 87,
        ];
        assert_eq!(denying, expected);
    }

    #[test]
    fn codes_of_brokers_that_may_have_the_record() {
        for code in [
            Code::NotLeaderOrFollower,
            Code::NotEnoughReplicasAfterAppend,
            Code::RequestTimedOut,
            Code::KafkaStorageError,
            Code::UnknownServerError,
            Code::Unknown(999),
        ] {
            assert!(matches!(append(code), KafkaError::Unknown(_)), "{code:?}");
        }
    }

    #[test]
    fn distrust_is_final_and_a_refused_connection_is_not() {
        let distrust = Error::new(ErrorKind::InvalidData, "UnknownIssuer");
        let refused = not_sent("b:1", "agreeing on TLS", &distrust);
        assert!(matches!(refused, KafkaError::Refused(_)));
        let late = Error::from(ErrorKind::TimedOut);
        let error = not_sent("b:1", "connecting", &late);
        let text = "b:1: connecting: timed out".to_owned();
        assert_eq!(error, KafkaError::Unavailable(text));
        let error = no_answer("b:1", &late);
        assert!(matches!(error, KafkaError::Unknown(_)));
    }
}
