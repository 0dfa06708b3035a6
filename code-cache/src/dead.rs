//! Ways to dead blocks that nobody can take back: what was emitted together with a block runs on into it, or branches to it
//! without a field that could be changed. While no other thread can be in between, the dead block is made a jump; else whoever
//! comes this way stops at its first byte, every time, which makes a loop a thousand times slower. So where that happens
//! again and again, what was emitted together dies together, and is translated anew as it is now; and if even that has not helped
//! for long, all is thrown away. Invariant: nothing here changes what is executed, or counted.

use grind_fragments::fragment_table::FragmentId;

use grind_types::hash::Map;

use super::CodeCache;

/// So many stops at one block are worth translating anew what was emitted with it.
const TOGETHER: u32 = 8;

/// Stops at blocks where that has not helped, beside one for every eighth block: throwing everything away costs about as much.
const LONG: u64 = 2_000;

/// Stops at dead blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadStops {
    blocks: Map<FragmentId, u32>,
    /// Those that nothing has helped against.
    idle: u64,
}

impl CodeCache {
    /// A thread has stopped at this dead block, and others may do so. Whether everything should be thrown away.
    pub fn got_to_dead(&mut self, dead: FragmentId) -> bool {
        let stops = self.dead_stops.blocks.entry(dead).or_default();
        *stops += 1;
        let stops = *stops;
        if stops == TOGETHER {
            self.kill_batch(dead);
        }
        self.dead_stops.idle += u64::from(stops > 2 * TOGETHER);
        let long = self.dead_stops.idle >= LONG + self.trans.blocks.len() as u64 / 8;
        if long {
            self.dead_stops = DeadStops::default();
        }
        long
    }

    /// Kills what was emitted together with a block.
    fn kill_batch(&mut self, of: FragmentId) {
        for id in self.trans.batch_of(of) {
            let b = *self.trans.block(id);
            if !b.dead {
                self.kill_range(b.pc, b.pc.plus(u64::from(b.guest_len).max(1)));
            }
        }
    }
}
