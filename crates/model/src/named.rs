//! Enums whose values have names.
//!
//! Tested through the enums that it declares.

/// Declares an enum with a name for each of its variants: `Variant => "name"`, or with its number
/// `Variant = 1 => "name"`. It is `Copy`, has all variants in `ALL`, in their order, reads a name in any
/// case and shows its name.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$of:meta])* $Variant:ident $(= $number:literal)? => $name:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

            /// Reads a name in any case.
            #[allow(dead_code, reason = "not every enum is read")]
            $vis fn of_name(name: &[u8]) -> Option<Self> {
                let mut all = Self::ALL.into_iter();
                all.find(|one| name.eq_ignore_ascii_case(one.name().as_bytes()))
            }
        }

        impl ::std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
