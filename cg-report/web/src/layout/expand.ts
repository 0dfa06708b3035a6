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
    /** All neighbours with a share, each once, the largest first. The same arrays for the same function: paths ask for it again and again. */
    ranked(f: number): Ranked;
    /** What stays with it. */
    own(f: number): number;
    /** All of a function's cost. */
    whole(f: number): number;
    /** All that neighbours on this side hand to a function together. */
    given(f: number): number;
}

/** Neighbours and their shares. */
export interface Ranked {
    to: Uint32Array;
    cost: Float64Array;
}

/** Puts neighbours into the order of their shares; those without one are left out. */
export function rank(to: ArrayLike<number>, cost: ArrayLike<number>): Ranked {
    const order: number[] = [];
    for (let at = 0; at < to.length; at++) { if (cost[at] > 0) { order.push(at); } }
    order.sort((a, b) => cost[b] - cost[a]);
    return { to: Uint32Array.from(order, (at) => to[at]), cost: Float64Array.from(order, (at) => cost[at]) };
}

/** The same of pairs. */
export function rankPairs(pairs: readonly (readonly [number, number])[]): Ranked {
    return rank(pairs.map(([to]) => to), pairs.map(([, cost]) => cost));
}

/** Remembers what has been ranked. */
function once(make: (f: number) => Ranked): (f: number) => Ranked {
    const known = new Map<number, Ranked>();
    return (f) => {
        let found = known.get(f);
        if (!found) { known.set(f, (found = make(f))); }
        return found;
    };
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
        ranked: once((f) => {
            if (f === TOP) { return rank(roots.map((_, at) => at), roots); }
            return rank(to.subarray(from[f], from[f + 1]), arc.subarray(from[f], from[f + 1]));
        }),
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
        ranked: once((f) => {
            const arcs = order.subarray(from[f], from[f + 1]);
            return rank(arcs.map((k) => caller[k]), Float64Array.from(arcs, (k) => arc[k]));
        }),
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

/** Which functions are on a path, and which have been met, by the last stamp that they were given; no stamp is given twice. */
const seen = { stamp: 0, onPath: new Int32Array(0), met: new Int32Array(0), slot: new Int32Array(0) };

/** Room for stamps of so many functions. Making it for each tree would take longer than most trees. */
function stamps(functions: number): typeof seen {
    if (seen.onPath.length < functions || seen.stamp > 0x3fffffff) {
        Object.assign(seen, { stamp: 0, onPath: new Int32Array(functions), met: new Int32Array(functions), slot: new Int32Array(functions) });
    }
    return seen;
}

/** Expands paths from `root`; with two flows for two sides, whose trees are the same. */
export function expand(flows: Flow[], root: number, functions: number, limits: Limits): Tree {
    const sides = flows.map((_, side) => side);
    const tree = emptyTree(flows.length);
    // Whether a node is all that there is of its function, by which its callees' costs are exact.
    const whole: boolean[] = [];
    const room = stamps(functions);
    const { onPath } = room;
    const add = (f: number, parent: number, cost: number[], exact: boolean): number => {
        const node = addNode(tree, f, parent, cost, exact);
        whole.push(exact && flows.every((flow, side) => near(cost[side], flow.whole(f))));
        return node;
    };
    const along = limits.along ?? [];
    const onWay: boolean[] = [true];
    const heap: number[] = [];
    const weight = weightIn(tree);
    const one = flows.length === 1;
    add(root, -1, flows.map((flow) => flow.whole(root)), true);
    push(heap, 0, weight);
    while (heap.length > 0) {
        // The rest of the work would make no node.
        if (tree.count >= limits.budget) { break; }
        const node = pop(heap, weight);
        if (limits.depth !== undefined && tree.depth[node] >= limits.depth) { continue; }
        const stamp = ++room.stamp;
        for (let at = node; at >= 0; at = tree.parent[at]) { if (tree.fn[at] >= 0) { onPath[tree.fn[at]] = stamp; } }
        const handed = one ? handOne(flows[0], tree, node, onPath, limits.least) : handAll(flows, tree, node, room);
        const { ends, costs, left, leftCount } = handed;
        for (const side of sides) { tree.rest[side][node] = left[side]; }
        tree.restCount[node] = leftCount;
        for (let at = 0; at < ends.length; at++) {
            const cost = costs[at];
            const beside = onWay[node] && tree.depth[node] < along.length && ends[at] !== along[tree.depth[node]];
            if (beside || tree.count >= limits.budget || !cost.some((own) => own >= limits.least)) {
                for (const side of sides) { tree.rest[side][node] += cost[side]; }
                tree.restCount[node] += 1;
                continue;
            }
            const child = add(ends[at], node, cost, whole[node] && handed.scale.every((by) => near(by, 1) || by === 0));
            onWay.push(onWay[node] && ends[at] === along[tree.depth[node]]);
            tree.children[node].push(child);
            push(heap, child, weight);
        }
        tree.expanded[node] = true;
    }
    return keepRest(tree);
}

/** What a node hands on: ends, the most expensive first, with what each costs on each side, and the sum of what is left out already. */
interface Handed {
    ends: number[];
    costs: number[][];
    left: number[];
    leftCount: number;
    /** What an arc's cost is multiplied by to be that at the node. */
    scale: number[];
}

/**
 * Of one side. Most neighbours of most nodes are too small to be nodes, and all paths through a function have the same ones: so they are in the
 * order of their costs, and those that are too small are left out by a subtraction.
 */
function handOne(flow: Flow, tree: Tree, node: number, onPath: Int32Array, least: number): Handed {
    const { to, cost } = flow.ranked(tree.fn[node]);
    const stamp = seen.stamp;
    const own = flow.own(tree.fn[node]);
    let sum = 0;
    let count = 0;
    for (let at = 0; at < to.length; at++) {
        if (onPath[to[at]] === stamp) { continue; }
        sum += cost[at];
        count += 1;
    }
    const all = sum + own;
    const whole = tree.cost[0][node];
    const scale = all > 0 ? whole / all : 0;
    tree.own[0][node] = all > 0 ? (whole * own) / all : whole;
    const handed: Handed = { ends: [], costs: [], left: [0], leftCount: 0, scale: [scale] };
    for (let at = 0; at < to.length && cost[at] * scale >= least; at++) {
        if (onPath[to[at]] === stamp) { continue; }
        handed.ends.push(to[at]);
        handed.costs.push([cost[at] * scale]);
        sum -= cost[at];
    }
    handed.leftCount = count - handed.ends.length;
    if (handed.leftCount > 0) { handed.left[0] = Math.max(0, sum * scale); }
    return handed;
}

/** Of several sides, whose neighbours become one list. */
function handAll(flows: Flow[], tree: Tree, node: number, { stamp, onPath, met, slot }: typeof seen): Handed {
    const f = tree.fn[node];
    const ends: number[] = [];
    const shares: number[][] = flows.map(() => []);
    flows.forEach((flow, side) => {
        const { to, cost } = flow.ranked(f);
        for (let at = 0; at < to.length; at++) {
            const g = to[at];
            if (onPath[g] === stamp) { continue; }
            if (met[g] !== stamp) {
                met[g] = stamp;
                slot[g] = ends.length;
                ends.push(g);
                for (const list of shares) { list.push(0); }
            }
            shares[side][slot[g]] += cost[at];
        }
    });
    const scale = flows.map((flow, side) => {
        const own = flow.own(f);
        const all = shares[side].reduce((sum, cost) => sum + cost, own);
        tree.own[side][node] = all > 0 ? (tree.cost[side][node] * own) / all : tree.cost[side][node];
        return all > 0 ? tree.cost[side][node] / all : 0;
    });
    const costs = ends.map((_, at) => scale.map((by, side) => shares[side][at] * by));
    const sizes = costs.map((cost) => Math.max(...cost));
    const order = ends.map((_, at) => at).sort((a, b) => sizes[b] - sizes[a]);
    return { ends: order.map((at) => ends[at]), costs: order.map((at) => costs[at]), left: flows.map(() => 0), leftCount: 0, scale };
}

/** Whether two sums are the same but for rounding. */
function near(a: number, b: number): boolean {
    return Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));
}

export function push(heap: number[], node: number, weight: (node: number) => number) {
    const own = weight(node);
    let at = heap.length;
    heap.push(node);
    while (at > 0) {
        const above = (at - 1) >> 1;
        if (weight(heap[above]) >= own) { break; }
        heap[at] = heap[above];
        at = above;
    }
    heap[at] = node;
}

export function pop(heap: number[], weight: (node: number) => number): number {
    const top = heap[0];
    const last = heap.pop() as number;
    if (heap.length === 0) { return top; }
    const own = weight(last);
    let at = 0;
    for (;;) {
        let below = 2 * at + 1;
        if (below >= heap.length) { break; }
        if (below + 1 < heap.length && weight(heap[below + 1]) > weight(heap[below])) { below += 1; }
        if (weight(heap[below]) <= own) { break; }
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = last;
    return top;
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
