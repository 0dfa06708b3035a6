// Natural loops of a function: back edges of its control flow graph, by dominators.
//
// A block begins where a jump leads or behind a jump. A loop is the target of a back edge with all blocks that reach the
// back edge without passing the target; loops with one header are one. Code that is no loop of this kind (two ways in) is
// none.

export interface Instruction {
    addr: number;
    /** Times executed, or NaN if that is not known. */
    count: number;
    cost: number;
    second: number;
    under: number;
}

export interface Edge {
    from: number;
    to: number;
    count: number;
}

export interface Loop {
    /** The first instruction of the header. */
    addr: number;
    depth: number;
    parent: number;
    /** How often it is entered from outside, and its header is executed. */
    entries: number;
    iterations: number;
    cost: number;
    second: number;
    under: number;
    instructions: number;
    /** The last instruction that belongs to it. */
    last: number;
}

interface Block {
    first: number;
    last: number;
    out: number[];
    into: number[];
}

/** Blocks of instructions, which ascend by address. `jumps` lead from an address to an address; `ends` are instructions behind
 * which it does not go on; `splits` are those that end a block otherwise. */
export function blocksOf(instructions: readonly Instruction[], jumps: readonly Edge[], ends: ReadonlySet<number>): Block[] {
    const place = new Map(instructions.map(({ addr }, at) => [addr, at]));
    const leaders = new Set<number>([0]);
    for (const { from, to } of jumps) {
        const [source, target] = [place.get(from), place.get(to)];
        if (target !== undefined) { leaders.add(target); }
        if (source !== undefined) { leaders.add(source + 1); }
    }
    instructions.forEach(({ addr }, at) => { if (ends.has(addr)) { leaders.add(at + 1); } });
    const starts = [...leaders].filter((at) => at < instructions.length).sort((a, b) => a - b);
    const blocks: Block[] = starts.map((first, at) => ({ first, last: (starts[at + 1] ?? instructions.length) - 1, out: [], into: [] }));
    const blockOf = new Map(blocks.map(({ first }, at) => [first, at]));
    const link = (from: number, to: number) => {
        if (!blocks[from].out.includes(to)) {
            blocks[from].out.push(to);
            blocks[to].into.push(from);
        }
    };
    const byLast = new Map(blocks.map(({ last }, at) => [last, at]));
    for (const { from, to } of jumps) {
        const source = byLast.get(place.get(from) ?? -1);
        const target = blockOf.get(place.get(to) ?? -1);
        if (source !== undefined && target !== undefined) { link(source, target); }
    }
    blocks.forEach(({ last }, at) => { if (at + 1 < blocks.length && !ends.has(instructions[last].addr)) { link(at, at + 1); } });
    return blocks;
}

/** The block that dominates each block most closely; -1 for entries and what is not reached. */
export function dominators(blocks: readonly Block[]): Int32Array {
    const order: number[] = [];
    const seen = new Uint8Array(blocks.length);
    // Without recursion: code has long chains of blocks.
    for (let start = 0; start < blocks.length; start++) {
        if (seen[start] || (start > 0 && blocks[start].into.length > 0)) { continue; }
        const path: [number, number][] = [[start, 0]];
        seen[start] = 1;
        while (path.length > 0) {
            const top = path[path.length - 1];
            const next = blocks[top[0]].out[top[1]++];
            if (next === undefined) {
                order.push(top[0]);
                path.pop();
            } else if (!seen[next]) {
                seen[next] = 1;
                path.push([next, 0]);
            }
        }
    }
    order.reverse();
    const rank = new Int32Array(blocks.length).fill(-1);
    order.forEach((block, at) => { rank[block] = at; });
    // A root above all entries, so that code with several entries has dominators, too.
    const root = blocks.length;
    const idom = new Int32Array(blocks.length + 1).fill(-2);
    idom[root] = root;
    const up = (block: number) => (block === root ? -1 : rank[block]);
    const meet = (a: number, b: number): number => {
        while (a !== b) {
            while (up(a) > up(b)) { a = idom[a]; }
            while (up(b) > up(a)) { b = idom[b]; }
        }
        return a;
    };
    for (let changed = true; changed;) {
        changed = false;
        for (const block of order) {
            let best = block === 0 || blocks[block].into.length === 0 ? root : -2;
            for (const from of blocks[block].into) {
                if (idom[from] !== -2) { best = best === -2 ? from : meet(best, from); }
            }
            if (best !== idom[block]) {
                idom[block] = best;
                changed = true;
            }
        }
    }
    return idom.slice(0, blocks.length).map((dominator) => (dominator === root || dominator === -2 ? -1 : dominator));
}

export function loopsOf(instructions: readonly Instruction[], jumps: readonly Edge[], ends: ReadonlySet<number>): Loop[] {
    const blocks = blocksOf(instructions, jumps, ends);
    const idom = dominators(blocks);
    const dominates = (a: number, b: number): boolean => {
        for (let at = b; at >= 0; at = idom[at]) { if (at === a) { return true; } }
        return false;
    };
    const bodies = new Map<number, Set<number>>();
    blocks.forEach(({ out }, from) => {
        for (const header of out) {
            if (!dominates(header, from)) { continue; }
            const body = bodies.get(header) ?? new Set([header]);
            const waiting = [from];
            while (waiting.length > 0) {
                const block = waiting.pop() as number;
                if (body.has(block)) { continue; }
                body.add(block);
                waiting.push(...blocks[block].into);
            }
            bodies.set(header, body);
        }
    });
    const headers = [...bodies.keys()].sort((a, b) => (bodies.get(b) as Set<number>).size - (bodies.get(a) as Set<number>).size || a - b);
    const place = new Map(instructions.map(({ addr }, at) => [addr, at]));
    const blockAt = new Int32Array(instructions.length);
    blocks.forEach(({ first, last }, block) => blockAt.fill(block, first, last + 1));
    const loops: Loop[] = [];
    const indexOf = new Map<number, number>();
    for (const header of headers) {
        const body = bodies.get(header) as Set<number>;
        // The smallest loop around it was put there before.
        let parent = -1;
        headers.forEach((other) => {
            const known = indexOf.get(other);
            if (known !== undefined && other !== header && (bodies.get(other) as Set<number>).has(header)) {
                if (parent < 0 || (bodies.get(other) as Set<number>).size < loops[parent].instructions) { parent = known; }
            }
        });
        const first = blocks[header].first;
        const loop: Loop = { addr: instructions[first].addr, depth: parent < 0 ? 0 : loops[parent].depth + 1, parent, entries: 0,
            iterations: instructions[first].count, cost: 0, second: 0, under: 0, instructions: body.size, last: 0 };
        for (const block of body) {
            for (let at = blocks[block].first; at <= blocks[block].last; at++) {
                loop.cost += instructions[at].cost;
                loop.second += instructions[at].second;
                loop.under += instructions[at].under;
                loop.last = Math.max(loop.last, instructions[at].addr);
            }
        }
        // What goes back is not an entry: jumps say how often, and what falls through is what is left of the header's count.
        let back = 0;
        for (const { from, to, count } of jumps) {
            const source = place.get(from);
            if (place.get(to) === first && source !== undefined && body.has(blockAt[source])) { back += count; }
        }
        const above = header > 0 ? header - 1 : -1;
        if (above >= 0 && body.has(above) && blocks[above].out.includes(header)) {
            const end = instructions[blocks[above].last];
            const gone = jumps.filter(({ from }) => from === end.addr).reduce((sum, { count }) => sum + count, 0);
            back += Math.max(0, end.count - gone);
        }
        loop.entries = Math.max(0, loop.iterations - back);
        indexOf.set(header, loops.length);
        loops.push(loop);
    }
    return loops;
}
