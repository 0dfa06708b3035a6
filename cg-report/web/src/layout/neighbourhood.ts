// Which functions a call graph shows: those that cost enough while the active function runs, and the callers that it is
// reached by. Costs of functions and arcs are sums over call paths, as flame graphs show them.

import { TOP, type Limits as Bounds, type Tree } from "./expand.ts";

export interface Limits {
    /** The least share of the active function's cost that a function must have. */
    node: number;
    /** The least share that an arc must have. */
    arc: number;
    callers: number;
    callees: number;
    /** How many nodes there may be; if there are more, the limit doubles. */
    most: number;
}

export interface Node {
    f: number;
    cost: number[];
    self: number[];
    exact: boolean;
    /** Cost of what is not shown: callers, and callees. */
    above: number;
    below: number;
    aboveCount: number;
    belowCount: number;
}

export interface Arc {
    from: number;
    to: number;
    cost: number[];
    exact: boolean;
    /** Whether it leads back to where the path came from; such arcs have counts only. */
    back: boolean;
}

export interface Neighbourhood {
    root: number;
    nodes: Map<number, Node>;
    arcs: Arc[];
    /** The limit that was used in the end. */
    limit: number;
}

/** A tree, and what its functions cost. */
interface Sums {
    tree: Tree;
    upwards: boolean;
    cost: Map<number, number[]>;
    self: Map<number, number[]>;
    exact: Map<number, boolean>;
    complete: boolean;
}

/** Call paths from the active function, down to callees or up to callers. */
export type Paths = (limits: Bounds) => Tree;

/** What a function is shown as is its own number, or a number below that of the whole program for what several are shown as. */
export function neighbourhood(wholes: number[], down: Paths, up: Paths | undefined, active: number, limits: Limits,
    back: (f: number) => Iterable<number>, as: (f: number) => number = (f) => f): Neighbourhood {
    const root = as(active);
    const sides = wholes.map((_, side) => side);
    const whole = Math.max(...wholes, 1e-12);
    const least = (whole * Math.min(limits.node, limits.arc)) / 40;
    const below = put(down({ budget: 4000, least, depth: limits.callees }));
    const above = up && limits.callers > 0 ? put(up({ budget: 1000, least, depth: limits.callers })) : undefined;
    const sums = [summed(below, false), ...(above ? [summed(above, true)] : [])];
    let limit = limits.node;
    for (;;) {
        const result = collect(limit);
        if (result.nodes.size <= limits.most || limit >= 0.5) { return result; }
        limit *= 2;
    }

    function put(tree: Tree): Tree {
        return { ...tree, fn: tree.fn.map(as) };
    }

    /** What all places of each function cost together, whatever is shown of them. */
    function summed(tree: Tree, upwards: boolean): Sums {
        const cost = new Map<number, number[]>();
        const self = new Map<number, number[]>();
        const exact = new Map<number, boolean>();
        // What is not expanded may be more of what is shown elsewhere.
        const levels = upwards ? limits.callers : limits.callees;
        const complete = tree.calls === undefined
            || tree.restCount.every((count, node) => (count === 0 && tree.expanded[node]) || tree.depth[node] >= levels);
        const inner = innerOf(tree);
        for (let node = 0; node < tree.count; node++) {
            const f = tree.fn[node];
            let [all, own] = [cost.get(f), self.get(f)];
            if (!all || !own) {
                cost.set(f, (all = sides.map(() => 0)));
                self.set(f, (own = sides.map(() => 0)));
            }
            for (const side of sides) {
                if (!inner[node]) { all[side] += tree.cost[side][node]; }
                own[side] += tree.own[side][node];
            }
            // What several functions are shown as has what its outermost ones have.
            if (!inner[node] || f >= TOP) { exact.set(f, (exact.get(f) ?? true) && tree.exact[node] && (complete || node === 0)); }
        }
        return { tree, upwards, cost, self, exact, complete };
    }

    function collect(limit: number): Neighbourhood {
        const nodes = new Map<number, Node>();
        const arcs = new Map<string, Arc>();
        const belowHas = new Set(below.fn);
        const take = ({ tree, upwards, cost: sums, self: selfs, exact, complete }: Sums) => {
            const large = new Set([root]);
            for (const [f, cost] of sums) { if (cost.some((own) => own >= limit * whole)) { large.add(f); } }
            const kept = (f: number) => large.has(f);
            for (let node = 0; node < tree.count; node++) {
                const f = tree.fn[node];
                if (!kept(f)) { continue; }
                if (!nodes.has(f)) {
                    nodes.set(f, { f, cost: sums.get(f) as number[], self: upwards ? sides.map(() => NaN) : selfs.get(f) as number[],
                        exact: exact.get(f) as boolean, above: 0, below: 0, aboveCount: 0, belowCount: 0 });
                }
                const parent = tree.parent[node];
                if (parent < 0 || !kept(tree.fn[parent])) { continue; }
                const [from, to] = upwards ? [f, tree.fn[parent]] : [tree.fn[parent], f];
                // What is shown as one has no arcs within.
                if (from === to && f < TOP) { continue; }
                const key = `${from} ${to}`;
                const arc = arcs.get(key) ?? { from, to, cost: sides.map(() => 0), exact: true, back: false };
                // What both trees know of an arc is the same.
                if (arcs.has(key) && upwards && belowHas.has(from) && !arc.back && from !== root) { continue; }
                sides.forEach((side) => { arc.cost[side] += tree.cost[side][node]; });
                arc.exact &&= tree.exact[node] && complete;
                arcs.set(key, arc);
            }
            // What is left out is counted where it would have been.
            for (let node = 0; node < tree.count; node++) {
                const shown = nodes.get(tree.fn[node]);
                if (!shown || !kept(tree.fn[node])) { continue; }
                let cost = tree.rest[0][node];
                let count = tree.restCount[node];
                for (const child of tree.children[node]) {
                    if (!kept(tree.fn[child])) {
                        cost += tree.cost[0][child];
                        count += 1;
                    }
                }
                if (upwards) {
                    shown.above += cost;
                    shown.aboveCount += count;
                } else {
                    shown.below += cost;
                    shown.belowCount += count;
                }
            }
        };
        sums.forEach(take);
        const shown = [...arcs.values()].filter((arc) => Math.max(...arc.cost) >= limits.arc * whole);
        for (const f of nodes.keys()) {
            for (const end of f < 0 ? [] : back(f)) {
                const g = as(end);
                if (nodes.has(g) && !arcs.has(`${f} ${g}`) && !shown.some((arc) => arc.from === f && arc.to === g)) { shown.push({ from: f, to: g, cost: sides.map(() => 0), exact: true, back: true }); }
            }
        }
        return { root, nodes, arcs: shown, limit };
    }
}

/** For each node whether it is part of another one of its function. */
function innerOf(tree: Tree): Uint8Array {
    const inner = new Uint8Array(tree.count);
    const on = new Map<number, number>();
    // Down into a node, and with its complement out of it again.
    const waiting = tree.count > 0 ? [0] : [];
    while (waiting.length > 0) {
        const at = waiting.pop() as number;
        if (at < 0) {
            const f = tree.fn[~at];
            on.set(f, (on.get(f) as number) - 1);
            continue;
        }
        const f = tree.fn[at];
        const above = on.get(f) ?? 0;
        inner[at] = above > 0 ? 1 : 0;
        on.set(f, above + 1);
        waiting.push(~at);
        for (const child of tree.children[at]) { waiting.push(child); }
    }
    return inner;
}
