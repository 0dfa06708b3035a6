//! All end-to-end tests as one program, so that it is linked once, and whatever waits leaves the processors to others to the very
//! end. A file here is a module: `cargo test -p grind-tests words::` runs what is in `words.rs`.
//!
//! No test may change what belongs to the whole process (its folder, environment, signals): others run beside it.
#![forbid(unsafe_code)]

mod attach;
mod attach_confined;
mod book;
mod cache_oracle;
mod cacheuse_oracle;
mod callgrind_consumers;
mod callgrind_control;
mod callgrind_followed;
mod callgrind_matrix;
mod callgrind_options;
mod callgrind_oracle;
mod callgrind_simulation;
mod callgrind_windows;
mod callgrind_within;
mod codspeed;
mod collection;
mod commands;
mod contexts;
mod control;
mod cycles;
mod dependencies;
mod distances;
mod documents;
mod dynamic_oracle;
mod dynamic_simulation;
mod frames;
mod inlined;
mod layers;
mod levels;
mod live;
mod made;
mod manners;
mod messages;
mod names;
mod objects;
mod objects_of_calls;
mod processes;
mod random;
mod reproducible;
mod semantics;
mod sharing;
mod sharing_order;
mod static_oracle;
mod stress;
mod surroundings;
mod tlbs;
mod tree;
mod visits;
mod words;
