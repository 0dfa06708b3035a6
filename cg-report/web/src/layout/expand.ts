// Call paths from a root, the most expensive first, as many as can be seen: where no chains of calls were recorded (`chains.ts`).
//
// A profile without contexts knows what a call of a function costs, but not what it costs when that function was called by a
// certain other one. At a path with cost c, a function hands each callee the share arc / (self + arcs) of c; callees that are
// on the path already are left out and the rest is scaled to fill their place. So what a path hands on and keeps is always
// what it got. A cost is exact where the path is the only way to what it is about; see `exact`.

import { costs, type Event } from "../state/events.ts";
import type { Numbers } from "../data/columns.ts";
import type { Side } from "../data/model.ts";

/** The whole program, above all functions without callers. */
export const TOP = -1;

/** What a function hands on: to its callees, or the other way to its callers. */
export interface Flow {
    /** Calls `each` for all neighbours with a share. */
    neighbours(f: number, each: (g: number, cost: number) => void): void;
    /** What stays with it. */
    own(f: number): number;
    /** All of a function's cost. */
    whole(f: number): number;
    /** All that neighbours on this side hand to a function together. */
    given(f: number): number;
}

function need(side: Side, kind: string, event: Event): Numbers | undefined {
    return costs(side, kind, event)?.values;
}

const flows = new WeakMap<Side, Map<string, Flow>>();

/** The same flow for the same question: making one looks at every arc. */
function kept(side: Side, key: string, make: () => Flow | undefined): Flow | undefined {
    let known = flows.get(side);
    if (!known) { flows.set(side, (known = new Map())); }
    const found = known.get(key) ?? make();
    if (found) { known.set(key, found); }
    return found;
}

/** From callers to callees; undefined until the data is there. */
export function downwards(side: Side, event: Event, total: number): Flow | undefined {
    return kept(side, `down ${total} ${JSON.stringify(event.terms)}`, () => makeDown(side, event, total));
}

function makeDown(side: Side, event: Event, total: number): Flow | undefined {
    const [arc, self, incl, seen] = ["arc.cost", "fn.self", "fn.incl", "fn.seen"].map((kind) => need(side, kind, event));
    const cycles = need(side, "cy.incl", event);
    const numbers = side.column("cy.number")?.values;
    if (!arc || !self || !incl || !seen || !cycles || !numbers) { return undefined; }
    const from = side.now("arc.from");
    const to = side.now("arc.to");
    const roots = rootCosts(side, { incl, seen, cycles, numbers, arc });
    const handed = roots.reduce((sum, cost) => sum + cost, 0);
    return {
        neighbours(f, each) {
            if (f === TOP) {
                for (let f = 0; f < roots.length; f++) { if (roots[f] > 0) { each(f, roots[f]); } }
                return;
            }
            for (let k = from[f]; k < from[f + 1]; k++) { if (arc[k] > 0) { each(to[k], arc[k]); } }
        },
        own: (f) => (f === TOP ? Math.max(0, total - handed) : self[f]),
        whole: (f) => (f === TOP ? total : incl[f]),
        given: (f) => incl[f],
    };
}

/** From callees to callers; undefined until the data is there. */
export function upwards(side: Side, event: Event): Flow | undefined {
    return kept(side, `up ${JSON.stringify(event.terms)}`, () => makeUp(side, event));
}

function makeUp(side: Side, event: Event): Flow | undefined {
    const [arc, incl, seen] = ["arc.cost", "fn.incl", "fn.seen"].map((kind) => need(side, kind, event));
    const cycles = need(side, "cy.incl", event);
    const numbers = side.column("cy.number")?.values;
    if (!arc || !incl || !seen || !cycles || !numbers) { return undefined; }
    const caller = side.callers();
    const { from, order } = side.incoming();
    const roots = rootCosts(side, { incl, seen, cycles, numbers, arc });
    return {
        neighbours(f, each) {
            for (let k = from[f]; k < from[f + 1]; k++) { if (arc[order[k]] > 0) { each(caller[order[k]], arc[order[k]]); } }
        },
        own: (f) => f === TOP ? 0 : roots[f],
        whole: (f) => incl[f],
        given: () => Infinity,
    };
}

interface Known {
    incl: Numbers;
    seen: Numbers;
    cycles: Numbers;
    numbers: Numbers;
    arc: Numbers;
}

/** What each function costs that nobody called, as far as the profile knows. Of a cycle it is the most expensive member's. */
function rootCosts(side: Side, { incl, seen, cycles, numbers, arc }: Known): Float64Array {
    const roots = new Float64Array(incl.length);
    const cycle = side.now("fn.cycle");
    for (let f = 0; f < incl.length; f++) {
        if (cycle[f] === 0 && incl[f] > seen[f]) { roots[f] = incl[f] - seen[f]; }
    }
    if (numbers.length === 0) { return roots; }
    const rest = new Map<number, number>();
    numbers.forEach((number, at) => rest.set(number, cycles[at]));
    const to = side.now("arc.to");
    const within = side.now("arc.within");
    for (let k = 0; k < to.length; k++) {
        const number = cycle[to[k]];
        if (number !== 0 && !within[k]) { rest.set(number, (rest.get(number) ?? 0) - arc[k]); }
    }
    const heads = new Map<number, number>();
    for (let f = 0; f < incl.length; f++) {
        const head = heads.get(cycle[f]);
        if (cycle[f] !== 0 && (head === undefined || incl[f] > incl[head])) { heads.set(cycle[f], f); }
    }
    heads.forEach((head, number) => {
        const cost = rest.get(number) ?? 0;
        if (cost > 0) { roots[head] = cost; }
    });
    return roots;
}

/** Paths as a tree: node 0 is the root, parents come before children. */
export interface Tree {
    count: number;
    fn: number[];
    parent: number[];
    depth: number[];
    /** For each side what a node costs. */
    cost: number[][];
    /** For each side what it keeps for itself. */
    own: number[][];
    /** For each side how often it was called there, if that is known. */
    calls?: number[][];
    /** For each side what it hands to callees that are not nodes, because they are too small. */
    rest: number[][];
    /** How many those are. */
    restCount: number[];
    /** Whether its callees are nodes, or counted in `rest`; else all of it is there. */
    expanded: boolean[];
    /** Whether costs are sums of counts, and not estimated. */
    exact: boolean[];
    children: number[][];
    deepest: number;
}

export interface Limits {
    /** How many nodes there may be. */
    budget: number;
    /** What a node must cost to be one. */
    least: number;
    /** Levels below the root. */
    depth?: number;
    /** Functions below the root that lead to what is looked at: beside them nothing is expanded. */
    along?: readonly number[];
}

/** A tree of so many sides, without nodes. */
export function emptyTree(sides: number): Tree {
    const each = () => Array.from({ length: sides }, () => []);
    return { count: 0, fn: [], parent: [], depth: [], cost: each(), own: each(), rest: each(), restCount: [], expanded: [], exact: [], children: [],
        deepest: 0 };
}

/** Adds a node that is not expanded yet; for each side what it costs. */
export function addNode(tree: Tree, f: number, parent: number, cost: number[], exact: boolean): number {
    const node = tree.count++;
    tree.fn.push(f);
    tree.parent.push(parent);
    tree.depth.push(parent < 0 ? 0 : tree.depth[parent] + 1);
    tree.deepest = Math.max(tree.deepest, tree.depth[node]);
    tree.cost.forEach((costs, side) => {
        costs.push(cost[side]);
        tree.own[side].push(0);
        tree.rest[side].push(0);
    });
    tree.restCount.push(0);
    tree.expanded.push(false);
    tree.exact.push(exact);
    tree.children.push([]);
    return node;
}

/** By what the next node to expand is chosen. */
export function weightIn(tree: Tree): (node: number) => number {
    const [first, other] = tree.cost;
    return (node) => (other && other[node] > first[node] ? other[node] : first[node]);
}

/** Nodes that were not expanded keep all that they cost in one piece. */
export function keepRest(tree: Tree): Tree {
    for (let node = 0; node < tree.count; node++) {
        if (!tree.expanded[node]) { tree.rest.forEach((rest, side) => { rest[node] = tree.cost[side][node]; }); }
    }
    return tree;
}

/** Expands paths from `root`; with two flows for two sides, whose trees are the same. */
export function expand(flows: Flow[], root: number, functions: number, limits: Limits): Tree {
    const sides = flows.map((_, side) => side);
    const tree = emptyTree(flows.length);
    // Whether a node is all that there is of its function, by which its callees' costs are exact.
    const whole: boolean[] = [];
    const slot = new Int32Array(functions).fill(-1);
    const onPath = new Int32Array(functions);
    let stamp = 0;
    const add = (f: number, parent: number, cost: number[], exact: boolean): number => {
        const node = addNode(tree, f, parent, cost, exact);
        whole.push(exact && flows.every((flow, side) => near(cost[side], flow.whole(f))));
        return node;
    };
    const along = limits.along ?? [];
    const onWay: boolean[] = [true];
    const heap: number[] = [];
    const weight = weightIn(tree);
    add(root, -1, flows.map((flow) => flow.whole(root)), true);
    push(heap, 0, weight);
    while (heap.length > 0) {
        // The rest of the work would make no node.
        if (tree.count >= limits.budget) { break; }
        const node = pop(heap, weight);
        if (limits.depth !== undefined && tree.depth[node] >= limits.depth) { continue; }
        const f = tree.fn[node];
        stamp += 1;
        for (let at = node; at >= 0; at = tree.parent[at]) { if (tree.fn[at] >= 0) { onPath[tree.fn[at]] = stamp; } }
        const ends: number[] = [];
        const shares: number[][] = sides.map(() => []);
        flows.forEach((flow, side) => {
            flow.neighbours(f, (g, cost) => {
                if (onPath[g] === stamp) { return; }
                if (slot[g] < 0) {
                    slot[g] = ends.length;
                    ends.push(g);
                    shares.forEach((list) => list.push(0));
                }
                shares[side][slot[g]] += cost;
            });
        });
        ends.forEach((g) => { slot[g] = -1; });
        const scale = flows.map((flow, side) => {
            const own = flow.own(f);
            const all = shares[side].reduce((sum, cost) => sum + cost, own);
            tree.own[side][node] = all > 0 ? (tree.cost[side][node] * own) / all : tree.cost[side][node];
            return all > 0 ? tree.cost[side][node] / all : 0;
        });
        const sizes = ends.map((_, at) => {
            let size = 0;
            for (const side of sides) { size = Math.max(size, shares[side][at] * scale[side]); }
            return size;
        });
        const leave = (at: number) => {
            for (const side of sides) { tree.rest[side][node] += shares[side][at] * scale[side]; }
            tree.restCount[node] += 1;
        };
        const order: number[] = [];
        sizes.forEach((size, at) => { if (size < limits.least) { leave(at); } else { order.push(at); } });
        order.sort((a, b) => sizes[b] - sizes[a]);
        for (const at of order) {
            const beside = onWay[node] && tree.depth[node] < along.length && ends[at] !== along[tree.depth[node]];
            if (beside || tree.count >= limits.budget) {
                leave(at);
                continue;
            }
            const cost = sides.map((side) => shares[side][at] * scale[side]);
            const child = add(ends[at], node, cost, whole[node] && scale.every((by) => near(by, 1) || by === 0));
            onWay.push(onWay[node] && ends[at] === along[tree.depth[node]]);
            tree.children[node].push(child);
            push(heap, child, weight);
        }
        tree.expanded[node] = true;
    }
    return keepRest(tree);
}

/** Whether two sums are the same but for rounding. */
function near(a: number, b: number): boolean {
    return Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
}

export function push(heap: number[], node: number, weight: (node: number) => number) {
    let at = heap.length;
    heap.push(node);
    while (at > 0) {
        const above = (at - 1) >> 1;
        if (weight(heap[above]) >= weight(heap[at])) { break; }
        [heap[above], heap[at]] = [heap[at], heap[above]];
        at = above;
    }
}

export function pop(heap: number[], weight: (node: number) => number): number {
    const top = heap[0];
    const last = heap.pop() as number;
    if (heap.length === 0) { return top; }
    heap[0] = last;
    let at = 0;
    for (;;) {
        let best = at;
        for (const below of [2 * at + 1, 2 * at + 2]) {
            if (below < heap.length && weight(heap[below]) > weight(heap[best])) { best = below; }
        }
        if (best === at) { return top; }
        [heap[best], heap[at]] = [heap[at], heap[best]];
        at = best;
    }
}

/** Functions from below the root down to a node. */
export function pathTo(tree: Tree, node: number): number[] {
    const path: number[] = [];
    for (let at = node; at > 0; at = tree.parent[at]) { path.push(tree.fn[at]); }
    return path.reverse();
}

/** The node at the end of a path from the root; the last one that is there. */
export function nodeAt(tree: Tree, path: readonly number[]): number {
    let node = 0;
    for (const f of path) {
        const next = tree.children[node].find((child) => tree.fn[child] === f);
        if (next === undefined) { break; }
        node = next;
    }
    return node;
}
