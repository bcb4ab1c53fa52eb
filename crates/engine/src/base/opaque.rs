//! Types whose insides `Debug` does not show: hooks, and what is shared by many.

/// Implements `Debug` for types by their names alone.
macro_rules! opaque {
    ($($Type:ident)*) => {$(
        impl ::std::fmt::Debug for $Type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($Type)).finish_non_exhaustive()
            }
        }
    )*};
}

pub(crate) use opaque;
