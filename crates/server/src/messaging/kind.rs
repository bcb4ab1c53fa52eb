//! Kinds of subscriptions: a name of one kind is no name of another.

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A channel by its name.
    Channel,
    /// All channels whose names match a glob pattern.
    Pattern,
    /// A shard channel; on a single node a space of names of its own.
    Shard,
    /// Every command that is run.
    Monitor,
}
