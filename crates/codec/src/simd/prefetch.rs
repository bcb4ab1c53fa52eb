//! Asking for memory before it is needed.

/// Asks the processor to bring the cache line at `place` near, without waiting
/// for it. Only a hint: nothing is read that a program could see, so `place` may
/// point anywhere, also behind the end of what it belongs to. Where the compiler
/// offers no such instruction it does nothing.
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
