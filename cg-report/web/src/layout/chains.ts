// Call paths of recorded chains of calls: exact, whatever their functions have in common.
//
// Chains are a tree in which callers stand before what they call and all that they call directly behind them. A path of the
// pictures is a set of them: those that end in the same functions below what is looked at. Its cost is the sum of theirs; nothing is
// shared out. A chain within another one of the same function is part of that one and counted once.

import type { Numbers } from "../data/columns.ts";
import { TOP, addNode, emptyTree, keepRest, pop, push, weightIn, type Limits, type Tree } from "./expand.ts";

/** The tree of chains, whatever it costs. */
export interface Shape {
    fn: Numbers;
    depth: Numbers;
    /** The caller's chain; −1 for those without one. */
    parent: Int32Array;
    /** How many there are of a chain and those below it. */
    size: Uint32Array;
    calls: Numbers;
    /** Chains of function `f` that are in no other chain of it are `of[k]` for k from `from[f]` to `from[f + 1]`. */
    of: Uint32Array;
    from: Uint32Array;
}

/** Chains with what they cost. */
export interface Chains extends Shape {
    self: Numbers;
    incl: Float64Array;
    /** All that the program cost. */
    total: number;
}

/** Puts chains together that stand in the order of `depth`. */
export function shapeOf(depth: Numbers, fn: Numbers, calls: Numbers, functions: number): Shape {
    const count = depth.length;
    const parent = new Int32Array(count).fill(-1);
    const size = new Uint32Array(count).fill(1);
    const outer = new Uint8Array(count);
    const path: number[] = [];
    const on = new Uint32Array(functions);
    const from = new Uint32Array(functions + 1);
    for (let n = 0; n < count; n++) {
        if (depth[n] > path.length || fn[n] >= functions) { throw new Error("the chains of calls are damaged"); }
        while (path.length > depth[n]) { on[fn[path.pop() as number]] -= 1; }
        if (path.length > 0) { parent[n] = path[path.length - 1]; }
        if (on[fn[n]] === 0) {
            outer[n] = 1;
            from[fn[n] + 1] += 1;
        }
        on[fn[n]] += 1;
        path.push(n);
    }
    for (let n = count - 1; n >= 0; n--) { if (parent[n] >= 0) { size[parent[n]] += size[n]; } }
    for (let f = 0; f < functions; f++) { from[f + 1] += from[f]; }
    const next = from.slice();
    const of = new Uint32Array(from[functions]);
    for (let n = 0; n < count; n++) { if (outer[n] === 1) { of[next[fn[n]]++] = n; } }
    return { fn, depth, parent, size, calls, of, from };
}

/** What chains cost with all below them. */
export function inclusiveOf(shape: Shape, self: Numbers): Float64Array {
    const incl = Float64Array.from(self);
    for (let n = incl.length - 1; n >= 0; n--) { if (shape.parent[n] >= 0) { incl[shape.parent[n]] += incl[n]; } }
    return incl;
}

/** What a function, or the whole program, costs in all chains. */
export function wholeOfChains(chains: Chains, f: number): number {
    if (f === TOP) { return chains.total; }
    let sum = 0;
    for (let k = chains.from[f]; k < chains.from[f + 1]; k++) { sum += chains.incl[chains.of[k]]; }
    return sum;
}

/** The outermost chains of a function. */
export function chainsOf(chains: Shape, f: number): Uint32Array {
    return chains.of.subarray(chains.from[f], chains.from[f + 1]);
}

/** Calls `each` for the chains that `n` calls; for those that nobody called, if it is −1. */
export function below(chains: Shape, n: number, each: (child: number) => void) {
    const end = n < 0 ? chains.fn.length : n + chains.size[n];
    for (let child = n + 1; child < end; child += chains.size[child]) { each(child); }
}

/** Chains at the end of a path: going up, with those of the root that lead there. */
interface Members {
    at: number[];
    /** Going up: the chain of the root that each came from. */
    root: number[];
}

/** A node of the tree whose chains are not grouped yet, and those of its neighbours. */
type Group = { members: Members; cost: number[] }[];

/**
 * Expands paths from `root`, down to what is called or up to who calls, the most expensive first; with the chains of two sides, whose trees are
 * the same. All costs are exact.
 */
export function expandChains(list: Chains[], up: boolean, root: number, limits: Limits): Tree {
    const sides = list.map((_, side) => side);
    const tree = emptyTree(list.length);
    const counts: number[][] = tree.calls = sides.map(() => []);
    const members: (Members[] | undefined)[] = [];
    const add = (f: number, parent: number, cost: number[], of: Members[]): number => {
        const node = addNode(tree, f, parent, cost, true);
        for (const side of sides) {
            // Going up, calls are those of the root that came this way.
            const counted = up ? of[side].root : of[side].at;
            counts[side].push(counted.reduce((sum, n) => sum + (n < 0 ? 0 : list[side].calls[n]), 0));
        }
        members.push(of);
        return node;
    };
    const along = limits.along ?? [];
    const onWay: boolean[] = [true];
    const heap: number[] = [];
    const weight = weightIn(tree);
    const start = list.map((chains): Members => {
        const at = root === TOP ? [-1] : Array.from(chainsOf(chains, root));
        return { at, root: up ? at : [] };
    });
    add(root, -1, list.map((chains) => wholeOfChains(chains, root)), start);
    push(heap, 0, weight);
    while (heap.length > 0 && tree.count < limits.budget) {
        const node = pop(heap, weight);
        if (limits.depth !== undefined && tree.depth[node] >= limits.depth) { continue; }
        const of = members[node] as Members[];
        members[node] = undefined;
        const groups = new Map<number, Group>();
        const take = (side: number, f: number, n: number, from: number, cost: number) => {
            let group = groups.get(f);
            if (!group) { groups.set(f, (group = sides.map(() => ({ members: { at: [], root: [] }, cost: [0] })))); }
            group[side].members.at.push(n);
            if (up) { group[side].members.root.push(from); }
            group[side].cost[0] += cost;
        };
        list.forEach((chains, side) => {
            let kept = 0;
            of[side].at.forEach((n, k) => {
                if (!up) {
                    if (n >= 0) { kept += chains.self[n]; }
                    below(chains, n, (child) => take(side, chains.fn[child], child, -1, chains.incl[child]));
                    return;
                }
                const from = of[side].root[k];
                const caller = chains.parent[n];
                if (caller < 0) { kept += chains.incl[from]; } else { take(side, chains.fn[caller], caller, from, chains.incl[from]); }
            });
            tree.own[side][node] = kept;
        });
        if (!up && root === TOP && node === 0) {
            // What the profile states beyond its rows is in no function.
            sides.forEach((side) => {
                let handed = 0;
                for (const group of groups.values()) { handed += group[side].cost[0]; }
                tree.own[side][0] = Math.max(0, tree.cost[side][0] - handed);
            });
        }
        const size = (group: Group) => Math.max(...sides.map((side) => group[side].cost[0]));
        const order = [...groups].sort(([f, a], [g, b]) => size(b) - size(a) || f - g);
        for (const [f, group] of order) {
            const cost = group.map(({ cost: [sum] }) => sum);
            if (cost.every((sum) => sum === 0)) { continue; }
            const beside = onWay[node] && tree.depth[node] < along.length && f !== along[tree.depth[node]];
            if (beside || size(group) < limits.least || tree.count >= limits.budget) {
                for (const side of sides) { tree.rest[side][node] += cost[side]; }
                tree.restCount[node] += 1;
                continue;
            }
            const child = add(f, node, cost, group.map(({ members: own }) => own));
            onWay.push(onWay[node] && f === along[tree.depth[node]]);
            tree.children[node].push(child);
            push(heap, child, weight);
        }
        tree.expanded[node] = true;
    }
    return keepRest(tree);
}
