// A picture of a tree for those who do not see it, and keys to walk in it.

import { percent } from "../data/format.ts";
import type { Tree } from "../layout/expand.ts";
import { model, shareOf, short, shownTotal } from "../state/store.ts";

/** Where a key leads from a node. */
export function step(tree: Tree, node: number, key: string, downIsDeeper = true): number | undefined {
    const parent = tree.parent[node];
    const siblings = parent < 0 ? [node] : tree.children[parent];
    const at = siblings.indexOf(node);
    const [deeper, higher] = downIsDeeper ? ["ArrowDown", "ArrowUp"] : ["ArrowUp", "ArrowDown"];
    switch (key) {
        case deeper: return tree.children[node][0];
        case higher: return parent < 0 ? undefined : parent;
        case "ArrowLeft": return siblings[at - 1];
        case "ArrowRight": return siblings[at + 1];
        default: return undefined;
    }
}

/** What a share of a node is of: of the program, or of the node above it. */
export function wholeOf(tree: Tree, node: number, program: number, which = 0): number {
    const parent = tree.parent[node];
    return parent < 0 ? program : shareOf(program, tree.cost[which][parent]);
}

export function describe(tree: Tree, node: number): string {
    const f = tree.fn[node];
    const name = f < 0 ? "whole program" : model().name(f, short.peek());
    const about = tree.exact[node] ? "" : "about ";
    const whole = wholeOf(tree, node, shownTotal.peek());
    return `${name}, ${about}${percent(tree.cost[0][node], whole)} %, self ${percent(tree.own[0][node], whole)} %`;
}

/** The same tree as elements, up to 200 of them. */
export function Parallel({ tree, current, label, id }: { tree: Tree; current: number; label: string; id: string }) {
    const shown: number[] = [];
    for (let at = current; at >= 0; at = tree.parent[at]) { shown.unshift(at); }
    const below = [...tree.children[current], ...(tree.parent[current] >= 0 ? tree.children[tree.parent[current]] : [])];
    for (const node of below) { if (!shown.includes(node) && shown.length < 200) { shown.push(node); } }
    const position = (node: number) => {
        const siblings = tree.parent[node] < 0 ? [node] : tree.children[tree.parent[node]];
        return { size: siblings.length, at: siblings.indexOf(node) + 1 };
    };
    return (
        <>
            <div class="hidden" role="tree" aria-label={label} id={id}>
                {shown.map((node) => (
                    <div key={node} id={`${id}-${node}`} role="treeitem" aria-level={tree.depth[node] + 1} aria-selected={node === current}
                        aria-posinset={position(node).at} aria-setsize={position(node).size}>{describe(tree, node)}</div>
                ))}
            </div>
            <div class="hidden" aria-live="polite">{describe(tree, current)}</div>
        </>
    );
}
