//! Estimated cycles: what an instruction costs by the scheduling model of a processor, and what bounds a block of instructions.
//!
//! A static model: it knows which instructions there are, not what happens when they run. Nothing in it knows caches, mispredicted
//! branches, dependences between instructions, or how the front end decodes. Latency and reciprocal throughput are those of LLVM's
//! models, which are estimates of people who measured; the tables in `data/` are facts taken from `llvm-mca` by `cargo xtask cycles`, and
//! say of which version.
//!
//! Everything is in hundredths of a cycle. Invariants: what has no entry costs nothing and is counted as unknown; the shares of a
//! block's instructions add up to the block's bound.
#![forbid(unsafe_code)]

mod bound;
pub mod forms;
mod table;

pub use bound::{Bound, Unknown};
pub use forms::Form;
pub use table::{BadTable, Entry, Table, Use, write};

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// What options call it.
    pub name: &'static str,
    /// What LLVM calls it.
    pub cpu: &'static str,
    text: &'static str,
}

/// All processors that there are tables of.
pub const MODELS: &[Model] = &[
    Model { name: "skylake", cpu: "skylake-avx512", text: include_str!("../data/skylake.txt") },
    Model { name: "icelake", cpu: "icelake-server", text: include_str!("../data/icelake.txt") },
    Model { name: "zen3", cpu: "znver3", text: include_str!("../data/zen3.txt") },
    Model { name: "zen4", cpu: "znver4", text: include_str!("../data/zen4.txt") },
];

impl Model {
    /// The processor that options call so.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Model> {
        MODELS.iter().copied().find(|model| model.name == name)
    }

    /// Its table.
    ///
    /// # Errors
    /// The table makes no sense: whoever made it has made a mistake.
    pub fn table(&self) -> Result<Table, BadTable> {
        Table::parse(self.text)
    }

    /// The table as it was made.
    #[must_use]
    pub fn text(&self) -> &'static str {
        self.text
    }
}
