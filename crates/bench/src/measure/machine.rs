//! Where and on what a measurement ran, so that a report can be judged.

use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::measure::fresh::fresh_page_ns;

/// The machine this program runs on and the sources it was made of; what cannot be found is left
/// empty. `commit` has a mark for local changes, `fresh_page_ns` is the processor time of the first
/// touch of a page of memory.
pub(crate) fn look(command: &str) -> Value {
    let system = rustix::system::uname();
    let memory = rustix::system::sysinfo();
    let bytes = memory.totalram as f64 * f64::from(memory.mem_unit);
    let began = SystemTime::UNIX_EPOCH.elapsed();
    json!({
        "cpu": cpu_model(),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "memory_gib": (bytes / f64::from(1 << 30) * 10.0).round() / 10.0,
        "kernel": version_of(&system.release().to_string_lossy()),
        "commit": commit_of(Path::new(".")),
        "version": env!("CARGO_PKG_VERSION"),
        // Built for tests, which is slower than a release.
        "is_test_build": cfg!(debug_assertions),
        "fresh_page_ns": fresh_page_ns(),
        "began_unix_seconds": began.map_or(0, |since| since.as_secs()),
        "command": command,
    })
}

/// CPU time this process has used so far, in seconds, all threads together.
pub(crate) fn own_cpu_seconds() -> f64 {
    seconds_of(ClockId::ProcessCPUTime)
}

pub(crate) fn thread_cpu_seconds() -> f64 {
    seconds_of(ClockId::ThreadCPUTime)
}

fn seconds_of(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A moment, and the CPU time of this process until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) began: Instant,
    cpu_seconds: f64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock {
            began: Instant::now(),
            cpu_seconds: own_cpu_seconds(),
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        own_cpu_seconds() - self.cpu_seconds
    }
}

/// The numbers a kernel release begins with: behind them stands who built it.
fn version_of(release: &str) -> &str {
    let end = release.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    release[..end.unwrap_or(release.len())].trim_end_matches('.')
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split_once(": "));
    model
        .map_or(std::env::consts::ARCH, |(_, model)| model.trim())
        .to_owned()
}

/// Git for the checkout that holds `folder`, also where a hook of another one runs this.
fn git_in(folder: &Path, words: &str) -> Option<String> {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    command.arg("-C").arg(folder).args(words.split(' '));
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The commit of the checkout around `folder`, with a mark if its files differ. Pages and runs of
/// reports do not count: each report of `all` changes those for the next.
fn commit_of(folder: &Path) -> String {
    let Some(commit) = git_in(folder, "rev-parse --short=12 HEAD") else {
        return String::new();
    };
    // From the top, wherever this runs.
    let changed = "status --porcelain --untracked-files=no -- :/ :(top,exclude)docs/benchmarks";
    match git_in(folder, changed).as_deref() {
        Some("") => commit,
        _ => format!("{commit} with local changes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_named_by_its_version_alone() {
        let releases = ["6.1.0-18-amd64", "5.15.167.4-x", "6.12.0+", "6.8", "none"];
        let versions = ["6.1.0", "5.15.167.4", "6.12.0", "6.8", ""];
        assert_eq!(releases.map(version_of), versions);
        let machine = look("late");
        let kernel = machine["kernel"].as_str().unwrap();
        let only = |letter: char| letter.is_ascii_digit() || letter == '.';
        assert!(kernel.chars().all(only), "{kernel}");
    }

    #[test]
    fn pages_of_reports_are_no_local_changes() {
        let checkout = tempfile::tempdir().unwrap();
        let dir = checkout.path();
        let git = |words: &str| git_in(dir, words).unwrap_or_else(|| panic!("git {words}"));
        let pages = dir.join("docs/benchmarks");
        std::fs::create_dir_all(&pages).unwrap();
        std::fs::write(pages.join("late.md"), "1").unwrap();
        std::fs::write(dir.join("main.rs"), "1").unwrap();
        git("init -q");
        git("add .");
        git("-c user.name=a -c user.email=a@b.c commit -q -m a --no-gpg-sign");
        let clean = commit_of(dir);
        assert_eq!(clean.len(), 12, "{clean}");
        std::fs::write(pages.join("late.md"), "2").unwrap();
        assert_eq!(commit_of(dir), clean);
        assert_eq!(commit_of(&pages), clean);
        std::fs::write(dir.join("main.rs"), "2").unwrap();
        assert_eq!(commit_of(&pages), format!("{clean} with local changes"));
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(commit_of(elsewhere.path()), "");
    }
}
