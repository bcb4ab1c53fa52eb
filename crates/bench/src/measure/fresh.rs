//! Memory that is touched for the first time, and what that costs on this machine: the host of a
//! virtual machine may give it, in several microseconds a page.

use memmap2::MmapMut;

use crate::measure::machine::own_cpu_seconds;

/// Pages that are touched to see what one costs.
const PAGES: usize = 4096;

/// Processor time of a first touch, in nanoseconds; 0 where the system gives no memory.
pub(crate) fn fresh_page_ns() -> f64 {
    let before = own_cpu_seconds();
    if touch(PAGES * rustix::param::page_size()) {
        (own_cpu_seconds() - before) / PAGES as f64 * 1e9
    } else {
        0.0
    }
}

/// Touches about so much memory and gives it back, no more than half of what is free: a host that
/// gives a virtual machine its memory on the first touch has then done so, before a run begins.
pub(crate) fn have_memory_given(bytes: usize) {
    let memory = rustix::system::sysinfo();
    let free_bytes = memory.freeram as u64 * u64::from(memory.mem_unit);
    touch(bytes.min((free_bytes / 2) as usize));
}

/// Whether the system gives so much memory, which is touched and given back.
fn touch(bytes: usize) -> bool {
    let Ok(mut memory) = MmapMut::map_anon(bytes.max(1)) else {
        return false;
    };
    let pages = memory.iter_mut().step_by(rustix::param::page_size());
    pages.for_each(|byte| *byte = 1);
    true
}
