//! Enumerations that are one table each: variant, number, name.

/// Declares an enumeration whose variants have names in tables and reports.
macro_rules! named {
    ($(#[$meta:meta])* $visibility:vis enum $enum:ident {
        $($(#[$variant_meta:meta])* $variant:ident $(= $number:literal)? $name:literal,)+
    }) => {
        $(#[$meta])*
        $visibility enum $enum {
            $($(#[$variant_meta])* $variant $(= $number)?,)+
        }

        impl $enum {
            /// All variants, in the order of their declaration.
            #[allow(dead_code, reason = "only tests go through the kinds of records")]
            pub const ALL: &'static [$enum] = &[$($enum::$variant),+];

            /// Name in tables and reports.
            #[allow(dead_code, reason = "kinds of records are in no table")]
            pub fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)+
                }
            }
        }
    };
}

/// As `named`; each variant also has a number in records (`src/bpf/wire.h`).
macro_rules! numbered {
    ($(#[$meta:meta])* $visibility:vis enum $enum:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $number:literal $name:literal,)+
    }) => {
        $crate::named::named! {
            $(#[$meta])*
            #[repr(u8)]
            $visibility enum $enum {
                $($(#[$variant_meta])* $variant = $number $name,)+
            }
        }

        impl $enum {
            /// The variant with this number in records; None if none has it.
            pub fn from_wire(number: u8) -> Option<$enum> {
                match number {
                    $($number => Some($enum::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {named, numbered};
