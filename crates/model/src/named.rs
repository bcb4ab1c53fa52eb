//! Enums whose variants have names in protocols, files or figures: variants, their list and their
//! names are written once.
//!
//! Tested by the enums that use it.

/// Defines an enum whose variants have names, with `ALL` and `name`.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $type:ident { $($(#[$about:meta])* $variant:ident = $name:literal,)+ }
    ) => {
        $(#[$meta])*
        #[repr(u8)]
        $vis enum $type { $($(#[$about])* $variant,)+ }

        impl $type {
            /// All of them, in the order of their numbers.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
