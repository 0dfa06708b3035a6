// The control flow graph of a function: its blocks with what they cost, and how often each way between them was taken.
//
// A jump says how often it was taken. What goes on to the next block is what a block's last instruction was executed, less its
// jumps; where that is not known, the way has no count. Counts are those of the profile and nothing is guessed.

import { blocksOf, type Edge, type Instruction } from "./loops.ts";

export interface FlowBlock {
    /** Addresses of its first and its last instruction. */
    addr: number;
    end: number;
    instructions: number;
    /** Times that its first instruction was executed; NaN if that is not known. */
    count: number;
    cost: number;
}

export interface FlowWay {
    from: number;
    to: number;
    /** NaN if it is not known. */
    count: number;
    /** Whether it leads to the block behind by going on. */
    next: boolean;
    /** Whether it leads back, or to itself. */
    back: boolean;
}

export function flowOf(instructions: readonly Instruction[], jumps: readonly Edge[], ends: ReadonlySet<number>): { blocks: FlowBlock[]; ways: FlowWay[] } {
    const blocks = blocksOf(instructions, jumps, ends);
    const first = new Map(blocks.map(({ first }, at) => [instructions[first].addr, at]));
    const last = new Map(blocks.map(({ last }, at) => [instructions[last].addr, at]));
    const ways = new Map<string, FlowWay>();
    const gone = new Float64Array(blocks.length);
    for (const { from, to, count } of jumps) {
        const source = last.get(from);
        if (source === undefined) { continue; }
        gone[source] += count;
        const target = first.get(to);
        if (target === undefined) { continue; }
        const key = `${source} ${target}`;
        const known = ways.get(key);
        if (known) { known.count += count; } else { ways.set(key, { from: source, to: target, count, next: false, back: target <= source }); }
    }
    blocks.forEach(({ last, out }, at) => {
        const { addr, count } = instructions[last];
        if (ends.has(addr) || !out.includes(at + 1)) { return; }
        const rest = Math.max(0, count - gone[at]);
        // A conditional jump that always jumped has not gone on.
        if (rest === 0) { return; }
        const known = ways.get(`${at} ${at + 1}`);
        if (known) { known.count += rest; } else { ways.set(`${at} ${at + 1}`, { from: at, to: at + 1, count: rest, next: true, back: false }); }
    });
    return {
        blocks: blocks.map(({ first, last }) => {
            let cost = 0;
            for (let at = first; at <= last; at++) { cost += instructions[at].cost; }
            return { addr: instructions[first].addr, end: instructions[last].addr, instructions: last - first + 1, count: instructions[first].count, cost };
        }),
        ways: [...ways.values()],
    };
}
