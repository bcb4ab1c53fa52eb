//! Prefetching memory.

/// Asks the processor to load the cache line at `place`, without waiting for
/// it. A hint only: the program reads nothing, so `place` may point anywhere,
/// also past the end of its allocation. A no-op on targets without such an
/// instruction.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction, and it faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
