//! The two decimal codings (`reference`, [`delta`]) and what they share.
//!
//! Most measurements are decimals that were parsed into f64: `m / 10^d` with a
//! true division restores the exact bits, which is checked for every value.
//! One `d` serves the whole frame. The few values that do not fit (NaN
//! markers, -0.0, outliers) are exceptions, stored raw beside the mantissas.
//! The idea of one exponent per block is that of ALP (Afroozeh, Kuffo, Boncz,
//! SIGMOD 2023); a division in place of its multiplication halves the
//! exceptions on real data.
//!
//! Mantissas stay below 2^51, so that they are exact in f64 and rounding is an
//! addition; the loops are kernels (`simd`). The head is described in `head`.

pub(crate) mod delta;
pub(crate) mod extent;
mod head;
mod offsets;
pub(crate) mod reference;
#[cfg(test)]
mod twin;

pub(crate) use head::Head;
pub(crate) use offsets::{Offsets, guess_exponent};
