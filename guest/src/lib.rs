//! Processes and threads that run under the engine, between their stops: their slots ([`slots`]), what is mapped into them
//! ([`image`]), statistics contexts ([`contexts`]), native stacks ([`stacks`]), breakpoints in
//! own code ([`breakpoints`]), texts ([`printf`]), the way from translated code to the program's state
//! ([`recover`]), and from counters to counts ([`counts`]). What a stop means, and what happens then, is not known here.

pub mod breakpoints;
pub mod contexts;
pub mod counting;
pub mod counts;
pub mod image;
pub mod int80;
pub mod printf;
pub mod process;
pub mod recover;
pub mod resume;
pub mod slots;
pub mod stacks;
