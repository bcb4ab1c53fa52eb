//! One body, compiled for the vectors of several processors.
//!
//! A [`Kernel`] is a plain loop over slices that the compiler vectorises. [`run`]
//! calls the copy of it that was compiled for the widest vectors this processor
//! has; the portable copy is what any processor runs. All copies compute the
//! same bits: the only difference they may make, [`Kernel::run`]'s `FMA`, is for
//! formulas proven equal. The loops must be written so that the compiler needs
//! no reordering of floats: element by element, or sums of integers.
//!
//! The crate's only `unsafe` code. Tests run every coding at every level
//! (`for_each_level`) and compare bytes and samples.

#![allow(unsafe_code)]

mod prefetch;

pub use prefetch::prefetch;

/// A loop worth compiling several times.
pub(crate) trait Kernel {
    /// Result of the loop.
    type Output;

    /// The loop. Implementations are `#[inline(always)]`, as only inlined code
    /// is compiled for the vectors of its caller. With `FMA`, `f64::mul_add` is
    /// one instruction; without, it is a function call to avoid.
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Runs the copy of `kernel` that suits this processor.
#[inline]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match x86::level() {
        // SAFETY: `level` found the features that `wide_512` is compiled for.
        Level::Wide512 => return unsafe { x86::wide_512(kernel) },
        // SAFETY: `level` found the features that `wide_256` is compiled for.
        Level::Wide256 => return unsafe { x86::wide_256(kernel) },
        Level::Portable => {}
    }
    kernel.run::<false>()
}

/// Restricts this process to the loops that every processor can run, so that instruction counts
/// are the same everywhere. The frames are the same bytes.
pub fn portable_only() {
    #[cfg(target_arch = "x86_64")]
    x86::portable_only();
}

/// What a processor can do, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
#[repr(u8)]
pub(crate) enum Level {
    /// Whatever the target guarantees.
    Portable = 1,
    /// AVX2, FMA, BMI1, BMI2 and LZCNT: x86-64 since 2013 to 2015.
    Wide256 = 2,
    /// The same and AVX-512 F, BW, DQ, VL.
    Wide512 = 3,
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Kernel, Level};
    use std::sync::atomic::{AtomicU8, Ordering};

    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
    pub(super) fn wide_256<K: Kernel>(kernel: K) -> K::Output {
        kernel.run::<true>()
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt")]
    pub(super) fn wide_512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run::<true>()
    }

    /// Detected once; the standard library would test every feature again.
    static FOUND: AtomicU8 = AtomicU8::new(0);

    /// Switches this process to the portable copies.
    pub(super) fn portable_only() {
        FOUND.store(Level::Portable as u8, Ordering::Relaxed);
    }

    /// The level in use: the processor's, or the one forced by a test or an instruction count.
    #[inline]
    pub(super) fn level() -> Level {
        #[cfg(test)]
        if let Some(level) = super::tests::FORCED.get() {
            return level;
        }
        match FOUND.load(Ordering::Relaxed) {
            1 => Level::Portable,
            2 => Level::Wide256,
            3 => Level::Wide512,
            _ => {
                let level = detect();
                FOUND.store(level as u8, Ordering::Relaxed);
                level
            }
        }
    }

    #[cold]
    pub(super) fn detect() -> Level {
        let has_256 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt");
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (has_256, has_512) {
            (true, true) => Level::Wide512,
            (true, false) => Level::Wide256,
            (false, _) => Level::Portable,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        pub(super) static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
    }

    /// Calls `test` once for every level of this processor, portable first.
    pub(crate) fn for_each_level<T>(mut test: impl FnMut(Level) -> T) -> Vec<T> {
        #[cfg(target_arch = "x86_64")]
        let widest = x86::detect();
        #[cfg(not(target_arch = "x86_64"))]
        let widest = Level::Portable;
        let levels = [Level::Portable, Level::Wide256, Level::Wide512];
        let reached = levels.into_iter().filter(|level| *level <= widest);
        let results = reached
            .map(|level| {
                FORCED.set(Some(level));
                test(level)
            })
            .collect();
        FORCED.set(None);
        results
    }
}
