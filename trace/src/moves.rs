//! Records of lines that go from thread to thread, as emitted code tells of them in the order in which it has happened. Nothing is kept here. Invariant: who
//! has written a line last is told by the kernel's number of that thread, which may have ended by then.

/// In place of a site's number: an access of the thread has got a line from others, or has taken it from them. Operands: its site; an address
/// in the line (two words); what has happened (of [`LINE_READ`] to [`LINE_UNPLACED`]); for the first two who had written the line
/// last, by the number of the thread.
pub const LINE_MOVED: u32 = u32::MAX - 19;

/// Words of a record of [`LINE_MOVED`].
pub const MOVED_WORDS: usize = 6;

/// The thread reads a line that another one has written last: both have it from now on.
pub const LINE_READ: u32 = 0;

/// The thread writes a line that another one has written last, which has lost it.
pub const LINE_WRITTEN: u32 = 1;

/// The thread writes a line that others have read since it was written last, and have lost now.
pub const LINE_UPGRADED: u32 = 2;

/// There is no room to know who has the line.
pub const LINE_UNPLACED: u32 = 3;
