// Call paths as a table: each row a path, below it what is called there, or who calls; opened along the heaviest one at first.

import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { compact, digits, percent } from "../data/format.ts";
import { TOP, pathTo, type Tree } from "../layout/expand.ts";
import { keyOf, heaviest, treeOf, ways, wholes } from "../state/paths.ts";
import { active, activate, comparison, event, isDiff, model, panes, path, select, shownTotal, WHOLE } from "../state/store.ts";
import { openMenu } from "../ui/menu.tsx";
import { cost, Delta, Empty, Estimated, Loading, Name, Segments } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { wholeOf } from "../ui/tree.tsx";

const direction = signal<"down" | "up">("down");
const BUDGET = 20_000;

/** A row is a node; what is not expanded below a node is its number turned negative, less one. */
const restOf = (node: number) => -node - 2;

/** The rows of a tree of which some nodes are open, callers before callees. */
export function rowsOf(tree: Tree, open: ReadonlySet<number>): number[] {
    const rows: number[] = [];
    const waiting = [0];
    while (waiting.length > 0) {
        const row = waiting.pop() as number;
        rows.push(row);
        if (row < 0 || !open.has(row)) { continue; }
        if (tree.rest[0][row] > 0 && (tree.children[row].length > 0 || tree.restCount[row] > 0)) { waiting.push(restOf(row)); }
        waiting.push(...tree.children[row].slice().reverse());
    }
    return rows;
}

/** The root and the nodes of the heaviest path below it. */
function opened(tree: Tree): Set<number> {
    return new Set([0, ...heaviest(tree, 0.05)]);
}

export function CallTree() {
    const report = model();
    const root = active.value === WHOLE ? TOP : active.value;
    const up = direction.value === "up" && root !== TOP;
    const way = report.hasCalls ? ways(up) : undefined;
    const tree = useMemo(() => {
        if (!way) { return undefined; }
        return treeOf(way, root, { budget: BUDGET, least: Math.max(...wholes(way, root)) * 1e-4 });
    }, [keyOf(way), report.side, root, event.value, comparison.value, up]);
    const [state, setState] = useState<{ tree: Tree | undefined; open: ReadonlySet<number>; current: number }>({ tree: undefined, open: new Set(), current: 0 });
    const shown = tree && state.tree !== tree ? { tree, open: opened(tree), current: 0 } : state;
    const rows = useMemo(() => (tree ? rowsOf(tree, shown.open) : []), [tree, shown.open]);
    if (!report.hasCalls) {
        return <Empty title="This profile has no calls"><p>Call trees show call paths. Profiles made with <code>--tool=callgrind</code> have them.</p></Empty>;
    }
    if (!tree) { return <Loading />; }
    const node = (row: number) => (row >= 0 ? row : -row - 2);
    const diff = isDiff.value && comparison.value === "delta" && tree.cost.length > 1;
    const counted = tree.calls !== undefined;
    const name = (row: number) => {
        const f = tree.fn[node(row)];
        if (row < 0) { return <span class="muted">{tree.restCount[node(row)] > 0 ? `${digits(tree.restCount[node(row)])} more` : "more"}</span>; }
        return f < 0 ? <span>whole program</span> : <Name f={f} />;
    };
    const value = (row: number) => (row < 0 ? tree.rest[0][node(row)] : tree.cost[0][row]);
    const mark = (row: number) => (tree.exact[node(row)] ? "" : "\u2248\u2009");
    const of = (row: number) => (row < 0 ? shownTotal.value : wholeOf(tree, row, shownTotal.value));
    const choose = (row: number) => {
        setState({ ...shown, current: row });
        if (row >= 0 && tree.fn[row] >= 0) { select(tree.fn[row]); }
    };
    return (
        <div class="view">
            <div class="bar-tools">
                <Segments label="Direction" value={up ? "up" : "down"} onChange={(to) => { direction.value = to; }}
                    options={[["down", "Callees", "What is called below the active function"], ["up", "Callers", "Who calls the active function, and who calls those"]]} />
                <button type="button" class="quiet" title="Open the rows that take most" onClick={() => setState({ tree, open: opened(tree), current: 0 })}>Heaviest path</button>
                <button type="button" class="quiet" title="Close all rows" onClick={() => setState({ tree, open: new Set(), current: 0 })}>Close all</button>
                <Estimated exact={tree.exact.every(Boolean)} />
                <span class="grow" />
                {!up && <button type="button" class="quiet" title="Show the chosen path in the flame graph" onClick={() => {
                    if (shown.current >= 0) { path.value = pathTo(tree, shown.current); }
                    panes.value = [panes.value[0], "flame"];
                }}>In flame graph</button>}
            </div>
            <Table label="Call tree" rows={rows} selected={shown.current}
                tree={(row) => ({ level: tree.depth[node(row)] + (row < 0 ? 1 : 0),
                    open: row >= 0 && (tree.children[row].length > 0 || tree.restCount[row] > 0) ? shown.open.has(row) : undefined })}
                onToggle={(row) => {
                    const open = new Set(shown.open);
                    if (!open.delete(row)) { open.add(row); }
                    setState({ ...shown, open });
                }}
                onSelect={choose} onActivate={(row) => { if (row >= 0 && tree.fn[row] >= 0) { activate(tree.fn[row]); } }}
                onMenu={(row, x, y) => { if (tree.fn[node(row)] >= 0) { openMenu(tree.fn[node(row)], x, y); } }}
                columns={[
                    { id: "name", title: up ? "Called by" : "Function", text: true, least: 240, cell: name,
                        full: (row) => (tree.fn[node(row)] < 0 ? "" : pathTo(tree, node(row)).map((f) => report.names[f]).join(up ? "\n\u2190 " : "\n\u2192 ")) },
                    { id: "incl", title: up ? "Cost" : "Incl.", width: 104, hint: up ? "What of the active function's cost came this way" : "Cost with all that is called there",
                        cell: (row) => `${mark(row)}${cost(value(row), of(row))}`, bar: (row) => value(row) / (tree.cost[0][0] || 1),
                        full: (row) => `${digits(Math.round(value(row)))} ${event.value.name}, ${percent(value(row), shownTotal.value)} % of the program` },
                    ...(up ? [] : [{ id: "self", title: "Self", width: 104, hint: "Cost without what is called there",
                        cell: (row: number) => (row < 0 ? "" : `${mark(row)}${cost(tree.own[0][row], of(row))}`),
                        full: (row: number) => (row < 0 ? "" : digits(Math.round(tree.own[0][row]))) }]),
                    ...(diff ? [{ id: "delta", title: "\u0394", width: 88, cell: (row: number) => (row < 0
                        ? <Delta now={tree.rest[0][node(row)]} before={tree.rest[1][node(row)]} /> : <Delta now={tree.cost[0][row]} before={tree.cost[1][row]} />) }] : []),
                    ...(counted ? [{ id: "calls", title: "Calls", width: 76, hint: up ? "Calls of the active function that came this way" : "How often it was called there",
                        cell: (row: number) => (row < 0 ? "" : compact(tree.calls?.[0][row] ?? 0)), full: (row: number) => (row < 0 ? "" : digits(tree.calls?.[0][row] ?? 0)) }] : []),
                ]}
                footer={<span>{digits(rows.length)} rows{counted && tree.exact.every(Boolean) ? ", exact: whole chains of calls were recorded" : ""}</span>} />
        </div>
    );
}
