//! Figures of rules and notifications, by the names that Prometheus gives them, so that dashboards
//! and alerts made for it find them. Only where there are rule files.

use crate::rules::{BOUNDS_S, Durations, LiveGroup, Manager, QUEUE_MAX, Shown};
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Families and samples, with labels that may hold any text.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, label: Option<(&str, &str)>, value: impl Display) {
        let _ = match label {
            None => writeln!(self.0, "{name} {value}"),
            Some((label, text)) => {
                let text = text
                    .replace('\\', r"\\")
                    .replace('"', "\\\"")
                    .replace('\n', r"\n");
                writeln!(self.0, "{name}{{{label}=\"{text}\"}} {value}")
            }
        };
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, None, value);
    }

    /// How long something took: as a summary without quantiles, and as a histogram.
    fn durations(&mut self, name: &str, help: &str, durations: &Durations) {
        let (counts, sum_s) = durations.read();
        let count: u64 = counts.iter().sum();
        let summary = format!("{name}_seconds");
        self.family(&summary, "summary", help);
        self.sample(&format!("{summary}_sum"), None, sum_s);
        self.sample(&format!("{summary}_count"), None, count);
        let histogram = format!("{name}_histogram_seconds");
        self.family(&histogram, "histogram", help);
        let mut below = 0;
        for (at, more) in counts.iter().enumerate() {
            below += more;
            let bound = BOUNDS_S.get(at);
            let bound = bound.map_or_else(|| "+Inf".to_owned(), f64::to_string);
            self.sample(&format!("{histogram}_bucket"), Some(("le", &bound)), below);
        }
        self.sample(&format!("{histogram}_sum"), None, sum_s);
        self.sample(&format!("{histogram}_count"), None, count);
    }
}

/// A group, its name and how it is now.
type Of = (String, Arc<LiveGroup>, Shown);
/// A family of one sample a group: name, kind, help and value.
type Row = (&'static str, &'static str, &'static str, fn(&Of) -> f64);

const ROWS: &[Row] = &[
    (
        "prometheus_rule_evaluations_total",
        "counter",
        "The total number of rule evaluations.",
        |of| count(&of.1.figures.evaluations),
    ),
    (
        "prometheus_rule_evaluation_failures_total",
        "counter",
        "The total number of rule evaluation failures.",
        |of| count(&of.1.figures.failures),
    ),
    (
        "prometheus_rule_group_iterations_total",
        "counter",
        "The total number of scheduled rule group evaluations, whether executed or missed.",
        |of| count(&of.1.figures.iterations),
    ),
    (
        "prometheus_rule_group_iterations_missed_total",
        "counter",
        "The total number of rule group evaluations missed due to slow rule group evaluation.",
        |of| count(&of.1.figures.missed),
    ),
    (
        "prometheus_rule_group_interval_seconds",
        "gauge",
        "The interval of a rule group.",
        |of| of.1.interval_ms() as f64 / 1000.0,
    ),
    (
        "prometheus_rule_group_rules",
        "gauge",
        "The number of rules.",
        |of| of.1.group.rules.len() as f64,
    ),
    (
        "prometheus_rule_group_last_evaluation_timestamp_seconds",
        "gauge",
        "The timestamp of the last rule group evaluation in seconds.",
        |of| of.2.at_ms as f64 / 1000.0,
    ),
    (
        "prometheus_rule_group_last_duration_seconds",
        "gauge",
        "The duration of the last rule group evaluation.",
        |of| of.2.took.as_secs_f64(),
    ),
    (
        "prometheus_rule_group_last_rule_duration_sum_seconds",
        "gauge",
        "The sum of time in seconds it took to evaluate each rule in the group.",
        |of| of.2.rules_took.as_secs_f64(),
    ),
    (
        "prometheus_rule_group_last_restore_duration_seconds",
        "gauge",
        "The duration of the last restoration of alerts from ALERTS_FOR_STATE.",
        |of| of.2.restore_took.as_secs_f64(),
    ),
    (
        "prometheus_rule_group_last_evaluation_samples",
        "gauge",
        "The number of samples returned during the last rule group evaluation.",
        |of| of.2.samples as f64,
    ),
];

/// All figures of rules; nothing where there are no rule files.
pub(super) fn report(manager: &Manager) -> String {
    let mut text = Text::default();
    if !manager.is_on() {
        return text.0;
    }
    let (read_ms, is_right) = manager.last_read();
    let name = "prometheus_config_last_reload_successful";
    let help = "Whether the last reading of rule files was successful.";
    text.one(name, "gauge", help, u8::from(is_right));
    let name = "prometheus_config_last_reload_success_timestamp_seconds";
    let help = "When rule files were last read successfully.";
    if is_right {
        text.one(name, "gauge", help, read_ms as f64 / 1000.0);
    }
    let name = "prometheus_rule_series";
    text.one(name, "gauge", "Series that rules write.", manager.series());
    let help = "The duration for a rule to execute.";
    let figures = &manager.figures;
    text.durations("prometheus_rule_evaluation_duration", help, &figures.rules);
    let help = "The duration of rule group evaluations.";
    text.durations("prometheus_rule_group_duration", help, &figures.groups);
    let groups = manager.groups().into_iter();
    let groups: Vec<Of> = groups
        .map(|group| (group.key(), Arc::clone(&group), group.shown()))
        .collect();
    for (name, kind, help, value) in ROWS {
        text.family(name, kind, help);
        for group in &groups {
            text.sample(name, Some(("rule_group", &group.0)), value(group));
        }
    }
    corrections(&mut text, manager);
    notifications(&mut text, manager);
    text.0
}

fn corrections(text: &mut Text, manager: &Manager) {
    let name = "latewood_rules_pending_steps";
    let help = "Steps of rules that wait to be computed again, as far as they are counted.";
    text.one(name, "gauge", help, manager.pending_steps());
    let figures = manager.correction_figures();
    for (name, help, value) in [
        (
            "latewood_rules_corrected_steps_total",
            "Steps of rules that were computed again.",
            &figures.steps,
        ),
        (
            "latewood_rules_corrected_rows_total",
            "Rows of rules that corrections wrote.",
            &figures.rows_written,
        ),
        (
            "latewood_rules_deleted_rows_total",
            "Rows of rules that corrections removed.",
            &figures.rows_deleted,
        ),
        (
            "latewood_rules_final_steps_total",
            "Steps of rules that changed and keep their rows, as their inputs may be gone.",
            &figures.final_steps,
        ),
        (
            "latewood_rules_skipped_steps_total",
            "Steps that were missed longer ago than --rules-catch-up.",
            &figures.skipped_steps,
        ),
        (
            "latewood_rules_failed_corrections_total",
            "Passes of corrections that failed; they are repeated.",
            &figures.failures,
        ),
    ] {
        text.one(name, "counter", help, value.load(Ordering::Relaxed));
    }
    let name = "latewood_rules_correction_seconds_total";
    let help = "Time that corrections of rules took.";
    text.one(name, "counter", help, count(&figures.took_ns) / 1e9);
}

fn notifications(text: &mut Text, manager: &Manager) {
    let targets = manager.notifier.targets();
    let name = "prometheus_notifications_alertmanagers_discovered";
    let help = "The number of alertmanagers discovered and active.";
    text.one(name, "gauge", help, targets.len());
    let name = "prometheus_notifications_queue_capacity";
    let help = "The capacity of the alert notifications queue.";
    text.one(name, "gauge", help, QUEUE_MAX);
    let mut family = |name: &str, kind, help, value: &dyn Fn(&crate::rules::Target) -> f64| {
        text.family(name, kind, help);
        for target in targets {
            text.sample(name, Some(("alertmanager", &target.url)), value(target));
        }
    };
    let name = "prometheus_notifications_queue_length";
    let help = "The number of alert notifications in the queue.";
    family(name, "gauge", help, &|target| target.queued() as f64);
    let name = "prometheus_notifications_sent_total";
    let help = "Total number of alerts sent.";
    family(name, "counter", help, &|target| count(&target.sent));
    let name = "prometheus_notifications_errors_total";
    let help = "Total number of sent alerts affected by errors.";
    family(name, "counter", help, &|target| count(&target.errors));
    let name = "prometheus_notifications_dropped_total";
    let help = "Total number of alerts dropped due to errors when sending to Alertmanager.";
    family(name, "counter", help, &|target| count(&target.dropped));
    let name = "prometheus_notifications_latency_seconds";
    text.family(name, "summary", "Latency of sending alert notifications.");
    for target in targets {
        let label = Some(("alertmanager", &*target.url));
        let took_s = count(&target.took_ns) / 1e9;
        text.sample(&format!("{name}_sum"), label, took_s);
        text.sample(&format!("{name}_count"), label, count(&target.requests));
    }
}

fn count(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}
