//! Errors of messages.

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Neither a series line nor a number of the dictionary.
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
    /// An invalid time.
    #[error("unexpected parameter timestamp format")]
    Timestamp,
    /// An invalid number.
    #[error("unexpected parameter value format")]
    Value,
    /// One value for several metrics.
    #[error("array expected (bulk format)")]
    ArrayExpected,
    /// A different number of values than metrics.
    #[error("wrong array size, {expected} values expected, {found} found")]
    ArraySize {
        /// Number of metrics in the series line.
        expected: usize,
        /// Length of the array.
        found: usize,
    },
    /// An array longer than any row or dictionary may be.
    #[error("an array of {0} elements is too long")]
    ArrayTooLong(u64),
    /// The next message began before this one's value.
    #[error("message truncated by the next series line")]
    CutShort,
    /// A dictionary of an odd number of lines.
    #[error("number of elements in the dictionary should be even")]
    OddDictionary,
    /// A line of the dictionary that is neither a series nor a number.
    #[error("unexpected series name format in the dictionary")]
    Entry,
    /// A number that already names another series.
    #[error("id {0} already names another series in the dictionary")]
    TakenId(u64),
    /// The dictionary of a connection is full.
    #[error("the dictionary takes more than {0} bytes")]
    DictionaryFull(usize),
}
