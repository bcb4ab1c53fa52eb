//! What the pages of durability and sizes need beside their texts.

use serde_json::{Value, json};

use super::raw::{list, number, text};
use super::sheet::Sheet;

/// Names the system of each run, and whether it kept a log.
pub(super) fn prepare_durable(report: &mut Value) {
    for run in report["rates"].as_array_mut().into_iter().flatten() {
        // "RedisTimeSeries, AOF" is a RedisTimeSeries, "Latewood, log off" the one without.
        let target = text(run, "target");
        let system = target.split(',').next().unwrap_or_default();
        let logged = target != "Latewood, log off" && (target != system || system == "Latewood");
        run["system"] = system.into();
        run["logged"] = logged.into();
    }
}

/// Bits a value, mean over the 58 series of the Numenta benchmark, chunks of 1,024, measured with
/// other implementations: for orientation.
const REFERENCE: [(&str, f64); 6] = [
    ("Gorilla", 35.4),
    ("Chimp128", 33.0),
    ("Elf", 33.7),
    ("ALP + FOR", 27.7),
    ("pco, level 4", 18.1),
    ("pco, level 8", 17.6),
];

pub(super) fn prepare_size(report: &mut Value) {
    let stored = report["stored"].clone();
    let mut series: Vec<Value> = list(report, "series").into_iter().cloned().collect();
    report["measured"] = series.len().into();
    let mut all = json!({"name": "all", "codings": {}});
    for one in &series {
        for field in ["samples", "value_bytes", "timestamp_bytes", "xor_bytes"] {
            all[field] = (number(&all, field).max(0.0) + number(one, field)).into();
        }
        for (coding, frames) in one["codings"].as_object().into_iter().flatten() {
            let sum = number(&all["codings"], coding).max(0.0);
            all["codings"][coding] = (sum + frames.as_f64().unwrap_or(0.0)).into();
        }
    }
    series.push(all);
    for one in &mut series {
        let codings = one["codings"].as_object().into_iter().flatten();
        let mut codings: Vec<(String, f64)> = codings
            .map(|(coding, frames)| (coding.clone(), frames.as_f64().unwrap_or(0.0)))
            .collect();
        let frames: f64 = codings.iter().map(|(_, frames)| frames).sum();
        codings.sort_by(|a, b| b.1.total_cmp(&a.1));
        let share = |(coding, of): &(String, f64)| format!("{coding} {:.0} %", of * 100.0 / frames);
        one["shares"] = codings
            .iter()
            .map(share)
            .collect::<Vec<_>>()
            .join(", ")
            .into();
    }
    report["series"] = series.into();
    report["servers"] = json!([stored]);
}

pub(super) fn beside(sheet: &Sheet<'_>) -> String {
    let series = list(sheet.report, "series");
    let measured = &series[..series.len().saturating_sub(1)];
    let bits = |of: &str| {
        let bits = measured.iter().map(|one| number(one, of) * 8.0);
        bits.sum::<f64>() / measured.len() as f64
    };
    let mut table = format!(
        "| coding | bits/value |\n|---|--:|\n| Latewood | {:.1} |\n| XOR | {:.1} |\n",
        bits("value_bytes / samples"),
        bits("xor_bytes / samples"),
    );
    for (coding, bits) in REFERENCE {
        table += &format!("| {coding} | {bits} |\n");
    }
    table
}
