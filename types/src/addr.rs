//! Address kinds. Guest addresses (of the program's own code and data) and cache addresses (of translated code, in the
//! guest's address space too) must never be mixed up: each has its type, and only the modules that translate between them
//! take both.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The address `n` bytes further on (wrapping, as address arithmetic does).
            #[must_use]
            pub const fn plus(self, n: u64) -> Self {
                Self(self.0.wrapping_add(n))
            }

            /// The address `n` bytes before it (wrapping).
            #[must_use]
            pub const fn minus(self, n: u64) -> Self {
                Self(self.0.wrapping_sub(n))
            }

            /// Bytes from `from` to this address (wrapping).
            #[must_use]
            pub const fn since(self, from: Self) -> u64 {
                self.0.wrapping_sub(from.0)
            }

            /// The start of the 4 KiB page that holds this address.
            #[must_use]
            pub const fn page(self) -> Self {
                Self(self.0 & !0xfff)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address! {
    /// An address of the guest program, as the program itself sees it (an AVMA).
    GuestAddr
}
address! {
    /// An address in a code cache: translated code, mapped into the guest beside its own.
    CacheAddr
}
