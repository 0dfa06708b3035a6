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
    edges.forEach(({ from, to, weight }, at) => graph.setEdge(from, to, { weight }, String(at)));
    dagre.layout(graph);
    const out: Laid = { width: graph.graph().width ?? 0, height: graph.graph().height ?? 0, nodes: {}, edges: [] };
    for (const id of graph.nodes()) {
        const { x, y, width, height } = graph.node(id);
        out.nodes[id] = { x, y, width, height };
    }
    edges.forEach(({ from, to }, at) => out.edges.push(graph.edge({ v: from, w: to, name: String(at) })?.points ?? []));
    return out;
}
