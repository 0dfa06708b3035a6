//! The dynamic call graph of a program: who called whom, how often, and at what cost.
//!
//! A driver that watches a program tells [`Calls`], thread by thread and in program order, of calls, returns, jumps that may
//! be calls in disguise, signal handlers, and of running totals of what was spent. [`Calls`] keeps the shadow call stack and
//! answers with a [`Profile`]: functions in their contexts, call arcs with counts and inclusive costs, jumps, and costs by
//! context. It knows nothing of processes, symbols or file formats: code is described to it through [`Code`].
//!
//! # Two ways to use it
//! - **Without contexts** ([`Config::contexts`] off): the driver counts executions elsewhere, and only tells of transfers of
//!   control. Every function has one node, whatever its recursion and callers; self costs do not pass through here.
//! - **With contexts**: a function has a node for each level of recursion and each chain of callers that is asked for, and the
//!   driver also tells of every executed [block](Calls::block) and [extra cost](Calls::cost), which are booked on the
//!   node that is running. What a *skipped* function (a PLT stub) does is booked on its call site instead, in both ways.
//!
//! The two can be mixed: with contexts on, a driver may count some functions elsewhere and tell the blocks of the others only,
//! as long as a function of the first kind has one node all the time. With callers not told apart, those are the functions
//! that cannot recurse, so that the price of contexts is paid where there is recursion.
//!
//! # Order of events and totals
//! An event stands between two instructions: the one that transfers control has been executed and is in the totals, its
//! target has not. `sp` is the stack pointer between them, so after a call it points at the return address, and after a
//! return above it. Totals never decrease; each thread has its own.
//!
//! # What it must never do
//! Invent or lose costs: at any [`Calls::take`], what was collected since the last one is what the totals grew by
//! while collecting, whatever the program did to its stack.

#![forbid(unsafe_code)]

mod arcs;
mod code;
mod contexts;
mod meter;
mod pairs;
mod profile;
mod site_counters;
mod stack;
mod step;
mod table;
mod thread;
mod tree;
mod ways;

pub use code::{CallersId, CallersTable, Code, Function, FunctionId, ObjectId, Place, Section, Site, SiteId};
pub use profile::{Arc, Counter, CounterKey, Jump, Node, NodeIndex, Profile, Skipped};
pub use step::{Step, StepKind};
pub use thread::{
    Active, Again, ArcId, CallContext, Calls, Changes, Config, Here, Interposed, JumpKind, Made, Native, Packed,
    PackedPlaces, Request, RootChange, Settled, Shown, Spot, View,
};
pub use tree::{CallTree, Chain, Each};
