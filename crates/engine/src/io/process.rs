//! What the operating system says of this process' memory.
//!
//! Reads `/proc` and the control group's files, which every Linux has; what
//! cannot be read is `None`. The simulated twin is `sim::SimProcess`.

use super::Process;
use std::fs::read_to_string;

/// The process this code runs in.
#[derive(Debug)]
pub struct RealProcess;

impl Process for RealProcess {
    fn anonymous_bytes(&self) -> Option<u64> {
        let status = read_to_string("/proc/self/status").ok()?;
        kibibytes(&status, "RssAnon:")
    }

    fn memory_bytes(&self) -> Option<u64> {
        let machine = read_to_string("/proc/meminfo").ok();
        let machine = machine.and_then(|text| kibibytes(&text, "MemTotal:"));
        let group = group_limits().min();
        match (machine, group) {
            (Some(machine), Some(group)) => Some(machine.min(group)),
            (machine, group) => machine.or(group),
        }
    }
}

/// The limits of the control group and of those around it, version 2 and 1.
fn group_limits() -> impl Iterator<Item = u64> {
    let own = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut files = vec!["/sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned()];
    for line in own.lines() {
        let Some((_, path)) = line.split_once("::") else {
            continue;
        };
        let mut path = path.trim_end_matches('/');
        loop {
            files.push(format!("/sys/fs/cgroup{path}/memory.max"));
            match path.rsplit_once('/') {
                Some((parent, _)) => path = parent,
                None => break,
            }
        }
    }
    files
        .into_iter()
        .filter_map(|file| read_to_string(file).ok()?.trim().parse().ok())
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_answers() {
        let before = RealProcess.anonymous_bytes().unwrap();
        let block = vec![1_u8; 64 << 20];
        let after = RealProcess.anonymous_bytes().unwrap();
        assert_eq!(std::hint::black_box(&block).len(), 64 << 20);
        assert!(after > before + (32 << 20), "{before} bytes, then {after}");
        assert!(RealProcess.memory_bytes().unwrap() > after);
    }

    #[test]
    fn lines_without_a_number_are_no_answer() {
        assert_eq!(
            kibibytes("RssAnon:\t  12 kB\n", "RssAnon:"),
            Some(12 * 1024)
        );
        assert_eq!(kibibytes("RssAnon: many kB\n", "RssAnon:"), None);
        assert_eq!(kibibytes("RssFile: 1 kB\n", "RssAnon:"), None);
    }
}
