// Causes of a change add up to it, and say what happened.
import assert from "node:assert/strict";
import { test } from "node:test";
import { causesOf } from "../../src/layout/causes.ts";
import { expand, rankPairs, type Flow } from "../../src/layout/expand.ts";

let state = 11;
function random(below: number): number {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
}

type Graph = { self: number[]; arcs: Map<number, [number, number]>[]; incl: number[] };

function flowOf({ self, arcs, incl }: Graph): Flow {
    return { ranked: (f) => rankPairs([...arcs[f]].map(([g, [cost]]) => [g, cost])), own: (f) => self[f], whole: (f) => incl[f], given: (f) => incl[f] };
}

/** A tree-like program: who calls whom how often, and what each costs itself. */
function graph(functions: number): Graph {
    const self = Array.from({ length: functions }, () => random(200));
    const arcs: Map<number, [number, number]>[] = Array.from({ length: functions }, () => new Map());
    const incl = self.slice();
    for (let f = functions - 1; f > 0; f--) {
        const callers = [...new Set([random(f), random(f)])];
        let left = incl[f];
        callers.forEach((caller, at) => {
            const share = at === callers.length - 1 ? left : Math.floor(left / 2);
            left -= share;
            arcs[caller].set(f, [share, 1 + random(20)]);
            incl[caller] += share;
        });
    }
    return { self, arcs, incl };
}

test("causes and what is spread thin add up to the change, and no part is counted twice", () => {
    for (let round = 0; round < 300; round++) {
        const functions = 3 + random(12);
        const [now, before] = [graph(functions), graph(functions)];
        const tree = expand([flowOf(now), flowOf(before)], 0, functions, round % 2 === 0 ? { budget: 100_000, least: 0 } : { budget: 40, least: random(20) });
        const calls = (side: number, from: number, to: number) => [now, before][side].arcs[from].get(to)?.[1] ?? 0;
        const found = causesOf(tree, random(60) + 1, calls, round % 3 === 0 ? () => random(100) / 100 : undefined);
        const sum = found.causes.reduce((all, cause) => all + cause.delta, found.thin);
        assert.ok(Math.abs(sum - (now.incl[0] - before.incl[0])) < 1e-6 * Math.max(1, now.incl[0], before.incl[0]), `round ${round}: ${sum}`);
        // Whole subtrees do not lie in one another; what a function spends itself is a part of no other cause.
        const whole = new Set(found.causes.filter(({ kind }) => ["new", "gone", "moved", "more", "fewer"].includes(kind)).map(({ node }) => node));
        for (const { node } of found.causes) {
            for (let at = tree.parent[node]; at >= 0; at = tree.parent[at]) { assert.ok(!whole.has(at), `round ${round}: ${node} lies in ${at}`); }
        }
    }
});

test("a cause says whether calls are more, dearer, new or gone", () => {
    // main calls four functions; each changed in one way.
    const make = (costs: [number, number][]): Graph => ({ self: [10, ...costs.map(([cost]) => cost)], incl: [10 + costs.reduce((sum, [cost]) => sum + cost, 0), ...costs.map(([cost]) => cost)],
        arcs: [new Map(costs.flatMap(([cost, count], at): [number, [number, number]][] => (count > 0 ? [[at + 1, [cost, count]]] : []))), ...costs.map(() => new Map())] });
    const before = make([[100, 10], [100, 10], [0, 0], [70, 5], [100, 10], [50, 5]]);
    const now = make([[300, 30], [180, 10], [60, 3], [0, 0], [40, 4], [50, 5]]);
    const tree = expand([flowOf(now), flowOf(before)], 0, 7, { budget: 1000, least: 0 });
    const found = causesOf(tree, 5, (side, from, to) => [now, before][side].arcs[from].get(to)?.[1] ?? 0);
    // Equal ones are in the order of the tree.
    assert.deepEqual(found.causes.map(({ kind, path, delta }) => [kind, path[0], delta]), [["more", 1, 200], ["dearer", 2, 80], ["gone", 4, -70], ["fewer", 5, -60], ["new", 3, 60]]);
    assert.equal(found.thin, 0);
});

test("a function that was inlined into its caller is one cause", () => {
    const make = (own: number, callee: number): Graph => ({ self: [10, own, callee], incl: [10 + own + callee, own + callee, callee],
        arcs: [new Map([[1, [own + callee, 1]]]), callee > 0 ? new Map([[2, [callee, 50]]]) : new Map(), new Map()] as Map<number, [number, number]>[] });
    // 300 in a function of its own become 240 of its caller's 340.
    const [before, now] = [make(100, 300), make(340, 0)];
    const tree = expand([flowOf(now), flowOf(before)], 0, 3, { budget: 100, least: 0 });
    const found = causesOf(tree, 5, (side, from, to) => [now, before][side].arcs[from].get(to)?.[1] ?? 0, (into, from) => (into === 1 && from === 2 ? 240 / 340 : 0));
    assert.deepEqual(found.causes.map(({ kind, path, delta }) => [kind, path, Math.round(delta)]), [["moved", [1, 2], -60]]);
    assert.ok(Math.abs(found.thin) < 1e-9);
});
