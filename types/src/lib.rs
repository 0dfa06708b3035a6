//! What the engine's parts and its drivers speak of. It depends on nothing of grind's, does nothing by itself, and must stay
//! that way: everything else depends on it.

pub mod addr;
mod code;
mod error;
#[doc(hidden)]
pub mod fault;
pub mod frames;
pub mod hash;
mod id;
pub mod mapped_file;
pub mod own_memory;
pub mod subject;

pub use code::{InstructionCount, Module, Query, StaticEvents};
pub use error::EngineError;
pub use id::{Pid, Tid};
pub use mapped_file::MappedFile;
