// What was inlined into a function, as a tree whose self costs add up to the function's.

import type { MachineLine } from "../data/machine.ts";

export interface Inlined {
    name: string;
    site: string;
    parent: number;
    level: number;
    own: number;
    all: number;
    children: number[];
}

/** The tree of inlined functions; its root is the function itself. Self costs add up to the function's. */
export function inlinedOf(lines: readonly MachineLine[], name: string): Inlined[] {
    const tree: Inlined[] = [{ name, site: "", parent: -1, level: 0, own: 0, all: 0, children: [] }];
    for (const line of lines) {
        let at = 0;
        for (const frame of line.inline) {
            let next = tree[at].children.find((child) => tree[child].name === frame.name && tree[child].site === frame.site);
            if (next === undefined) {
                next = tree.length;
                tree.push({ ...frame, parent: at, level: tree[at].level + 1, own: 0, all: 0, children: [] });
                tree[at].children.push(next);
            }
            at = next;
        }
        tree[at].own += line.cost;
        for (let up = at; up >= 0; up = tree[up].parent) { tree[up].all += line.cost; }
    }
    return tree;
}
