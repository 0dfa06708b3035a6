//! Names for addresses of a process: of mapped files by debug information ([`symbolizer`], [`source`]), of code that it made while it ran
//! by what it says of that itself ([`made`]), of functions that an interpreter runs by what that knows of them ([`frames`]); where
//! variables of files lie ([`images`]), and where functions begin and end ([`boundaries`]). Files are those that the engine has opened ([`mapped`]), never others of the same name, and read once ([`opened`]). What
//! is counted, and what profiles are made of it, is not known here; whatever a file holds, it costs names only.

#![forbid(unsafe_code)]

pub mod boundaries;
pub mod frames;
pub mod images;
pub mod made;
pub mod mapped;
pub mod opened;
pub mod source;
pub mod symbolizer;
