//! The codings of values, by their numbers in the format.

use crate::codings::codings;

codings! {
    "unknown value coding";
    /// How the values of a frame are written. The numbers are part of the format.
    pub enum ValueCoding {
        /// Eight bytes each.
        Raw = 0,
        /// One value, repeated.
        Constant = 1,
        /// Decimal mantissas, offsets from the smallest.
        DecimalFor = 2,
        /// Decimal mantissas, deltas.
        DecimalDelta = 3,
        /// Decimal mantissas and, separately, the distance of the value in units in the last place.
        Ulp = 4,
        /// Few distinct values.
        Dictionary = 5,
        /// XOR with the value before, as in the Gorilla paper. The reference.
        Xor = 6,
        /// The bits as an ordered integer, less common trailing zeros.
        Ordered = 7,
        /// f32 values printed as short as possible.
        Narrow = 8,
    }
}

/// Flags of a coding, in the high bits of the byte that holds its number.
pub(crate) mod flag {
    /// Decimals: mantissas were divided by a common divisor.
    pub(crate) const DIVISOR: u8 = 0x10;
    /// Decimals: some values are stored raw; the general statistics are present.
    pub(crate) const EXCEPTIONS: u8 = 0x20;
    /// The general statistics carry a NaN count.
    pub(crate) const HAS_NAN: u8 = 0x40;
    /// Decimal deltas: zigzag instead of offsets from the smallest delta.
    pub(crate) const ZIGZAG: u8 = 0x80;
}
