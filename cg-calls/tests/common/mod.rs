//! A made-up program for the tests: functions of 256 bytes each, in objects and sections as wanted.

pub(crate) mod walk;

use std::collections::HashMap;

use cg_calls::{CallersTable, Code, Function, FunctionId, ObjectId, Place, Section, Site, SiteId};

/// Function `f` occupies the addresses `f * 256 ..`. Site `s` is at any address, as registered.
#[derive(Clone, Default, Debug)]
pub(crate) struct Program {
    pub about: HashMap<u32, Function>,
    pub sections: HashMap<u32, Section>,
    pub objects: HashMap<u32, u32>,
    sites: Vec<u64>,
    callers: CallersTable,
}

/// The address of a function, or one in it.
pub(crate) fn at(function: u32, offset: u64) -> u64 {
    assert!(offset < 256);
    u64::from(function) * 256 + offset
}

impl Program {
    /// The site at `addr`. Its instruction is 5 bytes long.
    pub(crate) fn id(&mut self, addr: u64) -> SiteId {
        let found = self.sites.iter().position(|a| *a == addr).unwrap_or_else(|| {
            self.sites.push(addr);
            self.sites.len() - 1
        });
        SiteId(found as u32)
    }

    pub(crate) fn addr(&self, id: SiteId) -> u64 {
        self.sites[id.0 as usize]
    }

    pub(crate) fn set(&mut self, function: u32, change: impl FnOnce(&mut Function)) {
        change(self.about.entry(function).or_insert(Function::PLAIN));
    }
}

impl Code for Program {
    fn place(&mut self, addr: u64) -> Place {
        let function = (addr / 256) as u32;
        Place {
            function: FunctionId(function),
            object: ObjectId(self.objects.get(&function).copied().unwrap_or(0)),
            section: self.sections.get(&function).copied().unwrap_or(Section::Text),
            is_entry: addr.is_multiple_of(256),
        }
    }

    fn site(&mut self, id: SiteId) -> Site {
        let addr = self.addr(id);
        Site { addr, next: addr + 5, block: addr & !15, place: self.place(addr) }
    }

    fn site_before(&mut self, next: u64) -> SiteId {
        self.id(next - 5)
    }

    fn start(&mut self, addr: u64) -> u64 {
        addr & !255
    }

    fn function(&mut self, id: FunctionId) -> Function {
        self.about.get(&id.0).copied().unwrap_or(Function::PLAIN)
    }

    fn callers(&mut self) -> &mut CallersTable {
        &mut self.callers
    }
}
