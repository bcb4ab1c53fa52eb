//! What the operating system says about this process.
//!
//! Reads `/proc`, which is there on every Linux; what cannot be read is 0.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads since the start, in seconds.
pub(crate) struct Cpu {
    /// In this program.
    pub(crate) user_s: f64,
    /// In the kernel on its behalf.
    pub(crate) system_s: f64,
}

/// Memory that is in RAM.
pub(crate) struct Resident {
    /// At this moment.
    pub(crate) now_bytes: u64,
    /// At most so far.
    pub(crate) peak_bytes: u64,
}

/// The process clock is exact to the nanosecond but knows only the sum; the
/// kernel's own user and system times are that sum divided in the ratio of
/// clock ticks, and so are these.
pub(crate) fn cpu() -> Cpu {
    let total = clock_gettime(ClockId::ProcessCPUTime);
    let total_s = total.tv_sec as f64 + total.tv_nsec as f64 / 1e9;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in brackets and may hold blanks.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut ticks = fields
        .split_ascii_whitespace()
        .skip(11)
        .map(|field| field.parse::<u64>().unwrap_or(0));
    let (user, system) = (ticks.next().unwrap_or(0), ticks.next().unwrap_or(0));
    let share = if user + system == 0 {
        1.0
    } else {
        user as f64 / (user + system) as f64
    };
    Cpu {
        user_s: total_s * share,
        system_s: total_s * (1.0 - share),
    }
}

/// Memory of this process in RAM.
pub(crate) fn resident() -> Resident {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Resident {
        now_bytes: kibibytes(&status, "VmRSS:") * 1024,
        peak_bytes: kibibytes(&status, "VmHWM:") * 1024,
    }
}

pub(crate) fn machine_memory_bytes() -> u64 {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kibibytes(&memory, "MemTotal:") * 1024
}

/// The operating system, as uname has it.
pub(crate) fn system_name() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        name.machine().to_string_lossy()
    )
}

fn kibibytes(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_answers() {
        let spin: u64 = (0..2_000_000_u64).map(std::hint::black_box).sum();
        assert!(std::hint::black_box(spin) > 0);
        let cpu = cpu();
        assert!(cpu.user_s + cpu.system_s > 0.0);
        assert!(resident().peak_bytes >= resident().now_bytes / 2);
        assert!(resident().now_bytes > 0 && machine_memory_bytes() > 0);
    }
}
