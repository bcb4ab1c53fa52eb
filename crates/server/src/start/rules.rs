//! The threads of rule files, and SIGHUP. Tested by `tests/http/rules.rs`.

use super::server::spawn;
use crate::rules::{Manager, THREADS};
use crate::state::Shared;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Reads the rule files again, and tells what came of it.
pub(super) fn reload(rules: &Manager) {
    if !rules.is_on() {
        return;
    }
    match rules.reload() {
        Ok((groups, rules)) => tracing::info!(groups, rules, "SIGHUP: reloaded the rule files"),
        Err(reason) => tracing::error!(reason, "SIGHUP: the rules in force before stay"),
    }
}

/// Starts the threads of rules, where there are rule files.
///
/// # Errors
/// Which thread cannot be started.
pub(super) fn start(
    shared: &Arc<Shared>,
    rules: &Arc<Manager>,
) -> Result<Vec<JoinHandle<()>>, String> {
    let mut handles = Vec::new();
    // Also without rules: somebody must say that nobody reads what rules of before have read.
    let (corrected, own) = (Arc::clone(rules), Arc::clone(shared));
    let run = move |_: &Shared| {
        corrected.run_corrections(&own);
        Ok(())
    };
    handles.push(spawn("corrections".to_owned(), shared, run)?);
    if let Some(node) = shared.node.get() {
        rules.told_by(node);
    }
    if !rules.is_on() {
        return Ok(handles);
    }
    for number in 0..THREADS {
        let (rules, own) = (Arc::clone(rules), Arc::clone(shared));
        let run = move |_: &Shared| {
            rules.run(&own);
            Ok(())
        };
        handles.push(spawn(format!("rules-{number}"), shared, run)?);
    }
    let own = Arc::clone(rules);
    let watch = move |shared: &Shared| {
        own.watch_delays(shared);
        Ok(())
    };
    handles.push(spawn("rule-delays".to_owned(), shared, watch)?);
    for number in 0..rules.notifier.targets().len() {
        let rules = Arc::clone(rules);
        let run = move |_: &Shared| rules.notifier.targets()[number].run();
        handles.push(spawn(format!("notify-{number}"), shared, run)?);
    }
    Ok(handles)
}
