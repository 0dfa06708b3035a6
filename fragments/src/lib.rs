//! What is translated. [`code_reader`] reads a program's code, [`batch`] finds the blocks that are translated together, by what
//! [`hotness`], [`distances`] and [`orders`] say of where it is likely to go; [`fragment_table`] is the table of what has been
//! translated. Nothing here knows what code a block becomes, and nothing here changes a process.

pub mod batch;
pub mod code_reader;
pub mod distances;
pub mod fragment_table;
pub mod hotness;
pub mod orders;
#[doc(hidden)]
pub mod testing;
