//! The states of alerts after a start, from the series ALERTS_FOR_STATE, as Prometheus does it: an
//! alert that was pending before goes on where it was, without the time in which nobody looked.

use super::group::{LiveGroup, Run};
use super::manager::Manager;
use super::reader::RuleReader;
use crate::labelled::Views;
use crate::state::Shared;
use latewood_promql::labels::Labels;
use latewood_promql::source::{Source, is_stale};
use latewood_promql::{parse_selector, quoted};
use latewood_rules::evaluate::Active;
use latewood_rules::{Alerting, Kind, Rule};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// What was active longer ago begins anew.
const OUTAGE_MAX_MS: i64 = 60 * 60 * 1000;
/// The least time from a start until a restored alert fires: time for its samples to come.
const GRACE_MS: i64 = 10 * 60 * 1000;

/// The last row of an alert.
#[derive(Clone, Copy)]
struct Stored {
    at_ms: i64,
    /// Since when it was active, seconds.
    since_s: f64,
}

/// Continues the alerts of a group that are active now.
pub(super) fn restore(
    manager: &Manager,
    shared: &Arc<Shared>,
    group: &LiveGroup,
    run: &mut Run,
    now_ms: i64,
) {
    for (at, rule) in group.group.rules.iter().enumerate() {
        let Kind::Alert(alerting) = &rule.kind else {
            continue;
        };
        if run.running.alerts(at).next().is_none() {
            continue;
        }
        let views = Views::new(RuleReader {
            shared: Arc::clone(shared),
            deadline: Instant::now() + manager.longest,
            is_retired: Arc::clone(&group.is_retired),
        });
        match stored(rule, alerting, &views, now_ms) {
            Ok(stored) => {
                let alerts = run.running.alerts(at).cloned();
                let restored = |mut alert: Active| {
                    if let Some(stored) = stored.get(&alert.labels) {
                        alert.active_at_ms = active_since(&alert, *stored, alerting.for_ms, now_ms);
                    }
                    alert
                };
                let alerts: Vec<_> = alerts.map(restored).collect();
                let seen: Vec<_> = run.running.seen(at).cloned().collect();
                run.running.restore(at, alerts, seen);
            }
            Err(why) => {
                let alert = &rule.name;
                tracing::warn!(
                    alert,
                    why,
                    "the state of alerts before the start is not known"
                );
            }
        }
    }
}

/// Since when an alert counts as active.
fn active_since(alert: &Active, stored: Stored, for_ms: i64, now_ms: i64) -> i64 {
    // Whole seconds, as they are stored.
    let down_ms = stored.at_ms.div_euclid(1000) * 1000;
    let since_ms = stored.since_s as i64 * 1000;
    let left_ms = for_ms - (down_ms - since_ms);
    if left_ms <= 0 {
        // It fired.
        since_ms
    } else if for_ms < GRACE_MS {
        alert.active_at_ms
    } else if left_ms < GRACE_MS {
        now_ms + GRACE_MS - for_ms
    } else {
        since_ms + (now_ms - down_ms)
    }
}

/// The last rows of the alerts of a rule that were active before, by the labels of the alerts.
fn stored(
    rule: &Rule,
    alerting: &Alerting,
    source: &dyn Source,
    now_ms: i64,
) -> Result<HashMap<Labels, Stored>, String> {
    let plain = alerting.labels.iter();
    let plain = plain.map(|(name, value)| (&**name, value.text()));
    // An empty one is no label.
    let plain = plain.filter(|(_, value)| !value.contains("{{"));
    let wanted = Labels::from_pairs(plain.chain([("alertname", &*rule.name)]));
    let matchers = wanted.iter().map(|(name, value)| {
        let (name, value) = (quoted(name), quoted(value));
        format!(",{name}={value}")
    });
    let text = format!(
        "{{__name__=\"ALERTS_FOR_STATE\"{}}}",
        matchers.collect::<String>()
    );
    let matchers = parse_selector(&text).map_err(|error| error.to_string())?;
    let from_ms = now_ms - OUTAGE_MAX_MS;
    let mut hold = |_| ControlFlow::Continue(());
    let found = source.select(&matchers, from_ms, now_ms, &mut hold);
    let mut all = HashMap::new();
    for series in found.map_err(|error| error.to_string())? {
        source.check().map_err(|error| error.to_string())?;
        let mut last = None;
        let read = source.read(series.handle, from_ms, now_ms, &mut |times, values| {
            last = times.last().copied().zip(values.last().copied()).or(last);
            ControlFlow::Continue(())
        });
        read.map_err(|error| error.to_string())?;
        if let Some((at_ms, since_s)) = last.filter(|(_, value)| !is_stale(*value)) {
            all.insert(series.labels.without_metric(), Stored { at_ms, since_s });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_rules::evaluate::State;

    #[test]
    fn an_alert_goes_on_without_the_time_in_which_nobody_looked() {
        const MINUTE: i64 = 60_000;
        let alert = Active {
            labels: Labels::default(),
            annotations: Vec::new(),
            state: State::Pending,
            value: 1.0,
            active_at_ms: 100 * MINUTE,
            fired_at_ms: None,
            resolved_at_ms: None,
            keep_firing_since_ms: None,
        };
        // (active since, last row, for, since when it counts): now is minute 100.
        for (since, down, lasts, expected) in [
            // It fired before.
            (10, 80, 60, 10),
            // Short ones begin anew.
            (78, 80, 5, 100),
            // Most of its time had passed: it waits for samples.
            (25, 80, 60, 100 + 10 - 60),
            // It has most of its time before it.
            (70, 80, 60, 90),
        ] {
            let stored = Stored {
                at_ms: down * MINUTE,
                since_s: (since * 60) as f64,
            };
            let counted = active_since(&alert, stored, lasts * MINUTE, 100 * MINUTE);
            assert_eq!(counted, expected * MINUTE, "{since} {down} {lasts}");
        }
    }
}
