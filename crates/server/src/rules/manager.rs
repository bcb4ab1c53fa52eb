//! The rules of a server: which groups there are, from its start over reloads to its end.
//!
//! What is done with them is in the modules beside. Tested by `super::tests`.

use super::corrections::plan::Plan;
use super::corrections::state::Corrections;
use super::delays::Readers;
use super::due::{Task, Turns};
use super::figures::Figures;
use super::group::LiveGroup;
use super::load;
use super::notify::Notifier;
use super::owners::Owners;
use crate::base::clock::now_ms;
use crate::state::{Promql, Rules as Settings, Shared, with_rules};
use latewood_cluster::node::Node;
use latewood_promql::engine::{self, Pool};
use latewood_rules::Group;
use latewood_rules::evaluate::Options;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What all evaluations may hold, as a multiple of what one query may.
const MEMORY_SHARES: usize = 2;

/// How often it is looked how late samples came.
const DELAYS_EVERY: Duration = Duration::from_secs(1);
/// How often it is forgotten who wrote what is gone.
const FORGET_EVERY: Duration = Duration::from_secs(600);

/// The rules of a server.
pub(crate) struct Manager {
    pub(super) settings: Settings,
    /// How expressions are evaluated.
    pub(super) options: Options,
    /// The longest that an evaluation of a rule may take.
    pub(super) longest: Duration,
    pub(super) owners: Owners,
    pub(super) groups: Mutex<Groups>,
    /// Told when `groups` changes.
    pub(super) changed: Condvar,
    /// Told when the server stops.
    pub(super) stopped: Condvar,
    /// Who reads which series, for delays.
    pub(super) readers: Mutex<Arc<Readers>>,
    /// Held by a reload.
    pub(super) reloading: Mutex<()>,
    /// Why no rule can be evaluated, when it was looked at.
    pub(super) obstacle: Mutex<Option<(Instant, Option<String>)>>,
    /// When the files were read, milliseconds, and negative if they were wrong.
    pub(super) read_ms: AtomicI64,
    pub(super) corrections: Corrections,
    /// Of what is in the files; 0 without files.
    pub(super) digest: AtomicU64,
    /// Tells other nodes of it.
    pub(super) node: OnceLock<Arc<Node>>,
    pub(crate) notifier: Notifier,
    pub(crate) figures: Figures,
}

/// Groups and when they are due.
#[derive(Default)]
pub(super) struct Groups {
    /// By file and name.
    pub(super) all: BTreeMap<(String, String), Arc<LiveGroup>>,
    pub(super) turns: Turns,
}

impl Manager {
    /// The rules that `settings` name.
    ///
    /// # Errors
    /// What is wrong with them, with file, line and reason.
    pub(crate) fn new(settings: &Settings, promql: &Promql) -> Result<Self, String> {
        let external_labels = load::external_labels(&settings.external_labels)?;
        let memory_bytes = promql.memory_bytes as usize;
        let query = engine::Settings {
            lookback_ms: promql.lookback_ms as i64,
            delays_name_removal: promql.delays_name_removal,
            samples_max: promql.samples_max as usize,
            memory_bytes_max: memory_bytes,
            pool: Some(Arc::new(Pool::new(
                memory_bytes.saturating_mul(MEMORY_SHARES),
            ))),
            ..engine::Settings::default()
        };
        let notifier = Notifier::new(settings, &external_labels)?;
        let manager = Self {
            options: Options {
                settings: query,
                query_offset_ms: settings.query_offset_ms as i64,
                external_labels,
                external_url: settings.external_url.clone(),
                series_max: settings.series_max as usize,
            },
            longest: Duration::from_millis(promql.timeout_ms),
            owners: Owners::default(),
            groups: Mutex::default(),
            changed: Condvar::new(),
            stopped: Condvar::new(),
            readers: Mutex::default(),
            reloading: Mutex::default(),
            obstacle: Mutex::default(),
            read_ms: AtomicI64::new(now_ms()),
            corrections: Corrections::default(),
            digest: AtomicU64::new(0),
            node: OnceLock::new(),
            notifier,
            figures: Figures::default(),
            settings: settings.clone(),
        };
        let groups = load::groups(&manager.settings)?;
        let digest = load::digest(&groups, &manager.settings);
        manager.digest.store(digest, Ordering::Relaxed);
        manager.replace(groups, true, now_ms());
        Ok(manager)
    }

    /// Whether there are rule files.
    pub(crate) fn is_on(&self) -> bool {
        !self.settings.files.is_empty()
    }

    /// Reads the files again. Returns the number of groups and rules.
    ///
    /// # Errors
    /// What is wrong with them; the rules that run stay.
    pub(crate) fn reload(&self) -> Result<(usize, usize), String> {
        let _turn = self.reloading.lock();
        let now_ms = now_ms();
        match load::groups(&self.settings) {
            Ok(groups) => {
                let rules = groups.iter().map(|(_, group)| group.rules.len()).sum();
                let counts = (groups.len(), rules);
                let digest = load::digest(&groups, &self.settings);
                self.digest.store(digest, Ordering::Relaxed);
                self.tell_nodes();
                self.replace(groups, false, now_ms);
                self.read_ms.store(now_ms, Ordering::Relaxed);
                Ok(counts)
            }
            Err(why) => {
                self.read_ms.store(-now_ms, Ordering::Relaxed);
                Err(why)
            }
        }
    }

    /// Other nodes hear from `node` which files this one has, now and after each reload.
    pub(crate) fn told_by(&self, node: &Arc<Node>) {
        self.node.get_or_init(|| Arc::clone(node));
        self.tell_nodes();
    }

    fn tell_nodes(&self) {
        let rules = self.digest.load(Ordering::Relaxed);
        if let Some(node) = self.node.get() {
            node.change(|standing| {
                if let Some(me) = standing.members.first_mut() {
                    me.digests[1] = with_rules(me.digests[1], rules);
                }
            });
        }
    }

    /// When the files were read last, milliseconds, and whether they were right.
    pub(crate) fn last_read(&self) -> (i64, bool) {
        let read_ms = self.read_ms.load(Ordering::Relaxed);
        (read_ms.abs(), read_ms >= 0)
    }

    /// The groups, by file and name.
    pub(crate) fn groups(&self) -> Vec<Arc<LiveGroup>> {
        self.groups.lock().all.values().cloned().collect()
    }

    /// Series that rules write.
    pub(crate) fn series(&self) -> usize {
        self.owners.series()
    }

    /// Notes how late samples come, and forgets who wrote what is gone, until the server stops.
    pub(crate) fn watch_delays(&self, shared: &Shared) {
        let arrivals = &shared.observe.arrivals;
        arrivals.turn_on();
        let mut forget_at = Instant::now() + FORGET_EVERY;
        let mut groups = self.groups.lock();
        while !groups.turns.has_stopped() {
            let until = Instant::now() + DELAYS_EVERY;
            while !groups.turns.has_stopped()
                && !self.stopped.wait_until(&mut groups, until).timed_out()
            {}
            let readers = Arc::clone(&self.readers.lock());
            MutexGuard::unlocked(&mut groups, || {
                readers.note(shared, &arrivals.take(), now_ms());
                if Instant::now() >= forget_at {
                    self.forget_gone(shared);
                    forget_at = Instant::now() + FORGET_EVERY;
                }
            });
        }
    }

    /// Ends all evaluations soon.
    pub(crate) fn stop(&self) {
        self.groups.lock().turns.stop();
        self.changed.notify_all();
        self.stopped.notify_all();
        self.corrections.stop();
        self.notifier.stop();
    }

    /// Series that one rule may write.
    pub(super) fn series_max(&self) -> usize {
        match self.options.series_max {
            0 => usize::MAX,
            most => most,
        }
    }

    /// Has `groups` evaluated from now on, and no others. Those that are there already go on; where
    /// they `restore`, new ones continue alerts from what is stored.
    fn replace(&self, groups: Vec<(String, Group)>, restores: bool, now_ms: i64) {
        let interval_ms = self.settings.interval_ms as i64;
        // Nothing else changes them: a reload has its turn.
        let old = self.groups.lock().all.clone();
        let (mut all, mut begun) = (BTreeMap::new(), Vec::new());
        for (file, group) in groups {
            let key = (file.clone(), group.name.clone());
            let held = old.get(&key);
            let live = match held {
                Some(held) if held.is_same(&group, interval_ms) => Arc::clone(held),
                _ => {
                    let named = (file, group);
                    let mut live = LiveGroup::new(named, interval_ms, &self.owners, restores);
                    if let Some(held) = held {
                        live.continue_from(held, &self.owners);
                    }
                    let live = Arc::new(live);
                    begun.push(Arc::clone(&live));
                    live
                }
            };
            all.insert(key, live);
        }
        let removed = old.into_iter().filter(|(key, _)| !all.contains_key(key));
        let removed: Vec<_> = removed.map(|(_, group)| group).collect();
        let left: Vec<_> = removed
            .iter()
            .map(|group| (group, group.retire(&self.owners)))
            .collect();
        // Before a new group is evaluated.
        let live: Vec<_> = all.values().cloned().collect();
        let settings = &self.options.settings;
        self.corrections
            .set_plan(|number| Plan::new(number, &live, settings, |group| self.offset_ms(group)));
        *self.readers.lock() = Arc::new(Readers::of(&live, settings));
        let mut groups = self.groups.lock();
        groups.all = all;
        for group in begun {
            let at_ms = group.first_ms(now_ms);
            groups.turns.put(at_ms, Task::Evaluate(group));
        }
        for (group, series) in left {
            // Time for a rule of another name to take them over.
            let due_ms = now_ms + 2 * group.interval_ms();
            let at_ms = now_ms - self.offset_ms(group);
            groups.turns.put(due_ms, Task::Left { series, at_ms });
        }
        drop(groups);
        self.changed.notify_all();
    }

    /// How far back the rules of a group look, milliseconds.
    pub(super) fn offset_ms(&self, group: &LiveGroup) -> i64 {
        let own = group.group.query_offset_ms;
        own.unwrap_or(self.options.query_offset_ms)
    }
}
