//! The instructions of x86-64, as far as running and profiling programs needs them: what they are ([`decode`]), what each
//! execution accesses ([`events`]), and the processor that programs see ([`cpuid`]). It looks at bytes and registers that it is
//! given, and must never know whose they are, nor what is made of them.

pub mod breakpoints;
pub mod cpuid;
pub mod decode;
pub mod events;
