//! Options of rule files and of Alertmanagers.

use super::kind::Kind;
use super::range::{PERCENT, RETENTION, RULE_BACK, RULE_DELAY, RULE_INTERVAL, RULE_SERIES, RULES};
use super::row::{Need, Row, row};

/// Without a rule file.
const NEEDS_RULES: Need = |settings| settings.rules.files.is_empty().then_some("rules");

pub(super) const ROWS: &[Row] = &[
    row("rules FILE", "")
        .is(Kind::List(|of| &mut of.rules.files, None))
        .help(
            "Rule file of Prometheus, or a pattern with *: its recording rules and alerts are \
             evaluated; may be given several times. Read again at SIGHUP and POST /-/reload",
        ),
    row("evaluation-interval TIME", "1m")
        .is(Kind::Time(RULE_INTERVAL, |of| &mut of.rules.interval_ms))
        .help("How often a group of rules is evaluated that names no interval")
        .needs(NEEDS_RULES),
    row("rule-query-offset TIME", "0")
        .is(Kind::Time(RULE_DELAY, |of| &mut of.rules.query_offset_ms))
        .help("How far back rules of a group look that names no query_offset")
        .needs(NEEDS_RULES),
    row("external-labels NAME=VALUE,...", "")
        .is(Kind::List(|of| &mut of.rules.external_labels, Some(',')))
        .help("Labels of this server in templates and notifications; may be given several times")
        .needs(NEEDS_RULES),
    row("external-url URL", "")
        .is(Kind::Text(|of| &mut of.rules.external_url))
        .help("Where users find this server, for the links of notifications")
        .needs(NEEDS_RULES),
    row("max-rules NUMBER", "20000")
        .is(Kind::Number(RULES, |of| &mut of.rules.rules_max))
        .help("Rules of all files together; files with more are refused")
        .needs(NEEDS_RULES),
    row("max-rule-series NUMBER", "100000")
        .is(Kind::Number(RULE_SERIES, |of| &mut of.rules.series_max))
        .help("Series that one rule may write; a rule with more fails and writes none")
        .needs(NEEDS_RULES),
    row("rules-correction-cpu PERCENT", "25")
        .is(Kind::Number(PERCENT, |of| {
            &mut of.rules.correction_cpu_percent
        }))
        .help("How much of one core may be used to compute rows of rules again after late samples")
        .needs(NEEDS_RULES),
    row("rules-correct-back TIME", "0")
        .is(Kind::Time(RULE_BACK, |of| &mut of.rules.correct_back_ms))
        .help("How old rows of rules may be that late samples still change (0 = any age)")
        .needs(NEEDS_RULES),
    row("rules-catch-up TIME", "1d")
        .is(Kind::Time(RULE_DELAY, |of| &mut of.rules.catch_up_ms))
        .help("How far back rows of rules are computed that were missed while nothing ran")
        .needs(NEEDS_RULES),
    row("rules-retention TIME", "0")
        .is(Kind::Time(RETENTION, |of| &mut of.rules.retention_ms))
        .help("Retention of series that rules make (0 = that of other series)")
        .needs(NEEDS_RULES),
    row("alertmanager URL", "")
        .is(Kind::List(|of| &mut of.rules.alertmanagers, None))
        .help(
            "Alertmanager that is told of alerts, as http://USER:PASSWORD@HOST:PORT/PREFIX or \
             with https; may be given several times",
        )
        .needs(NEEDS_RULES),
    row("alert-resend-delay TIME", "1m")
        .is(Kind::Time(RULE_DELAY, |of| &mut of.rules.resend_delay_ms))
        .help("How long Alertmanagers are not told again of an alert that fires")
        .needs(NEEDS_RULES),
];
