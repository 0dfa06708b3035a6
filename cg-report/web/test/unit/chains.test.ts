// The laws of recorded chains of calls, on programs that run at random and count what they do, beside the slow, obvious way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { below, chainsOf, expandChains, inclusiveOf, shapeOf, wholeOfChains, type Chains } from "../../src/layout/chains.ts";
import { causesOf } from "../../src/layout/causes.ts";
import { expand, nodeAt, pathTo, TOP, rankPairs, type Flow, type Tree } from "../../src/layout/expand.ts";
import { reachedByChains, reachedByPaths } from "../../src/layout/reach.ts";

let state = 5;
function random(under: number): number {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % under;
}

interface Node {
    f: number;
    self: number;
    calls: number;
    children: Map<number, Node>;
}

/** A program that calls at random, `deep` levels, and books each step on the stack as it is. Recursion goes back if `folded`. */
function run(functions: number, steps: number, folded: boolean): { chains: Chains; self: number[]; root: Node } {
    const root: Node = { f: -1, self: 0, calls: 0, children: new Map() };
    const self = new Array<number>(functions).fill(0);
    const stack: Node[] = [];
    for (let step = 0; step < steps; step++) {
        const top = stack[stack.length - 1];
        if (stack.length === 0 || (random(5) < 3 && stack.length < 12)) {
            const f = random(functions);
            const known = folded ? stack.findLast((node) => node.f === f) : undefined;
            const parent = top ?? root;
            const node = known ?? parent.children.get(f) ?? { f, self: 0, calls: 0, children: new Map() };
            if (!known) { parent.children.set(f, node); }
            node.calls += 1;
            stack.push(node);
        } else if (random(3) === 0) {
            stack.pop();
        }
        const here = stack[stack.length - 1];
        if (here) {
            const cost = random(10);
            here.self += cost;
            self[here.f] += cost;
        }
    }
    const [depth, fn, own, calls]: number[][] = [[], [], [], []];
    const walk = (node: Node, level: number) => {
        for (const child of node.children.values()) {
            depth.push(level);
            fn.push(child.f);
            own.push(child.self);
            calls.push(child.calls);
            walk(child, level + 1);
        }
    };
    walk(root, 0);
    const shape = shapeOf(Uint32Array.from(depth), Uint32Array.from(fn), Float64Array.from(calls), functions);
    const values = Float64Array.from(own);
    return { chains: { ...shape, self: values, incl: inclusiveOf(shape, values), total: self.reduce((sum, cost) => sum + cost, 0) }, self, root };
}

const all = { budget: Infinity, least: 0 };

/** Nodes of a tree by the functions that lead there. */
function byPath(tree: Tree): Map<string, number> {
    return new Map(Array.from({ length: tree.count }, (_, node) => [pathTo(tree, node).join(">"), node]));
}

test("totals of chains are those of rows, function by function", () => {
    for (let round = 0; round < 100; round++) {
        const functions = 1 + random(9);
        const { chains, self } = run(functions, 400, round % 2 === 0);
        const tree = expandChains([chains], false, TOP, all);
        const sums = new Array<number>(functions).fill(0);
        for (let node = 1; node < tree.count; node++) { sums[tree.fn[node]] += tree.own[0][node]; }
        assert.deepEqual(sums, self, `round ${round}`);
        assert.equal(tree.cost[0][0], chains.total);
        assert.ok(tree.exact.every(Boolean));
    }
});

test("each node keeps and hands on what it got, whatever is left out", () => {
    for (let round = 0; round < 200; round++) {
        const functions = 1 + random(9);
        const { chains } = run(functions, 300, round % 2 === 0);
        const root = round % 3 === 0 ? TOP : random(functions);
        const limits = round % 4 === 0 ? { budget: 1 + random(20), least: random(40) } : all;
        for (const up of root === TOP ? [false] : [false, true]) {
            const tree = expandChains([chains], up, root, limits);
            assert.equal(tree.cost[0][0], wholeOfChains(chains, root));
            for (let node = 0; node < tree.count; node++) {
                const handed = tree.children[node].reduce((sum, child) => sum + tree.cost[0][child], 0);
                if (!tree.expanded[node]) {
                    assert.equal(tree.rest[0][node], tree.cost[0][node]);
                    continue;
                }
                assert.equal(handed + tree.own[0][node] + tree.rest[0][node], tree.cost[0][node], `round ${round}, node ${node}`);
                assert.equal(nodeAt(tree, pathTo(tree, node)), node);
            }
        }
    }
});

test("paths down are those of the run", () => {
    for (let round = 0; round < 50; round++) {
        const { chains, root } = run(6, 300, false);
        const known = byPath(expandChains([chains], false, TOP, all));
        const tree = expandChains([chains], false, TOP, all);
        const inclusive = (node: Node): number => node.self + [...node.children.values()].reduce((sum, child) => sum + inclusive(child), 0);
        const walk = (node: Node, path: number[]) => {
            for (const child of node.children.values()) {
                const here = [...path, child.f];
                const cost = inclusive(child);
                const at = known.get(here.join(">"));
                // What cost nothing is not there.
                assert.equal(at === undefined, cost === 0, here.join(">"));
                if (at !== undefined) { assert.deepEqual([tree.cost[0][at], tree.own[0][at], tree.calls?.[0][at]], [cost, child.self, child.calls]); }
                walk(child, here);
            }
        };
        walk(root, []);
    }
});

test("of a function the outermost chains count, so that it never costs more than the program", () => {
    for (let round = 0; round < 100; round++) {
        const functions = 1 + random(6);
        const { chains } = run(functions, 400, false);
        for (let f = 0; f < functions; f++) {
            // Slowly: each chain that has no caller of the same function.
            let sum = 0;
            const path: number[] = [];
            for (let n = 0; n < chains.fn.length; n++) {
                path.length = chains.depth[n];
                path.push(chains.fn[n]);
                if (chains.fn[n] === f && path.indexOf(f) === path.length - 1) { sum += chains.incl[n]; }
            }
            assert.equal(wholeOfChains(chains, f), sum);
            assert.ok(sum <= chains.total);
        }
    }
});

test("callers and callees with distances are those that a walk along all chains finds", () => {
    for (let round = 0; round < 100; round++) {
        const functions = 2 + random(6);
        const { chains } = run(functions, 300, round % 2 === 0);
        const root = random(functions);
        const starts = [...chainsOf(chains, root)];
        const up = new Map<number, [number, number, number]>();
        for (const start of starts) {
            const path: number[] = [];
            for (let n = chains.parent[start]; n >= 0; n = chains.parent[n]) { path.push(chains.fn[n]); }
            path.forEach((f, at) => {
                const [cost, near, far] = up.get(f) ?? [0, Infinity, 0];
                up.set(f, [cost + (path.indexOf(f) === at ? chains.incl[start] : 0), Math.min(near, at + 1), Math.max(far, at + 1)]);
            });
        }
        const found = new Map(reachedByChains(chains, root, true).map(({ f, cost, nearest, farthest }) => [f, [cost, nearest, farthest]]));
        assert.deepEqual([...found].sort(([a], [b]) => a - b), [...up].sort(([a], [b]) => a - b), `round ${round}`);
        const down = new Map<number, number>();
        const walk = (n: number, path: number[]) => {
            below(chains, n, (child) => {
                const f = chains.fn[child];
                if (!path.includes(f)) { down.set(f, (down.get(f) ?? 0) + chains.incl[child]); }
                walk(child, [...path, f]);
            });
        };
        starts.forEach((start) => walk(start, []));
        const spent = new Map<number, number>();
        for (const start of starts) {
            for (let n = start + 1; n < start + chains.size[start]; n++) { spent.set(chains.fn[n], (spent.get(chains.fn[n]) ?? 0) + chains.self[n]); }
        }
        for (const { f, cost, own, nearest, farthest } of reachedByChains(chains, root, false)) {
            assert.equal(cost, down.get(f), `round ${round}: ${f}`);
            assert.equal(own, spent.get(f));
            assert.ok(nearest >= 1 && nearest <= farthest);
        }
    }
});

test("without chains distances are those of the call graph, and costs those of paths", () => {
    const arcs: Record<number, [number, number][]> = { 0: [[1, 30], [2, 60]], 1: [[3, 10]], 2: [[1, 20]], 3: [] };
    const incl = [100, 50, 60, 10];
    const own = [10, 40, 40, 10];
    const flow: Flow = { ranked: (f) => rankPairs(arcs[f]), own: (f) => own[f], whole: (f) => incl[f], given: (f) => incl[f] };
    const tree = expand([flow], 0, 4, { budget: 1000, least: 0 });
    const found = reachedByPaths(tree, 4, (f, each) => arcs[f].forEach(([g]) => each(g)));
    assert.deepEqual(found.map(({ f, nearest, farthest }) => [f, nearest, farthest]).sort(), [[1, 1, 2], [2, 1, 1], [3, 2, 3]]);
    assert.deepEqual(found.map(({ f, cost }) => [f, Math.round(cost)]).sort(), [[1, 50], [2, 60], [3, 10]]);
    const short = expand([flow], 0, 4, { budget: 1000, least: 15 });
    assert.ok(Number.isNaN(reachedByPaths(short, 4, (f, each) => arcs[f].forEach(([g]) => each(g))).find(({ f }) => f === 3)?.cost));
});

test("two sides share a tree, and causes of their difference add up to it exactly", () => {
    for (let round = 0; round < 100; round++) {
        const functions = 2 + random(6);
        const [now, before] = [run(functions, 300, true).chains, run(functions, 250, true).chains];
        const tree = expandChains([now, before], false, TOP, all);
        const { causes, thin, delta } = causesOf(tree, 1 + random(50), () => NaN);
        assert.equal(causes.reduce((sum, cause) => sum + cause.delta, 0) + thin, delta, `round ${round}`);
        assert.equal(delta, now.total - before.total);
        assert.ok(causes.every((cause) => cause.exact));
    }
});

test("chains that are damaged are refused", () => {
    const numbers = (...list: number[]) => Uint32Array.from(list);
    assert.throws(() => shapeOf(numbers(1), numbers(0), numbers(0), 1), /damaged/);
    assert.throws(() => shapeOf(numbers(0, 2), numbers(0, 0), numbers(0, 0), 1), /damaged/);
    assert.throws(() => shapeOf(numbers(0), numbers(1), numbers(0), 1), /damaged/);
});
