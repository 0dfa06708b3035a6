//! Machine code of functions, disassembled, as columns and lines of text.
//!
//! Rows say which addresses were executed. Code is taken from the object file around them: the symbol that holds them, or
//! what lies between the first and the last one. If an executed address is not where an instruction begins, the file is
//! another one than the one that ran, and its code is not shown.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use cg_format::callgrind::{Names, ObjectId};

use crate::elf::Elf;
use crate::listing::{Listing, Object};
use crate::load::Side;
use crate::pack::Pack;
use crate::stretches::{stretches, wanted};

/// What became of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its code is in the report.
    Here,
    /// It was not found, or is no object file.
    Missing,
    /// It is not the one that ran.
    Changed,
}

impl Found {
    /// How the page calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Here => "ok",
            Self::Missing => "missing",
            Self::Changed => "changed",
        }
    }
}

/// Addresses that were executed of functions whose code is shown: all that is needed of rows.
pub(crate) struct Executed {
    addresses: Vec<u64>,
    /// Where those of each function begin, and where the last ones end.
    from: Vec<usize>,
}

impl Executed {
    /// Those of a side; of `all` functions, or of those that cost most by an event.
    pub(crate) fn of(names: &Names, side: &Side, event: usize, all: bool) -> Self {
        let mut executed = Self { addresses: Vec::new(), from: vec![0] };
        let detail = &side.detail;
        if !detail.addresses {
            return executed;
        }
        let mut costs = vec![0_i64; names.functions().len()];
        for row in &detail.rows {
            let cost = &mut costs[row.function.index()];
            *cost = cost.saturating_add(detail.row_cost(row, event));
        }
        let wanted = wanted(&costs, all);
        let mut rest = &detail.rows[..];
        for function in names.functions() {
            // Rows are in the order of functions and addresses.
            let (own, others) = rest.split_at(rest.iter().take_while(|row| row.function == function).count());
            rest = others;
            let first = executed.addresses.len();
            for addr in own.iter().filter(|_| wanted[function.index()]).map(|row| row.at().place.addr) {
                if addr != 0 && executed.addresses[first..].last() != Some(&addr) {
                    executed.addresses.push(addr);
                }
            }
            executed.from.push(executed.addresses.len());
        }
        executed.addresses.shrink_to_fit();
        executed
    }
}

/// Packs the code of functions; gives what became of their object files.
pub(crate) fn pack(
    pack: &mut Pack,
    names: &Names,
    executed: &Executed,
    root: Option<&Path>,
) -> io::Result<Vec<(ObjectId, Found)>> {
    if executed.from.len() == 1 {
        return Ok(Vec::new());
    }
    let mut objects: HashMap<ObjectId, Option<Object>> = HashMap::new();
    let mut found: HashMap<ObjectId, Found> = HashMap::new();
    let mut listing = Listing::new(pack);
    for (function, range) in names.functions().zip(executed.from.windows(2)) {
        let executed = &executed.addresses[range[0]..range[1]];
        if !executed.is_empty() {
            let object = names.get(function).object;
            let file =
                objects.entry(object).or_insert_with(|| Elf::open(names.object_name(object), root).map(Object::new));
            let added = file.as_mut().map(|file| {
                let stretches = stretches(&file.elf, executed);
                listing.add(file, &stretches, executed)
            });
            let state = match added {
                Some(true) => Found::Here,
                Some(false) => Found::Changed,
                None => Found::Missing,
            };
            let known = found.entry(object).or_insert(state);
            if state == Found::Changed {
                *known = state;
            }
        }
        listing.end_function(pack)?;
    }
    // Code, and what is known of it, is as much as what is packed now.
    drop(objects);
    listing.pack(pack)?;
    let mut found: Vec<(ObjectId, Found)> = found.into_iter().collect();
    found.sort_by_key(|(object, _)| *object);
    Ok(found)
}
