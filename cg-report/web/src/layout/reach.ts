// All functions on the ways to a function, or from it, each once: how far they are, and what of its cost came through them.
//
// Of chains of calls all is known. Without them, steps on the shortest way are those of the call graph, and costs are those of estimated
// paths, as pictures show them: of a function that is on no path that was looked at, there is no cost.

import { chainsOf, type Chains } from "./chains.ts";
import type { Tree } from "./expand.ts";

/** What lies on the ways to a function, or from it. */
export interface Reached {
    f: number;
    /** Of the function's cost, what came through here; of what it calls, what that cost. */
    cost: number;
    /** What it spent itself while the other ran; NaN of callers. */
    own: number;
    /** Steps on the shortest and the longest way. */
    nearest: number;
    farthest: number;
    /** Calls of the function that came through here, or calls of this one. */
    calls: number;
    exact: boolean;
}

/** All functions above the outermost chains of `root`, or below them, each once. */
export function reachedByChains(chains: Chains, root: number, up: boolean): Reached[] {
    const found = new Map<number, Reached>();
    const take = (f: number, cost: number, own: number, calls: number, steps: number) => {
        const known = found.get(f);
        if (!known) {
            found.set(f, { f, cost, own, nearest: steps, farthest: steps, calls, exact: true });
            return;
        }
        known.cost += cost;
        known.own += own;
        known.calls += calls;
        known.nearest = Math.min(known.nearest, steps);
        known.farthest = Math.max(known.farthest, steps);
    };
    for (const start of chainsOf(chains, root)) {
        if (up) {
            const seen = new Set<number>();
            let steps = 0;
            for (let n = chains.parent[start]; n >= 0; n = chains.parent[n]) {
                steps += 1;
                const f = chains.fn[n];
                const again = seen.has(f);
                seen.add(f);
                take(f, again ? 0 : chains.incl[start], NaN, again ? 0 : chains.calls[start], steps);
            }
            continue;
        }
        const path: number[] = [];
        const on = new Map<number, number>();
        const end = start + chains.size[start];
        for (let n = start + 1; n < end; n++) {
            const steps = chains.depth[n] - chains.depth[start];
            while (path.length >= steps) {
                const left = chains.fn[path.pop() as number];
                on.set(left, (on.get(left) ?? 1) - 1);
            }
            const f = chains.fn[n];
            const within = (on.get(f) ?? 0) > 0;
            if (chains.incl[n] !== 0 || chains.calls[n] > 0) { take(f, within ? 0 : chains.incl[n], chains.self[n], chains.calls[n], steps); }
            on.set(f, (on.get(f) ?? 0) + 1);
            path.push(n);
        }
    }
    return [...found.values()];
}

/** The same without chains, from paths of the call graph and its arcs. */
export function reachedByPaths(tree: Tree, functions: number, neighbours: (f: number, each: (g: number) => void) => void): Reached[] {
    const root = tree.fn[0];
    const steps = new Int32Array(functions).fill(-1);
    steps[root] = 0;
    const waiting = [root];
    for (let at = 0; at < waiting.length; at++) {
        neighbours(waiting[at], (g) => {
            if (steps[g] >= 0) { return; }
            steps[g] = steps[waiting[at]] + 1;
            waiting.push(g);
        });
    }
    const complete = tree.restCount.every((count, node) => count === 0 && tree.expanded[node]);
    const found = new Map<number, Reached>();
    for (const f of waiting.slice(1)) { found.set(f, { f, cost: NaN, own: NaN, nearest: steps[f], farthest: NaN, calls: NaN, exact: false }); }
    for (let node = 1; node < tree.count; node++) {
        const known = found.get(tree.fn[node]);
        if (!known) { continue; }
        const first = Number.isNaN(known.cost);
        known.cost = (first ? 0 : known.cost) + tree.cost[0][node];
        known.own = (first ? 0 : known.own) + tree.own[0][node];
        known.farthest = Math.max(first ? 0 : known.farthest, tree.depth[node]);
        known.exact = (first || known.exact) && complete && tree.exact[node];
    }
    return [...found.values()];
}
