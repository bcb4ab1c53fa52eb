//! Every limit of Latewood, in one place, with what it bounds.
//!
//! A request over a limit is refused with an error; nothing is truncated silently.
//! `docs/operations.md` repeats this table for operators.

/// Keys of one TS.NRANGE or TS.NREVRANGE.
pub const NRANGE_KEYS_MAX: usize = 4096;
/// Bytes of one key.
pub const KEY_BYTES_MAX: usize = 64 * 1024;
/// Label pairs of one series.
pub const LABELS_MAX: usize = 1024;
/// Bytes of all label names and values of one series together.
pub const LABEL_BYTES_MAX: usize = 256 * 1024;
/// Compactions of one compaction policy: the rules of one new series.
pub const COMPACTIONS_MAX: usize = 64;
/// Smallest CHUNK_SIZE.
pub const CHUNK_SIZE_BYTES_MIN: u32 = 48;
/// Largest CHUNK_SIZE.
pub const CHUNK_SIZE_BYTES_MAX: u32 = 1024 * 1024;
/// Default CHUNK_SIZE.
pub const CHUNK_SIZE_BYTES_DEFAULT: u32 = 4096;
/// Largest number of samples in one frame: the unit of encoding.
pub const FRAME_SAMPLES_MAX: usize = 512;
/// Smallest number of samples a frame is filled to before it is sealed.
pub const FRAME_SAMPLES_MIN: usize = 64;
/// Late samples held before they are settled into chunks, over all series, 24
/// bytes each. Above it, writers settle the series they write to.
pub const LATE_HELD_MAX: usize = 4 * 1024 * 1024;
/// Series of one database.
pub const SERIES_MAX: u32 = u32::MAX - 1;
/// Operations of one append batch; a longer pipeline is split.
pub const APPEND_BATCH_MAX: usize = 4096;
/// Bytes of one log group; a batch whose records are longer is split.
pub const LOG_GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Timestamps of one FILTER_BY_TS.
pub const FILTER_BY_TS_MAX: usize = 128;
/// Aggregators of one query.
pub const AGGREGATORS_MAX: usize = 16;
/// Names of one SELECTED_LABELS.
pub const SELECTED_LABELS_MAX: usize = 50;
/// Arguments of one command.
pub const COMMAND_ARGUMENTS_MAX: usize = 1024 * 1024;
/// Bytes of one argument.
pub const ARGUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Samples of one payload of RESTORE: as many as one argument has bytes.
pub const RESTORE_SAMPLES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of one command, all arguments together.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes that one connection may make the server hold between its commands:
/// subscriptions, watched keys, commands between MULTI and EXEC.
pub const CLIENT_HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes that all connections together may make the server hold so.
pub const ALL_HELD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What the patterns of PSUBSCRIBE of one connection may take, 64 bytes and its text each:
/// every publication is matched with all of them.
pub const CLIENT_PATTERN_BYTES_MAX: usize = 64 * 1024;
/// The same of all connections together.
pub const ALL_PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the name of a user, or of a connection.
pub const NAME_BYTES_MAX: usize = 1024;
/// Rules of one ACL SETUSER, or of one line of the ACL file.
pub const USER_RULES_MAX: usize = 16 * 1024;
/// Bytes of what one user's rules are compiled to.
pub const USER_BYTES_MAX: usize = 1024 * 1024;
/// The same of all users together.
pub const ALL_USERS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a channel that a message is published to, and of one that patterns are matched with.
pub const CHANNEL_BYTES_MAX: usize = 1024;
/// Bytes of one inline command.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of replies one connection may leave unread regardless of the others.
pub const REPLY_BACKLOG_BYTES: usize = 1024 * 1024;
/// The same before a client has logged in.
pub const REPLY_BACKLOG_BEFORE_LOGIN_BYTES: usize = 4 * 1024;
/// Bytes of replies one connection may leave unread before its commands wait,
/// if memory allows: the replies of two million samples.
pub const REPLY_BACKLOG_MAX: usize = 32 * 1024 * 1024;
/// Bytes of one reply; a query with a longer reply is refused.
pub const REPLY_BYTES_MAX: usize = 1024 * 1024 * 1024;

const _: () = assert!(FRAME_SAMPLES_MIN < FRAME_SAMPLES_MAX);
const _: () = assert!(CHUNK_SIZE_BYTES_MIN < CHUNK_SIZE_BYTES_DEFAULT);
const _: () = assert!(CHUNK_SIZE_BYTES_DEFAULT < CHUNK_SIZE_BYTES_MAX);
const _: () = assert!(KEY_BYTES_MAX + LABEL_BYTES_MAX + 64 * 1024 < LOG_GROUP_BYTES_MAX);
const _: () = assert!(ARGUMENT_BYTES_MAX < COMMAND_BYTES_MAX);
