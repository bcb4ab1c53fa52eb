//! Enums whose variants have names that users type: one table for variants, numbers and names.
//!
//! Tested by the enums that are declared with it.

/// Declares an enum with `ALL` (its variants, by number), `name`, `parse` in any case, and
/// `Display`. Variants are `Variant = NUMBER, "name";` with numbers from 0 on.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident {
        $($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$doc])* $variant = $number,)* }

        impl $type {
            /// All of them, in the order of their numbers.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$variant),*];

            /// The name in lower case.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Reads a name in any case.
            pub fn parse(name: &[u8]) -> Option<Self> {
                let mut all = Self::ALL.into_iter();
                all.find(|one| name.eq_ignore_ascii_case(one.name().as_bytes()))
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
