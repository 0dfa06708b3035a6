//! What the model must know about the program's code, and whom it asks.
//!
//! Ids are dense small numbers handed out by the driver; the model makes tables by them. Answers must not change.

use rustc_hash::FxHashMap;

/// A function, by the driver's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// The callers that tell contexts of a function apart, by the driver's numbering of such lists; 0: there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallersId(pub u32);

impl CallersId {
    /// No caller tells contexts apart.
    pub const NONE: CallersId = CallersId(0);
}

/// Numbers of such lists. A number that has been given stays what it is.
#[derive(Clone, Debug, Default)]
pub struct CallersTable {
    numbers: FxHashMap<Box<[FunctionId]>, CallersId>,
    /// By number less one.
    lists: Vec<Box<[FunctionId]>>,
}

impl CallersTable {
    /// The number of a list, the last caller first.
    pub fn number(&mut self, list: &[FunctionId]) -> CallersId {
        if list.is_empty() {
            return CallersId::NONE;
        }
        if let Some(known) = self.numbers.get(list) {
            return *known;
        }
        self.lists.push(list.into());
        let number = CallersId(self.lists.len().try_into().expect("fewer than 2^32 lists of callers"));
        self.numbers.insert(list.into(), number);
        number
    }

    /// The list that has this number.
    #[must_use]
    pub fn list(&self, id: CallersId) -> &[FunctionId] {
        id.0.checked_sub(1).map_or(&[], |at| &self.lists[at as usize])
    }
}

/// An object file (executable, library, anonymous memory), by the driver's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// An instruction that transfers control, or the last one before another function begins, by the driver's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// The kind of section that an address lies in. A jump from one kind to another is a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Ordinary code.
    Text,
    /// Stubs that lead to functions of other objects.
    Plt,
    /// Data, the global offset table, anonymous memory: the number tells kinds apart.
    Other(u8),
}

/// What there is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function that contains the address. Every address has one, if need be one made up for it.
    pub function: FunctionId,
    /// The object file.
    pub object: ObjectId,
    /// The kind of section.
    pub section: Section,
    /// Whether a symbol begins exactly here.
    pub is_entry: bool,
}

/// An instruction that transfers control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its address.
    pub addr: u64,
    /// The address after it: where a call returns to.
    pub next: u64,
    /// The address of the first instruction of the block that it ends; its own, if the driver does not know better. The
    /// target of a made-up call to code that was entered before anybody watched.
    pub block: u64,
    /// What there is at its address (whether a symbol begins there does not matter).
    pub place: Place,
}

/// How a function is to be treated: what the user asked for, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its costs are its caller's, and what it calls is called by its caller (PLT stubs, `--fn-skip`).
    pub skip: bool,
    /// A jump out of it is a call by its caller (`_dl_runtime_resolve`, `--pop-on-jump`).
    pub pop_on_jump: bool,
    /// Entering and leaving it switches collection on or off.
    pub toggle_collect: bool,
    /// A dump is asked for before it runs.
    pub dump_before: bool,
    /// A dump is asked for after it ran.
    pub dump_after: bool,
    /// All costs are set to zero before it runs.
    pub zero_before: bool,
    /// How many callers tell its contexts apart.
    pub separate_callers: u16,
    /// How many levels of recursion are told apart; 0 and 1 both mean none.
    pub separate_recs: u16,
    /// Functions of the same group other than 0 share the context of the one that was called first.
    pub group: u32,
    /// Whatever runs below it, up to the next such function, is told apart by it: it is one of a program that is interpreted, and all of
    /// those call one another by way of the same functions of their interpreter.
    pub owns: bool,
}

impl Function {
    /// A function that nothing special was asked for.
    pub const PLAIN: Function = Function {
        skip: false,
        pop_on_jump: false,
        toggle_collect: false,
        dump_before: false,
        dump_after: false,
        zero_before: false,
        separate_callers: 0,
        separate_recs: 1,
        group: 0,
        owns: false,
    };

    /// Whether something happens when it is entered or left.
    pub(crate) fn has_hooks(&self) -> bool {
        self.toggle_collect || self.asks()
    }

    /// Whether the driver has to do something then.
    pub(crate) fn asks(&self) -> bool {
        self.dump_before || self.dump_after || self.zero_before
    }
}

/// Describes code to the model. Everything is asked once by each thread and remembered, except
/// [`place`](Code::place), which is asked again when a small cache has forgotten it. Answers may be others once that has been
/// said ([`Calls::code_replaced`](crate::Calls::code_replaced)), but for sites.
pub trait Code {
    /// What there is at `addr`.
    fn place(&mut self, addr: u64) -> Place;
    /// The site with this number.
    fn site(&mut self, id: SiteId) -> Site;
    /// The site of the call that returns to `next`; one made up at `next - 1` if none is known. For calls that happened
    /// before anybody watched.
    fn site_before(&mut self, next: u64) -> SiteId;
    /// The site of the call at `addr` that returns to `next`, even if nobody has watched it yet.
    fn site_of_call(&mut self, _addr: u64, next: u64) -> SiteId {
        self.site_before(next)
    }
    /// Where the function that contains `addr` begins; `addr` itself if that is not known.
    fn start(&mut self, addr: u64) -> u64 {
        addr
    }
    /// How a function is to be treated.
    fn function(&mut self, id: FunctionId) -> Function;
    /// The numbers of callers that tell contexts apart, which mean the same to all threads.
    fn callers(&mut self) -> &mut CallersTable;
}
