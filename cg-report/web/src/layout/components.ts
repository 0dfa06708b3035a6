// Groups of functions of which each can reach each other; callees of node `f` are `to[k]` for k from `from[f]` to `from[f + 1]`.

/** For each node the number of its group. The search keeps its own stack: call graphs are deeper than that of a page. */
export function components(from: ArrayLike<number>, to: ArrayLike<number>): Uint32Array {
    const nodes = from.length - 1;
    const order = new Uint32Array(nodes);
    const low = new Uint32Array(nodes);
    const next = new Uint32Array(nodes);
    const done = new Uint8Array(nodes);
    const group = new Uint32Array(nodes);
    const path: number[] = [];
    const waiting: number[] = [];
    let seen = 0;
    let groups = 0;
    const enter = (node: number) => {
        seen += 1;
        order[node] = low[node] = seen;
        next[node] = from[node];
        path.push(node);
        waiting.push(node);
    };
    for (let start = 0; start < nodes; start++) {
        if (order[start]) { continue; }
        enter(start);
        while (path.length > 0) {
            const node = path[path.length - 1];
            if (next[node] < from[node + 1]) {
                const end = to[next[node]++];
                if (!order[end]) { enter(end); } else if (!done[end] && order[end] < low[node]) { low[node] = order[end]; }
                continue;
            }
            path.pop();
            const above = path[path.length - 1];
            if (above !== undefined && low[node] < low[above]) { low[above] = low[node]; }
            if (low[node] !== order[node]) { continue; }
            for (let member = -1; member !== node;) {
                member = waiting.pop() as number;
                done[member] = 1;
                group[member] = groups;
            }
            groups += 1;
        }
    }
    return group;
}
