// Small multiples: the same flame graph of each part, thread, process or file, beside one another. All have one scale, so that the same
// width is the same cost in each of them, and one order and colour of functions.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { digits, percent } from "../data/format.ts";
import type { Model } from "../data/model.ts";
import type { PartGroup } from "../data/partnames.ts";
import { TOP, type Tree } from "../layout/expand.ts";
import { totalOf } from "../state/events.ts";
import { heaviest, keyOf, treeOf, ways, wholes } from "../state/paths.ts";
import { active, activate, choose, event, model, modelOf, select, selected, short, WHOLE } from "../state/store.ts";
import { FONT, fitted, prepare, useSize } from "../ui/canvas.ts";
import { colouring, colourOf, isDark, styleColour } from "../ui/colours.ts";
import { Empty, Estimated, Loading } from "../ui/parts.tsx";
import { place, type Cell } from "./flame.tsx";

const ROW = 15;
const BUDGET = 600;
/** More levels than anybody tells apart in a small picture. */
const LEVELS = 14;
/** More pictures say nothing together. */
const MOST = 36;

/** Names of functions where each node has the same order of its callees, so that pictures are alike. */
function inOrder(tree: Tree, report: Model): Tree {
    const rank = (node: number) => (tree.fn[node] < 0 ? "" : report.names[tree.fn[node]]);
    return { ...tree, children: tree.children.map((list) => list.slice().sort((a, b) => (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : tree.fn[a] - tree.fn[b]))) };
}

export function Multiples({ groups, left }: { groups: PartGroup[]; left: number }) {
    const report = model();
    const shown = groups.slice(0, MOST);
    const root = active.value === WHOLE ? TOP : active.value;
    const models = shown.map(({ parts }) => modelOf(parts));
    const found = models.map((one) => one && (report.hasCalls ? ways(false, [one.side], totalOf(one, one.side, event.value)) : undefined));
    const trees = useMemo(() => found.map((way) => {
        if (!way) { return undefined; }
        return inOrder(treeOf(way, root, { budget: BUDGET, least: wholes(way, root)[0] / 400, depth: LEVELS }), report);
    }), [found.map(keyOf).length, ...found.map(keyOf), root, event.value, report]);
    if (!report.hasCalls) {
        return <Empty title="This profile has no calls"><p>Flame graphs show call paths. Profiles made with <code>--tool=callgrind</code> have them.</p></Empty>;
    }
    if (trees.some((tree) => tree === undefined)) { return <Loading />; }
    const known = trees as Tree[];
    const largest = Math.max(...known.map((tree) => tree.cost[0][0]), 0);
    const whole = known.reduce((sum, tree) => sum + tree.cost[0][0], 0);
    const levels = Math.min(LEVELS, Math.max(...known.map((tree) => tree.deepest), 0)) + 1;
    return (
        <div class="multiples-view">
            <p class="muted">
                {root === TOP ? "Call paths from the top" : <>What <b>{report.name(root, short.value)}</b> calls</>}, one scale for all: the widest has {digits(Math.round(largest))} {event.value.name}.
                {" "}<Estimated exact={known.every((tree) => tree.exact.every(Boolean))} />
            </p>
            <div class="multiples" role="list" aria-label="Small flame graphs">
                {known.map((tree, at) => <Small key={shown[at].name} tree={tree} group={shown[at]} largest={largest} whole={whole} levels={levels} report={report} />)}
            </div>
            {left + groups.length - shown.length > 0 && <p class="muted">{digits(left + groups.length - shown.length)} more: choose fewer parts above to see them.</p>}
        </div>
    );
}

function Small({ tree, group, largest, whole, levels, report }: { tree: Tree; group: PartGroup; largest: number; whole: number; levels: number; report: Model }) {
    const { ref, width } = useSize<HTMLDivElement>();
    const canvas = useRef<HTMLCanvasElement>(null);
    const cells = useMemo(() => place(tree, 0, 0), [tree]);
    const scale = largest > 0 ? tree.cost[0][0] / largest : 0;
    const tall = levels * ROW;
    useEffect(() => {
        const paint = canvas.current && prepare(canvas.current, width, tall);
        if (!paint) { return; }
        paint.font = FONT.replace("12px", "10px");
        paint.textBaseline = "middle";
        const [ink, accent, faint] = [styleColour("--ink"), styleColour("--accent"), styleColour("--line-strong")];
        for (const cell of cells) {
            const [x, size] = [cell.x * scale * width, cell.width * scale * width];
            if (cell.row >= levels || size < 0.4) { continue; }
            const f = tree.fn[cell.node];
            const y = cell.row * ROW;
            paint.fillStyle = cell.more ? faint : colourOf(f, colouring.value === "ratio" || colouring.value === "delta" ? "space" : colouring.value);
            paint.globalAlpha = cell.more ? 0.35 : 1;
            paint.fillRect(x, y, Math.max(0.5, size - (size > 3 ? 1 : 0)), ROW - 1);
            paint.globalAlpha = 1;
            if (cell.more) { continue; }
            const fit = fitted(paint, f < 0 ? "whole program" : report.name(f, short.value), size - 6);
            paint.fillStyle = ink;
            if (fit) { paint.fillText(fit, x + 3, y + ROW / 2); }
            if (f >= 0 && f === selected.value) {
                paint.strokeStyle = accent;
                paint.lineWidth = 2;
                paint.strokeRect(x + 1, y + 1, Math.max(1, size - 3), ROW - 3);
            }
        }
    }, [cells, width, tall, scale, selected.value, isDark.value, short.value, colouring.value]);
    const at = (mouse: MouseEvent): Cell | undefined => {
        const box = canvas.current?.getBoundingClientRect();
        if (!box || scale === 0) { return undefined; }
        const [x, row] = [(mouse.clientX - box.left) / width / scale, Math.floor((mouse.clientY - box.top) / ROW)];
        return cells.find((cell) => !cell.more && cell.row === row && cell.x <= x && x < cell.x + cell.width);
    };
    const path = heaviest(tree, 0.05).map((node) => report.name(tree.fn[node], true));
    const cost = tree.cost[0][0];
    const told = `${group.name}: ${digits(Math.round(cost))} ${event.value.name}, ${percent(cost, whole)} %`;
    return (
        <figure role="listitem">
            <figcaption>
                <button type="button" class="link" title={`${told}\nShow it alone, in all views`} onClick={() => choose(group.parts)}>{group.name}</button>
                <span class="muted number">{percent(cost, whole)} %</span>
            </figcaption>
            <div ref={ref} class="small-picture" role="img" aria-label={`${told}; heaviest path: ${path.join(", ")}`} style={{ height: `${tall}px` }}
                onMouseMove={(move) => {
                    const cell = at(move);
                    const f = cell ? tree.fn[cell.node] : -1;
                    move.currentTarget.title = cell ? `${f < 0 ? group.name : report.names[f]}\n${tree.exact[cell.node] ? "" : "\u2248\u2009"}${digits(Math.round(tree.cost[0][cell.node]))} ${event.value.name}, ${percent(tree.cost[0][cell.node], cost)} % of ${group.name}` : "";
                }}
                onClick={(click) => { const cell = at(click); if (cell && tree.fn[cell.node] >= 0) { select(tree.fn[cell.node]); } }}
                onDblClick={(click) => { const cell = at(click); if (cell && tree.fn[cell.node] >= 0) { activate(tree.fn[cell.node]); } }}>
                <canvas ref={canvas} aria-hidden="true" />
            </div>
        </figure>
    );
}
