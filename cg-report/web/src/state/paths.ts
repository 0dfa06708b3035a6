// Call paths of what is shown: of recorded chains of calls, where all that is compared has some; else estimated from the call graph.

import type { Side } from "../data/model.ts";
import { expandChains, inclusiveOf, shapeOf, wholeOfChains, type Chains, type Shape } from "../layout/chains.ts";
import { downwards, expand, TOP, upwards, type Flow, type Limits, type Tree } from "../layout/expand.ts";
import { costs, type Event } from "./events.ts";
import { baseTotal, comparison, event, isDiff, model, total } from "./store.ts";

/** Where paths lead, and from where they are known. */
export interface Ways {
    up: boolean;
    chains?: Chains[];
    flows?: Flow[];
}

const shapes = new WeakMap<Side, Shape>();
const known = new WeakMap<Side, Map<string, Chains>>();

/** The chains of a side, with costs; undefined until they are there, or if there are none. */
export function chains(side: Side, of: Event, all: number): Chains | undefined {
    if (!side.hasChains) { return undefined; }
    const key = `${all} ${JSON.stringify(of.terms)}`;
    let made = known.get(side);
    if (!made) { known.set(side, (made = new Map())); }
    const found = made.get(key);
    if (found) { return found; }
    const [depth, fn, calls] = ["chain.depth", "chain.fn", "chain.calls"].map((name) => side.column(name)?.values);
    const self = costs(side, "chain.cost", of)?.values;
    if (!depth || !fn || !calls || !self) { return undefined; }
    let shape = shapes.get(side);
    if (!shape) { shapes.set(side, (shape = shapeOf(depth, fn, calls, model().functions))); }
    const out = { ...shape, self, incl: inclusiveOf(shape, self), total: all };
    made.set(key, out);
    return out;
}

/** The sides that pictures show together. */
function compared(): Side[] {
    const report = model();
    if (!isDiff.value || !report.base) { return [report.side]; }
    return comparison.value === "delta" ? [...report.sides] : [comparison.value === "base" ? report.base : report.side];
}

/** Ways of all sides that are compared, or of others, whose whole is given; undefined until their data is there. */
export function ways(up: boolean, sides = compared(), whole?: number): Ways | undefined {
    const totalOf = (side: Side) => whole ?? (side.at === 0 ? total.value : baseTotal.value);
    if (sides.every((side) => side.hasChains)) {
        const list: Chains[] = [];
        for (const side of sides) {
            const found = chains(side, event.value, totalOf(side));
            if (!found) { return undefined; }
            list.push(found);
        }
        return { up, chains: list };
    }
    const flows: Flow[] = [];
    for (const side of sides) {
        const flow = up ? upwards(side, event.value) : downwards(side, event.value, totalOf(side));
        if (!flow) { return undefined; }
        flows.push(flow);
    }
    return { up, flows };
}

/** What changes when ways do: whoever keeps a tree makes it anew then. */
export function keyOf(way: Ways | undefined): unknown {
    return way?.chains?.[0] ?? way?.flows?.[0];
}

/** What a function, or the whole program, costs on each side. */
export function wholes(way: Ways, root: number): number[] {
    return way.chains?.map((side) => wholeOfChains(side, root)) ?? way.flows?.map((flow) => flow.whole(root)) ?? [];
}

export function treeOf(way: Ways, root: number, limits: Limits): Tree {
    const tree = way.chains ? expandChains(way.chains, way.up, root, limits) : expand(way.flows ?? [], root, model().functions, limits);
    // Of the whole program it is known what there is.
    if (event.value.spread) { tree.exact = tree.exact.map((exact, node) => exact && tree.fn[node] === TOP); }
    return tree;
}

/** Functions from below the root to where each step takes most, as long as that is a part of the root that can be seen. */
export function heaviest(tree: Tree, share: number): number[] {
    const nodes: number[] = [];
    let node = 0;
    while (tree.children[node].length > 0) {
        const next = tree.children[node].reduce((best, child) => (tree.cost[0][child] > tree.cost[0][best] ? child : best));
        if (tree.cost[0][next] <= 0 || (nodes.length > 0 && tree.cost[0][next] < tree.cost[0][0] * share)) { break; }
        nodes.push(next);
        node = next;
    }
    return nodes;
}
