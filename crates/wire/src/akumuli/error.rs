//! Why a message is refused.

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A line where a series line or a number of the dictionary is expected.
    #[error("unexpected parameter id format")]
    Id,
    /// A series line without a metric or without a tag.
    #[error("invalid series name format")]
    Series,
    /// A number that the dictionary does not have.
    #[error("id {0} is not in the dictionary")]
    UnknownId(u64),
    /// A series whose name begins with `!`.
    #[error("events are not stored")]
    Event,
    /// No time.
    #[error("unexpected parameter timestamp format")]
    Timestamp,
    /// No number.
    #[error("unexpected parameter value format")]
    Value,
    /// One value for several metrics.
    #[error("array expected (bulk format)")]
    ArrayExpected,
    /// Fewer or more values than metrics.
    #[error("wrong array size, {expected} values expected, {found} found")]
    ArraySize {
        /// The metrics of the series line.
        expected: usize,
        /// The number of the array.
        found: usize,
    },
    /// An array that would be longer than any row or dictionary.
    #[error("an array of {0} elements is too long")]
    ArrayTooLong(u64),
    /// The next message began before this one's value.
    #[error("message cut short by the next series line")]
    CutShort,
    /// A dictionary of an odd number of lines.
    #[error("number of elements in the dictionary should be even")]
    OddDictionary,
    /// A line of the dictionary that is neither a series nor a number.
    #[error("unexpected series name format in the dictionary")]
    Entry,
    /// A number that stands for another series already.
    #[error("id {0} stands for another series in the dictionary")]
    TakenId(u64),
    /// More than the dictionary of a connection may hold.
    #[error("the dictionary takes more than {0} bytes")]
    DictionaryFull(usize),
}
