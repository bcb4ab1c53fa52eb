//! Creating a series together with the rules of the compaction policy.
//!
//! Series, destinations and rules are created under the locks of all shards, for
//! the same reason as a single rule ([`super::link`]), and are one group in the
//! log: after a crash all of them exist or none. Only if they exceed the maximum
//! group size may a crash keep the series with some of its destinations, each with
//! its rule. The sample that created the series follows in a group of its own.
//!
//! Tested by `tests/db_rules/policy.rs`.

use crate::base::error::Result;
use crate::base::options::Defaults;
use crate::base::refusal::Refusal;
use crate::format::rule::RuleSpec;
use crate::keyspace::creation::Create;
use crate::log::Position;
use crate::rules::Rules;
use crate::series::shards::AllShards;
use latewood_model::{Compaction, MadeBy, SeriesId, SeriesOptions};

/// A compaction on its way to become a rule.
struct Planned {
    key: Vec<u8>,
    spec: RuleSpec,
    /// `None` where its labels are over the limits.
    options: Option<SeriesOptions>,
}

impl Rules {
    /// Creates the series under `key` with its compactions, where it is
    /// missing, may be created, and there is a policy; otherwise nothing
    /// happens. A destination that cannot be made is left out: no reason to
    /// refuse a sample. No lock may be held.
    pub(crate) fn create_compacted(
        &self,
        key: &[u8],
        hash: u64,
        create: Create<'_>,
    ) -> Result<std::result::Result<Position, Refusal>> {
        if !self.core.defaults.compacts() || self.core.keys.find(hash, key).is_some() {
            return Ok(Ok(Position::default()));
        }
        let defaults = self.core.defaults.get();
        let Some(options) = create.options(&defaults.series) else {
            return Ok(Ok(Position::default()));
        };
        let (options, made_by) = (&*options, create.made_by());
        let plan = plan(key, options, &defaults);
        for planned in &plan {
            self.purge(&planned.key)?;
            self.core.find(&planned.key)?;
        }
        let mut states = self.core.shards.lock_all();
        // Somebody else was faster, or it has to wake.
        if self.core.names(key) != (None, false) {
            return Ok(Ok(Position::default()));
        }
        let shard = self.core.shards.shard_of_hash(hash);
        let source = match self
            .core
            .enter_in(&mut states[shard], key, hash, made_by, options)
        {
            Ok(source) => source,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if self.core.log().is_some() {
            states[shard].group.create(source, key, made_by, options);
        }
        let mut made = vec![true; plan.len()];
        for (planned, made) in plan.iter().zip(&mut made) {
            self.core.log_long_group(&mut states[shard])?;
            *made = self.add_compaction(&mut states, source, made_by, planned)?;
        }
        let position = self.core.log_group(&mut states[shard])?;
        drop(states);
        self.tell_compacted(key, &plan, &made);
        Ok(Ok(position))
    }

    /// Makes a destination and its rule; false where it cannot be. It was made by who made the
    /// source.
    fn add_compaction(
        &self,
        states: &mut AllShards<'_>,
        source: SeriesId,
        made_by: MadeBy,
        planned: &Planned,
    ) -> Result<bool> {
        let Some(options) = &planned.options else {
            return Ok(false);
        };
        let hash = self.core.keys.hash(&planned.key);
        if self.core.names(&planned.key) != (None, false) {
            return Ok(false);
        }
        let state = &mut states[self.core.shards.shard_of_hash(hash)];
        let entered = self
            .core
            .enter_in(state, &planned.key, hash, made_by, options);
        let Ok(destination) = entered else {
            return Ok(false);
        };
        // Both were just made.
        self.link(states, source, destination, planned.spec)?;
        if self.core.log().is_some() {
            // All in the source's group, whichever shard the destination is in.
            let group = &mut states[self.core.shards.shard_of(source)].group;
            group.create(destination, &planned.key, made_by, options);
            group.create_rule(source, destination, planned.spec);
        }
        Ok(true)
    }

    fn tell_compacted(&self, key: &[u8], plan: &[Planned], made: &[bool]) {
        if let Some(hook) = &self.core.options.on_created {
            hook.tell(key);
        }
        for (planned, &made) in plan.iter().zip(made) {
            let hook = if made {
                &self.core.options.on_created
            } else {
                &self.core.options.on_not_compacted
            };
            if let Some(hook) = hook {
                hook.tell(&planned.key);
            }
        }
    }
}

/// What the policy in force asks for beside a series with these options.
fn plan(key: &[u8], options: &SeriesOptions, defaults: &Defaults) -> Vec<Planned> {
    let planned = |compaction: &Compaction| {
        let labels = compaction.labels(&options.labels);
        Planned {
            key: compaction.destination(key),
            spec: RuleSpec {
                aggregator: compaction.aggregator,
                bucket_ms: compaction.bucket_ms,
                align: compaction.align_ms,
            },
            // Chunks are as the server's defaults say, not as the source's.
            options: labels.ok().map(|labels| SeriesOptions {
                retention_ms: compaction.retention_ms,
                chunk_size_bytes: defaults.series.chunk_size_bytes,
                encoding: defaults.series.encoding,
                labels,
                ..SeriesOptions::default()
            }),
        }
    };
    let compactions = defaults.compactions.compactions();
    compactions.iter().map(planned).collect()
}
