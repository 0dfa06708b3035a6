// What a change consists of: causes that add up to it, found from the top.
//
// A tree of call paths that both sides share says for each path what it cost before and after. A change is followed into the
// callees that hold it. It stops, and is a cause, where the call itself explains it (it is made more often, or fewer times,
// or only on one side), or where the function itself does. What is below the threshold everywhere is "spread thin". Each
// part of the tree belongs to one cause or is spread thin, so that all of them add up to the change of the root.

import { pathTo, type Tree } from "./expand.ts";

export type CauseKind = "new" | "gone" | "moved" | "more" | "fewer" | "dearer" | "cheaper";

export interface Cause {
    kind: CauseKind;
    node: number;
    /** Functions from below the root. */
    path: number[];
    delta: number;
    /** Calls of the last function by the one before it, on both sides; NaN if that is not known. */
    calls: [number, number];
    exact: boolean;
}

export interface Causes {
    causes: Cause[];
    /** The change that is in no cause. */
    thin: number;
    delta: number;
}

/** How much of a change a call must explain to be its cause. */
const MOST = 0.8;

/** Finds causes of at least `least`; `calls` tells how often `from` calls `to` on a side;
 * `moved` which share of what `into` spends itself now is spent at the lines that `from` had. */
export function causesOf(tree: Tree, least: number, calls: (side: number, from: number, to: number) => number,
    moved: (into: number, from: number) => number = () => 0): Causes {
    const [now, before] = tree.cost;
    const [ownNow, ownBefore] = tree.own;
    const causes: Cause[] = [];
    let thin = 0;
    const add = (kind: CauseKind, node: number, delta: number, counts: [number, number]) => {
        causes.push({ kind, node, path: pathTo(tree, node), delta, calls: counts, exact: tree.exact[node] });
    };
    const waiting = [0];
    while (waiting.length > 0) {
        const node = waiting.pop() as number;
        const delta = now[node] - before[node];
        const parent = tree.parent[node];
        // Of a chain of calls it is known how often that was made, and not only how often its last function calls the next.
        const counts: [number, number] = parent < 0 ? [NaN, NaN] : tree.calls ? [tree.calls[0][node], tree.calls[1][node]] : [calls(0, tree.fn[parent], tree.fn[node]), calls(1, tree.fn[parent], tree.fn[node])];
        if (parent >= 0 && Math.abs(delta) >= least) {
            if (before[node] === 0 || now[node] === 0) {
                add(now[node] === 0 ? "gone" : "new", node, delta, counts);
                continue;
            }
            // More calls at the old cost of each.
            const [n1, n0] = counts;
            if (n0 > 0 && n1 !== n0) {
                const more = ((n1 - n0) / n0) * before[node];
                if (Math.sign(more) === Math.sign(delta) && Math.abs(more) >= MOST * Math.abs(delta) && Math.abs(more) <= Math.abs(delta) / MOST) {
                    add(more > 0 ? "more" : "fewer", node, delta, counts);
                    continue;
                }
            }
        }
        // What the node keeps, what is not expanded, and each callee are looked at apart.
        let own = ownNow[node] - ownBefore[node];
        // A callee that is gone, whose lines its caller executes now, was inlined: what it cost and costs there are one.
        const inlined = new Set<number>();
        for (const child of tree.children[node]) {
            const share = now[child] === 0 && before[child] >= least && tree.fn[node] >= 0 ? moved(tree.fn[node], tree.fn[child]) : 0;
            if (share <= 0) { continue; }
            const cost = ownNow[node] * share;
            own -= cost;
            inlined.add(child);
            add("moved", child, cost - before[child], [0, tree.calls ? tree.calls[1][child] : calls(1, tree.fn[node], tree.fn[child])]);
        }
        if (Math.abs(own) >= least && node > 0) { add(own > 0 ? "dearer" : "cheaper", node, own, counts); } else { thin += own; }
        thin += tree.rest[0][node] - tree.rest[1][node];
        for (const child of tree.children[node]) {
            if (inlined.has(child)) { continue; }
            // Below a small change there may be large ones that balance.
            if (Math.abs(now[child] - before[child]) >= least || Math.max(now[child], before[child]) >= least * 4) {
                waiting.push(child);
            } else {
                thin += now[child] - before[child];
            }
        }
    }
    causes.sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta) || a.node - b.node);
    return { causes, thin, delta: now[0] - before[0] };
}
