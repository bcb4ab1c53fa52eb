//! Enums whose values have names.
//!
//! Tested through the enums that it declares.

/// Declares an enum with a name for each of its variants: `Variant => "name"`, or with its number
/// `Variant = 1 => "name"`. It is `Copy`, has all variants in `ALL`, in their order, and shows its
/// name.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$of:meta])* $Variant:ident $(= $number:literal)? => $name:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Enum {
            $($(#[$of])* $Variant $(= $number)?,)*
        }

        impl $Enum {
            /// All of them, in their order.
            $vis const ALL: [Self; [$($name),*].len()] = [$(Self::$Variant),*];

            /// Its name.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)*
                }
            }
        }

        impl ::std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
