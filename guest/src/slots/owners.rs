//! Where the threads of a process find which of them has which line ([`layout::OWNED_LINES`]): in a slot that is no thread's. What is there is emitted
//! code's, and never read here. Invariant: threads are told of it before they are asked to tell of bytes.

use grind_layout::{self as layout, SlotWord};
use grind_types::Tid;

use super::{SlotId, SlotPool};

impl SlotPool {
    /// The thread `tid` of a slot finds in slot `owners` which thread has which line.
    pub fn share_owners(&self, id: SlotId, tid: Tid, owners: SlotId) {
        for (word, value) in [
            (SlotWord::OwnerWord, layout::owner_word(id.0, tid.0.cast_unsigned())),
            (SlotWord::OwnerBit, layout::owner_bit(id.0)),
            (SlotWord::SlotsAt, self.base),
            (SlotWord::LineOwners, self.gs(owners)),
        ] {
            self.set_slot_word(id, word, value);
        }
        self.set_words(owners, layout::SLOTS_USED, &[self.next.into()]);
    }
}
