// Lanes of jumps, loops, tables of lines, and which functions a graph shows.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachineLine } from "../../src/data/machine.ts";
import { expand, rankPairs, type Flow } from "../../src/layout/expand.ts";
import { lanes } from "../../src/layout/lanes.ts";
import { flowOf } from "../../src/layout/flow.ts";
import { blocksOf, dominators, loopsOf, type Edge, type Instruction } from "../../src/layout/loops.ts";
import { dotsOf } from "../../src/views/scatter.tsx";
import { inlinedOf } from "../../src/layout/inlined.ts";
import { neighbourhood, type Paths } from "../../src/layout/neighbourhood.ts";

let state = 3;
function random(below: number): number {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
}

test("jumps in one lane do not touch, and the shortest are innermost", () => {
    for (let round = 0; round < 200; round++) {
        const jumps = Array.from({ length: random(40) }, () => ({ from: random(60), to: random(60) }));
        const lane = lanes(jumps, 12);
        const ends = jumps.map(({ from, to }) => [Math.min(from, to), Math.max(from, to)]);
        jumps.forEach((_, a) => jumps.forEach((_, b) => {
            if (a >= b || lane[a] < 0 || lane[a] !== lane[b]) { return; }
            assert.ok(ends[a][1] < ends[b][0] || ends[b][1] < ends[a][0], `round ${round}: ${ends[a]} and ${ends[b]}`);
        }));
        // What has no lane would have fitted in none.
        jumps.forEach((_, a) => {
            if (lane[a] >= 0) { return; }
            for (let k = 0; k < 12; k++) {
                assert.ok(jumps.some((_, b) => lane[b] === k && !(ends[a][1] < ends[b][0] || ends[b][1] < ends[a][0])), "there was room");
            }
        });
    }
    assert.deepEqual([...lanes([{ from: 0, to: 9 }, { from: 3, to: 4 }, { from: 5, to: 2 }], 12)], [2, 0, 1]);
});

/** Instructions at 0, 1, 2 …, each executed `count` times. */
const code = (counts: number[]): Instruction[] => counts.map((count, addr) => ({ addr, count, cost: count, second: 0, under: 0 }));

test("dominators are those that every path passes", () => {
    for (let round = 0; round < 300; round++) {
        const size = 3 + random(12);
        const jumps: Edge[] = Array.from({ length: random(8) }, () => ({ from: random(size), to: random(size), count: 1 }));
        const ends = new Set(jumps.filter(() => random(3) === 0).map(({ from }) => from));
        const blocks = blocksOf(code(new Array(size).fill(1)), jumps, ends);
        const idom = dominators(blocks);
        const entries = blocks.map((_, at) => at).filter((at) => at === 0 || blocks[at].into.length === 0);
        /** What is reached without passing a block. */
        const reached = (without: number) => {
            const seen = new Set<number>();
            const waiting = entries.filter((at) => at !== without);
            while (waiting.length > 0) {
                const at = waiting.pop() as number;
                if (seen.has(at)) { continue; }
                seen.add(at);
                waiting.push(...blocks[at].out.filter((next) => next !== without));
            }
            return seen;
        };
        const all = reached(-1);
        for (const a of all) {
            const without = reached(a);
            for (const b of all) {
                let found = false;
                for (let at = b; at >= 0; at = idom[at]) { found ||= at === a; }
                assert.equal(found, a === b || !without.has(b), `round ${round}: ${a} over ${b}`);
            }
        }
    }
});

test("nested loops have their entries and rounds", () => {
    // 0; outer: 1; inner: 2 3(jump to 2); 4(jump to 1); 5
    const loops = loopsOf(code([1, 10, 200, 200, 10, 1]), [{ from: 3, to: 2, count: 190 }, { from: 4, to: 1, count: 9 }], new Set());
    assert.deepEqual(loops.map(({ addr, depth, parent, entries, iterations, cost, last }) => ({ addr, depth, parent, entries, iterations, cost, last })), [
        { addr: 1, depth: 0, parent: -1, entries: 1, iterations: 10, cost: 420, last: 4 }, { addr: 2, depth: 1, parent: 0, entries: 10, iterations: 200, cost: 400, last: 3 }]);
});

test("code with two ways into a cycle has no natural loop there", () => {
    // 0 jumps to 2 or goes on to 1; 1 -> 2 -> 1: neither dominates the other.
    const loops = loopsOf(code([1, 5, 5, 1]), [{ from: 0, to: 2, count: 1 }, { from: 2, to: 1, count: 4 }], new Set());
    assert.deepEqual(loops, []);
});

test("a long function needs no stack of ours", () => {
    const size = 100_000;
    const jumps = Array.from({ length: size - 1 }, (_, at) => ({ from: at, to: at + 1, count: 1 }));
    assert.deepEqual(loopsOf(code(new Array(size).fill(1)), jumps, new Set()), []);
});

test("inlined functions are a partition of their function", () => {
    const frames = Array.from({ length: 6 }, (_, at) => ({ name: `f${at % 4}`, site: `a.c:${at}` }));
    for (let round = 0; round < 100; round++) {
        const lines = Array.from({ length: random(30) }, () => ({ cost: random(100), inline: Array.from({ length: random(5) }, () => frames[random(6)]) }) as unknown as MachineLine);
        const tree = inlinedOf(lines, "f");
        const all = lines.reduce((sum, line) => sum + line.cost, 0);
        assert.equal(tree.reduce((sum, node) => sum + node.own, 0), all);
        tree.forEach((node) => assert.equal(node.all, node.own + node.children.reduce((sum, child) => sum + tree[child].all, 0)));
    }
});

test("a graph shows what costs enough, and the sum of what it leaves out", () => {
    const arcs: Record<number, [number, number][]> = { 0: [[1, 60], [2, 30], [3, 2], [4, 1]], 1: [[5, 20]], 2: [[5, 10], [0, 5]] };
    const incl = [100, 60, 30, 2, 1, 30];
    const flow: Flow = { ranked: (f) => rankPairs(arcs[f] ?? []), own: (f) => incl[f] - (arcs[f] ?? []).filter(([g]) => g !== 0).reduce((sum, [, cost]) => sum + cost, 0), whole: (f) => incl[f], given: (f) => incl[f] };
    const paths: Paths = (limits) => expand([flow], 0, 6, limits);
    const shown = neighbourhood([flow.whole(0)], paths, undefined, 0, { node: 0.05, arc: 0.01, callers: 2, callees: 40, most: 60 }, (f) => (arcs[f] ?? []).map(([g]) => g));
    assert.deepEqual([...shown.nodes.keys()].sort(), [0, 1, 2, 5]);
    const node = shown.nodes.get(0);
    assert.deepEqual([node?.belowCount, Math.round(node?.below ?? 0)], [2, 3]);
    assert.equal(Math.round(shown.nodes.get(5)?.cost[0] ?? 0), 30);
    assert.deepEqual(shown.arcs.filter((arc) => arc.back).map(({ from, to }) => [from, to]), [[2, 0]]);
    // With room for two functions only, the limit doubles until they fit.
    const few = neighbourhood([flow.whole(0)], paths, undefined, 0, { node: 0.05, arc: 0.01, callers: 2, callees: 40, most: 2 }, () => []);
    assert.ok(few.nodes.size <= 2 && few.limit > 0.05);
});

test("ways between blocks are taken as often as blocks are left", () => {
    for (let round = 0; round < 300; round++) {
        const size = 3 + random(12);
        // A walk through code: at each instruction it goes on, or jumps where that one always jumps to.
        const target = Array.from({ length: size }, () => (random(3) === 0 ? random(size) : -1));
        const always = target.map((to) => to >= 0 && random(4) === 0);
        const counts = new Array<number>(size).fill(0);
        const taken = new Array<number>(size).fill(0);
        let at = 0;
        for (let step = 0; step < 200 && at < size; step++) {
            counts[at] += 1;
            if (target[at] >= 0 && (always[at] || random(2) === 0)) { taken[at] += 1; at = target[at]; } else { at += 1; }
        }
        const last = at;
        const seen = counts.map((_, addr) => addr).filter((addr) => counts[addr] > 0);
        const instructions = seen.map((addr) => ({ addr, count: counts[addr], cost: 1, second: 0, under: 0 }));
        const jumps = seen.filter((addr) => taken[addr] > 0).map((from): Edge => ({ from, to: target[from], count: taken[from] }));
        const ends = new Set(seen.filter((addr) => always[addr] || !seen.includes(addr + 1)));
        const { blocks, ways } = flowOf(instructions, jumps, ends);
        assert.equal(blocks.reduce((sum, { cost }) => sum + cost, 0), seen.length, "every instruction is in one block");
        blocks.forEach(({ end }, block) => {
            const left = ways.filter(({ from }) => from === block).reduce((sum, { count }) => sum + count, 0);
            // The walk may end within code, and jump or go on to code that was never reached.
            assert.ok(left <= counts[end] && left >= counts[end] - (last < size ? 1 : 0) - (end + 1 === size ? counts[end] - taken[end] : 0) - 1, `${left} of ${counts[end]}`);
        });
        blocks.forEach(({ addr, count }, block) => {
            const entered = ways.filter(({ to }) => to === block).reduce((sum, way) => sum + way.count, 0);
            assert.ok(Math.abs(entered + (addr === 0 ? 1 : 0) - count) <= 1, `${entered} and ${count}`);
        });
        assert.ok(ways.every(({ from, to, back, next }) => back === (to <= from) && (!next || to === from + 1)));
    }
});

test("functions stand by what they execute and how often that misses", () => {
    const { dots, left, often, hot } = dotsOf([0, 1000, 100_000, 50, 7], [5, 1, 5000, 0, 7], 200_000, null, 2);
    // What executes nothing or misses nothing has no place; of the others those that execute most have one.
    assert.deepEqual([dots.map(({ f }) => f), left], [[2, 1], 1]);
    assert.ok(dots[0].x > hot && dots[0].y > often, "100,000 of 200,000, and 50 of 1,000 miss");
    assert.ok(dots[1].x < hot && dots[1].y < often, "half a percent, and 1 of 1,000");
    for (const { x, y } of dots) { assert.ok(x >= 0 && x <= 1 && y >= 0 && y <= 1); }
    assert.deepEqual(dotsOf([5], [5], 5, Uint8Array.of(0)).dots, [], "what a search hides");
    assert.deepEqual(dotsOf([], [], 0, null).dots, []);
});
