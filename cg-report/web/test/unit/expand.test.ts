// The laws of estimated paths, on graphs made at random, beside the slow, obvious way to compute them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expand, nodeAt, pathTo, rankPairs, type Flow, type Ranked } from "../../src/layout/expand.ts";

let state = 1;
function random(below: number): number {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
}

/** A graph whose arcs cost what its functions do: arcs of an acyclic one are shares of what runs below. */
function graph(functions: number, cyclic: boolean) {
    const self = Array.from({ length: functions }, () => random(50));
    const arcs = new Map<number, Map<number, number>>();
    for (let f = 0; f < functions; f++) { arcs.set(f, new Map()); }
    const incl = new Array<number>(functions).fill(0);
    if (cyclic) {
        for (let k = 0; k < functions * 2; k++) { arcs.get(random(functions))?.set(random(functions), 1 + random(100)); }
        for (let f = 0; f < functions; f++) { incl[f] = self[f] + [...(arcs.get(f) ?? [])].reduce((sum, [, cost]) => sum + cost, 0); }
    } else {
        // From the bottom: every function's inclusive cost is split among its callers.
        const callers = new Map<number, number[]>();
        for (let f = 1; f < functions; f++) { callers.set(f, [...new Set(Array.from({ length: 1 + random(3) }, () => random(f)))]); }
        for (let f = functions - 1; f > 0; f--) {
            incl[f] += self[f];
            const list = callers.get(f) as number[];
            let left = incl[f];
            list.forEach((caller, at) => {
                const share = at === list.length - 1 ? left : Math.floor(left / 2);
                left -= share;
                arcs.get(caller)?.set(f, share);
                incl[caller] += share;
            });
        }
        incl[0] += self[0];
    }
    const flow: Flow = {
        ranked: (f) => rankPairs([...(arcs.get(f) ?? [])]),
        own: (f) => self[f],
        whole: (f) => incl[f],
        given: (f) => incl[f],
    };
    return { self, arcs, incl, flow };
}

const close = (a: number, b: number) => Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(a), Math.abs(b));
const all = { budget: 200_000, least: 0 };

test("what a path keeps and hands on is what it got", () => {
    for (let round = 0; round < 200; round++) {
        const functions = 2 + random(12);
        const { flow } = graph(functions, round % 2 === 0);
        const limits = round % 3 === 0 ? { budget: 1 + random(30), least: random(20) } : { ...all, depth: 8 };
        const tree = expand([flow], 0, functions, limits);
        for (let node = 0; node < tree.count; node++) {
            if (!tree.expanded[node]) { continue; }
            const handed = tree.children[node].reduce((sum, child) => sum + tree.cost[0][child], 0);
            assert.ok(close(handed + tree.own[0][node] + tree.rest[0][node], tree.cost[0][node]), `round ${round}, node ${node}`);
        }
    }
});

test("without cycles all places of a function add up to its inclusive cost", () => {
    for (let round = 0; round < 100; round++) {
        const functions = 2 + random(14);
        const { flow, incl } = graph(functions, false);
        const tree = expand([flow], 0, functions, all);
        const sums = new Array<number>(functions).fill(0);
        for (let node = 0; node < tree.count; node++) { sums[tree.fn[node]] += tree.cost[0][node]; }
        sums.forEach((sum, f) => assert.ok(close(sum, incl[f]), `round ${round}: ${f} has ${sum}, not ${incl[f]}`));
    }
});

test("no function is twice on a path, and nothing costs more than what it is part of", () => {
    for (let round = 0; round < 100; round++) {
        const functions = 2 + random(10);
        const { flow } = graph(functions, true);
        const tree = expand([flow], 0, functions, { budget: 5000, least: 0 });
        for (let node = 1; node < tree.count; node++) {
            const path = [tree.fn[0], ...pathTo(tree, node)];
            assert.equal(new Set(path).size, path.length);
            assert.ok(tree.cost[0][node] <= tree.cost[0][tree.parent[node]] * (1 + 1e-9));
            assert.equal(nodeAt(tree, pathTo(tree, node)), node);
        }
    }
});

test("what is called exact is exact: another split of the same graph gives the same", () => {
    // A function with two callers hands on shares; those are estimates, the calls of it are not.
    const arcs: Record<number, [number, number][]> = { 0: [[1, 30], [2, 60]], 1: [[3, 10]], 2: [[3, 40]], 3: [[4, 15]] };
    const self = [10, 20, 20, 35, 15];
    const incl = [100, 30, 60, 50, 15];
    const flow: Flow = { ranked: (f) => rankPairs(arcs[f] ?? []), own: (f) => self[f], whole: (f) => incl[f], given: (f) => incl[f] };
    const tree = expand([flow], 0, 5, all);
    const told = Array.from({ length: tree.count }, (_, node) => `${pathTo(tree, node).join(">")}:${Math.round(tree.cost[0][node])}${tree.exact[node] ? "" : "~"}`);
    assert.deepEqual(told.sort(), ["1:30", "1>3:10", "1>3>4:3~", "2:60", "2>3:40", "2>3>4:12~", ":100"].sort());
});

test("a budget bounds the work, also in a graph where everybody calls everybody", () => {
    const functions = 1500;
    const known = new Map<number, Ranked>();
    const ranked = (f: number) => {
        const all = known.get(f) ?? rankPairs(Array.from({ length: functions }, (_, g): [number, number] => [g, g === f ? 0 : 1 + ((f * 7 + g) % 13)]));
        known.set(f, all);
        return all;
    };
    const flow: Flow = { ranked,
        own: () => 5, whole: () => 1e6, given: () => 1e6 };
    const before = performance.now();
    const tree = expand([flow], 0, functions, { budget: 4000, least: 10 });
    assert.ok(tree.count <= 4000);
    assert.ok(performance.now() - before < 5000);
});

test("two sides share a tree, and what is gone has no cost on one", () => {
    const one = (arcs: Record<number, [number, number][]>, incl: number[]): Flow => ({
        ranked: (f) => rankPairs(arcs[f] ?? []), own: () => 1, whole: (f) => incl[f], given: (f) => incl[f] });
    const tree = expand([one({ 0: [[1, 9]] }, [10, 9, 0]), one({ 0: [[2, 4]] }, [5, 0, 4])], 0, 3, all);
    const told = tree.children[0].map((child) => [tree.fn[child], tree.cost[0][child], tree.cost[1][child]]);
    assert.deepEqual(told, [[1, 9, 0], [2, 0, 4]]);
});

test("one side by itself, whose small neighbours are subtracted, has the tree that it has beside itself", () => {
    for (let round = 0; round < 200; round++) {
        const functions = 2 + random(14);
        const { flow } = graph(functions, round % 2 === 0);
        const limits = { budget: 1 + random(300), least: random(20), depth: round % 3 === 0 ? 4 : 12 };
        const one = expand([flow], 0, functions, limits);
        const both = expand([flow, flow], 0, functions, limits);
        assert.deepEqual([one.fn, one.parent, one.restCount, one.exact], [both.fn, both.parent, both.restCount, both.exact], `round ${round}`);
        for (let node = 0; node < one.count; node++) {
            for (const kind of ["cost", "own", "rest"] as const) { assert.ok(close(one[kind][0][node], both[kind][1][node]), `round ${round}, ${kind} of node ${node}`); }
        }
    }
});
