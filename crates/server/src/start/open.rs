//! Opening the database: with its log on this machine, in Kafka, or as a node of a cluster. Tested by
//! `tests/`.

use super::node::{self, Joined};
use super::tablet::{self, Keeper};
use crate::messaging::{Class, Events};
use crate::state::{Settings, Shared, Stop};
use latewood_cluster::node::Node;
use latewood_engine::io::Env;
use latewood_engine::{Db, KeyHook, NoticeHook, Options, ProgressHook, shown_key};
use std::sync::{Arc, Weak};

/// A database that was opened.
pub(super) enum Opened {
    /// With its log on this machine.
    Alone(Box<Db>),
    /// With its log in Kafka.
    Kept(Box<Db>, Keeper),
    /// As a node of a cluster.
    Joined(Joined),
}

/// Opens the database that `settings` name, as `node` of a cluster if it is one. Its events go to `events`.
///
/// # Errors
/// Why it cannot be opened.
pub(super) fn open(
    settings: &Settings,
    events: &Arc<Events>,
    node: Option<Arc<Node>>,
    shared: Weak<Shared>,
    notices: NoticeHook,
) -> Result<Opened, Stop> {
    let stopped = Weak::clone(&shared);
    let following = events.of_follower();
    let [hearing, ending, creating, events] = [(); 4].map(|()| Arc::clone(events));
    let options = Options {
        log: settings.wal,
        strict: settings.strict,
        durability: settings.durability,
        sync_interval_ms: settings.sync_interval_ms,
        query_threads: settings.query_threads as usize,
        memory_bytes: settings.memory_bytes,
        series_max: settings.series_max,
        query_series_max: settings.query_series_max,
        retention_ms: settings.retention_ms,
        drop_empty: settings.drop_empty,
        park_after_ms: settings.park_after_ms,
        expiry_hz: settings.expiry_hz as u32,
        disk_budget_bytes: settings.disk_budget_bytes,
        on_notice: Some(notices),
        flush_age_ms: settings.flush_age_s.saturating_mul(1000),
        log_bytes_max: settings.log_bytes_max,
        on_progress: Some(ProgressHook::new(move |progress| {
            if let Some(shared) = shared.upgrade() {
                shared.db.loading.note(progress);
            }
        })),
        on_expired: Some(KeyHook::new(move |key| {
            hearing.changed(Class::Expired, "expired", key);
        })),
        // Retention took it: who listens hears that as an expiry.
        on_ended: Some(KeyHook::new(move |key| {
            ending.changed(Class::Expired, "expired", key);
        })),
        on_rule_write: Some(KeyHook::new(move |key| {
            events.changed(Class::Module, "ts.add:dest", key);
        })),
        on_created: Some(KeyHook::new(move |key| creating.came_along(key))),
        on_follow: Some(following),
        on_not_compacted: Some(KeyHook::new(|key| {
            let key = shown_key(key);
            tracing::warn!(%key, "compaction rule not created: its key exists or is over a limit");
        })),
        ..Options::default()
    };
    if settings.cluster.log.is_some() || settings.cluster.objects.is_some() {
        settings.cluster.check_reads()?;
        if let Some(node) = node {
            return node::open(settings, options, node, stopped).map(Opened::Joined);
        }
        let (db, keeper) = tablet::open(settings, options, stopped)?;
        return Ok(Opened::Kept(Box::new(db), keeper));
    }
    let defaults = settings.defaults();
    let opened = Db::open(&Env::real(), &settings.dir, options, defaults)
        .map_err(|error| format!("cannot open {}: {error}", settings.dir.display()))?;
    Ok(Opened::Alone(Box::new(opened)))
}
