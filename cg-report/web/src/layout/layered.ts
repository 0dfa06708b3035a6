// Boxes in layers, joined by curves: what dagre makes of a graph.

import dagre from "@dagrejs/dagre";

export interface LayoutJob {
    kind: "layout";
    nodes: { id: string; width: number; height: number; group?: string }[];
    edges: { from: string; to: string; weight: number }[];
}

export interface Laid {
    width: number;
    height: number;
    nodes: Record<string, { x: number; y: number; width: number; height: number }>;
    /** For each edge of the job its points. */
    edges: { x: number; y: number }[][];
}

/** How much room there is beside a box for what leads back to it, and what stands there. */
const LOOP = 64;

/** A way from a box to itself, at its right side. */
function loop({ x, y, width, height }: Laid["nodes"][string]): { x: number; y: number }[] {
    const [right, far, up] = [x + width / 2, x + width / 2 + LOOP / 2, height / 3];
    return [{ x: right, y: y - up }, { x: far, y: y - 1.6 * up }, { x: far, y }, { x: far, y: y + 1.6 * up }, { x: right, y: y + up }];
}

export function layout({ nodes, edges }: LayoutJob): Laid {
    const groups = new Set(nodes.flatMap((node) => (node.group ? [node.group] : [])));
    const graph = new dagre.graphlib.Graph({ multigraph: true, compound: groups.size > 0 });
    graph.setGraph({ rankdir: "TB", nodesep: 24, ranksep: 52, marginx: 16, marginy: 16 });
    graph.setDefaultEdgeLabel(() => ({}));
    groups.forEach((group) => graph.setNode(`group ${group}`, {}));
    for (const { id, width, height, group } of nodes) {
        graph.setNode(id, { width, height });
        if (group) { graph.setParent(id, `group ${group}`); }
    }
    edges.forEach(({ from, to, weight }, at) => graph.setEdge(from, to, { weight, width: from === to ? LOOP : 0, height: 0 }, String(at)));
    dagre.layout(graph);
    const out: Laid = { width: graph.graph().width ?? 0, height: graph.graph().height ?? 0, nodes: {}, edges: [] };
    for (const id of graph.nodes()) {
        const { x, y, width, height } = graph.node(id);
        out.nodes[id] = { x, y, width, height };
    }
    edges.forEach(({ from, to }, at) => out.edges.push(from === to ? loop(out.nodes[from]) : graph.edge({ v: from, w: to, name: String(at) })?.points ?? []));
    return out;
}
