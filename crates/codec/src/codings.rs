//! What all codings share: their enums, whose numbers are part of the format, and what a search finds.
//!
//! Tested through the enums that it declares.

/// Declares an enum of codings, numbered from 0; a number it has not is refused with the text.
macro_rules! codings {
    ($unknown:literal; $(#[$about:meta])* pub enum $Enum:ident {
        $($(#[$of:meta])* $Variant:ident = $number:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $Enum {
            $($(#[$of])* $Variant = $number,)*
        }

        impl $Enum {
            /// Every coding, in the order of their numbers.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$Variant),*];

            pub(crate) fn from_id(id: u8) -> Result<Self, $crate::Error> {
                let coding = Self::ALL.get(usize::from(id)).copied();
                coding.ok_or($crate::Error::Corrupt($unknown))
            }
        }
    };
}

pub(crate) use codings;

/// Index of the first timestamp at or after the one searched for, and whether it is that one.
pub(crate) type Found = Result<(usize, bool), crate::Error>;
