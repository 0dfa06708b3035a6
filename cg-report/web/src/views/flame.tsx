// V3: call paths as stacked cells, whose widths are costs.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { digits, percent, signed } from "../data/format.ts";
import { nodeAt, pathTo, TOP, type Tree } from "../layout/expand.ts";
import { costs, isRatio, parts } from "../state/events.ts";
import { keyOf, treeOf, ways, wholes } from "../state/paths.ts";
import { active, activate, baseTotal, comparison, event, found, isDiff, model, numbering, path, second, select, selected, shareOf, short, total, shownTotal, WHOLE } from "../state/store.ts";
import { FONT, fits, fitted, hatch, LEAST, prepare, useSize } from "../ui/canvas.ts";
import { colouring, coloursBy, deltaColour, heatColour, isDark, styleColour, type Colouring } from "../ui/colours.ts";
import { exporters, save, savePng } from "../ui/exports.ts";
import { openMenu } from "../ui/menu.tsx";
import { Empty, Estimated, Loading, Segments } from "../ui/parts.tsx";
import { Parallel, step, wholeOf } from "../ui/tree.tsx";
import { useWithin } from "../ui/within.ts";

type Direction = "down" | "up" | "both";
const direction = signal<Direction>("down");
const upright = signal(false);
const width = signal<"new" | "base">("new");

const ROW = 20;
const BUDGET = 4000;

/** A cell: a node of the tree, or with `more` what is not expanded below one. */
export interface Cell {
    node: number;
    x: number;
    width: number;
    row: number;
    more: boolean;
    gone: boolean;
}

/** Places cells; x and width are shares of the root that is shown. */
export function place(tree: Tree, root: number, which: number): Cell[] {
    const cells: Cell[] = [];
    const whole = tree.cost[which][root];
    const depth = tree.depth[root];
    for (let at = tree.parent[root]; at >= 0; at = tree.parent[at]) {
        cells.push({ node: at, x: 0, width: 1, row: tree.depth[at], more: false, gone: false });
    }
    const waiting: [number, number][] = [[root, 0]];
    while (waiting.length > 0) {
        const [node, x] = waiting.pop() as [number, number];
        cells.push({ node, x, width: whole > 0 ? tree.cost[which][node] / whole : node === root ? 1 : 0, row: tree.depth[node], more: false, gone: false });
        let next = x;
        for (const child of tree.children[node]) {
            waiting.push([child, next]);
            next += whole > 0 ? tree.cost[which][child] / whole : 0;
        }
        if (tree.rest[which][node] > 0 && whole > 0) {
            cells.push({ node, x: next, width: tree.rest[which][node] / whole, row: tree.depth[node] + 1, more: true, gone: false });
            next += tree.rest[which][node] / whole;
        }
        // What the other side had here and this one has not stays in sight, within what the node keeps.
        const other = 1 - which;
        const lost = tree.cost.length > 1 ? tree.children[node].filter((child) => tree.cost[which][child] === 0 && tree.cost[other][child] > 0) : [];
        if (lost.length > 0 && whole > 0) {
            const room = x + tree.cost[which][node] / whole - next;
            const wanted = lost.reduce((sum, child) => sum + tree.cost[other][child], 0) / whole;
            const scale = Math.min(1, room / Math.max(wanted, 1e-12));
            for (const child of lost) {
                const size = (tree.cost[other][child] / whole) * scale;
                cells.push({ node: child, x: next, width: size, row: tree.depth[child], more: false, gone: true });
                next += size;
            }
        }
    }
    void depth;
    return cells;
}

function Chart({ tree, root, flip, label, onZoom, offset }: { tree: Tree; root: number; flip: boolean; label: string;
    onZoom: (node: number) => void; offset?: boolean }) {
    const { ref, width: across, height } = useSize<HTMLDivElement>();
    const canvas = useRef<HTMLCanvasElement>(null);
    const [top, setTop] = useState(0);
    const [range, setRange] = useState<[number, number]>([0, 1]);
    const [hover, setHover] = useState<{ cell: Cell; x: number; y: number } | null>(null);
    const drag = useRef<{ x: number; range: [number, number]; moved: boolean } | null>(null);
    const which = isDiff.value && width.value === "base" ? 1 : 0;
    const cells = useMemo(() => place(tree, root, which), [tree, root, which]);
    const [current, setCurrent] = useWithin(cells, root);
    const rows = tree.deepest + 2;
    const tall = Math.max(rows * ROW, height - 2);
    useEffect(() => {
        setRange([0, 1]);
        if (ref.current) { ref.current.scrollTop = flip ? ref.current.scrollHeight : 0; }
    }, [tree, root, flip]);
    useEffect(() => {
        if (flip && ref.current) { ref.current.scrollTop = ref.current.scrollHeight; }
    }, [height, tall]);

    const more = second.value;
    const rated = colouring.value === "ratio" && more ? parts(model().side, "fn.self", more) : undefined;
    const ratioOf = rated && [rated.over, rated.under ?? costs(model().side, "fn.self", event.value)?.values];
    const most = ratioOf?.[0] && ratioOf[1] ? Math.max(...tree.fn.slice(0, 2000).map((f) => (f >= 0 && (ratioOf[1]?.[f] ?? 0) > 0 ? (ratioOf[0]?.[f] ?? 0) / (ratioOf[1]?.[f] ?? 1) : 0)), 1e-12) : 1;
    const yOf = (row: number) => (flip ? tall - (row + 1) * ROW : row * ROW) - top;
    const xOf = (x: number) => ((x - range[0]) / (range[1] - range[0])) * across;

    useEffect(() => {
        const paint = canvas.current && prepare(canvas.current, across, height);
        if (!paint) { return; }
        const ink = styleColour("--ink");
        const faint = styleColour("--muted");
        const border = styleColour("--panel");
        const accent = styleColour("--accent");
        const strong = styleColour("--line-strong");
        const mask = found.value;
        const plain = coloursBy(colouring.value);
        const [shorten, of] = [short.value, which === 1 ? baseTotal.value : shownTotal.value];
        paint.font = FONT;
        paint.textBaseline = "middle";
        for (const cell of cells) {
            const y = yOf(cell.row);
            const x = xOf(cell.x);
            const size = xOf(cell.x + cell.width) - x;
            if (y + ROW < 0 || y > height || size < 0.5 || x > across || x + size < 0) { continue; }
            const f = tree.fn[cell.node];
            const [left, right] = [Math.max(0, x), Math.min(across, x + size)];
            if (cell.more || cell.gone) {
                const line = right - left < 8 ? strong : faint;
                hatch(paint, left, y, right - left - 1, ROW - 1, line);
                paint.strokeStyle = line;
                paint.strokeRect(left + 0.5, y + 0.5, Math.max(0, right - left - 2), ROW - 2);
                const text = cell.gone ? `gone: ${model().name(f, short.value)}` : tree.restCount[cell.node] > 0 ? `${digits(tree.restCount[cell.node])} more` : "";
                const fit = fitted(paint, text, right - left - 8);
                if (fit) {
                    paint.fillStyle = border;
                    paint.fillRect(left + 3, y + 3, paint.measureText(fit).width + 4, ROW - 7);
                    paint.fillStyle = ink;
                    paint.fillText(fit, left + 5, y + ROW / 2);
                }
                continue;
            }
            const above = tree.depth[cell.node] < tree.depth[root];
            paint.globalAlpha = (mask && f >= 0 && mask[f] === 0) || above ? 0.4 : 1;
            paint.fillStyle = colour(f, cell.node);
            paint.fillRect(left, y, Math.max(0.5, right - left - (size > 3 ? 1 : 0)), ROW - 1);
            if (isDiff.value && colouring.value === "delta" && tree.cost.length > 1 && size > 6 && tree.cost[0][cell.node] > tree.cost[1][cell.node] * 1.0001) {
                // Growth has a pattern, too.
                paint.fillStyle = accent;
                paint.fillRect(left, y, right - left - 1, 2);
            }
            const room = right - left - 9;
            if (room >= LEAST) {
                const name = f < 0 ? "whole program" : model().name(f, shorten);
                const share = tree.cost[which][cell.node] / wholeOf(tree, cell.node, of, which);
                const text = `${name}  ${tree.exact[cell.node] ? "" : "\u2248\u2009"}${percent(share, 1)} %`;
                paint.fillStyle = ink;
                const fit = fitted(paint, fits(paint, text, room) ? text : name, room);
                if (fit) { paint.fillText(fit, left + 4, y + ROW / 2); }
            }
            paint.globalAlpha = 1;
            if (cell.node === current || (f >= 0 && f === selected.value)) {
                paint.strokeStyle = accent;
                paint.lineWidth = cell.node === current ? 2 : 1;
                paint.strokeRect(left + 1, y + 1, Math.max(1, right - left - 3), ROW - 3);
            }
        }
        function colour(f: number, node: number): string {
            if (colouring.value === "delta" && tree.cost.length > 1) {
                return deltaColour(((tree.cost[0][node] - tree.cost[1][node]) / Math.max(total.value, baseTotal.value, 1)) * 8);
            }
            if (colouring.value === "ratio" && ratioOf?.[0] && ratioOf[1]) {
                return f >= 0 && ratioOf[1][f] > 0 ? heatColour(ratioOf[0][f] / ratioOf[1][f] / most) : heatColour(0);
            }
            return plain(f);
        }
    }, [cells, across, height, top, range, current, selected.value, found.value, isDark.value, colouring.value, short.value, event.value, flip, numbering.value, ratioOf?.[0]]);

    const at = (mouse: MouseEvent): Cell | undefined => {
        const box = canvas.current?.getBoundingClientRect();
        if (!box) { return undefined; }
        const x = (mouse.clientX - box.left) / across * (range[1] - range[0]) + range[0];
        const y = mouse.clientY - box.top + top;
        const row = Math.floor(flip ? (tall - y) / ROW : y / ROW);
        return cells.find((cell) => cell.row === row && cell.x <= x && x < cell.x + cell.width && cell.width > 0);
    };
    const zoom = (factor: number, centre: number) => {
        const span = Math.min(1, Math.max(1e-7, (range[1] - range[0]) * factor));
        const start = Math.max(0, Math.min(1 - span, centre - (centre - range[0]) * (span / (range[1] - range[0]))));
        setRange([start, start + span]);
    };
    const choose = (node: number) => {
        setCurrent(node);
        if (tree.fn[node] >= 0) { select(tree.fn[node]); }
        const y = yOf(tree.depth[node]);
        if (ref.current && (y < 0 || y + ROW > height)) { ref.current.scrollTop += y < 0 ? y : y + ROW - height; }
    };
    const onKey = (key: KeyboardEvent) => {
        if (key.ctrlKey || key.metaKey || key.altKey) { return; }
        const to = step(tree, current, key.key, !flip);
        if (to !== undefined) {
            choose(to);
        } else if (key.key === "Enter") {
            if (key.shiftKey && tree.fn[current] >= 0) { activate(tree.fn[current]); } else { onZoom(current); }
        } else if (key.key === "Escape" && (root !== 0 || range[1] - range[0] < 1)) {
            if (range[1] - range[0] < 1) { setRange([0, 1]); } else { onZoom(tree.parent[root]); }
        } else if (key.key === "+" || key.key === "-") {
            zoom(key.key === "+" ? 0.67 : 1.5, (range[0] + range[1]) / 2);
        } else if (key.key === "0") {
            setRange([0, 1]);
        } else if (!key.key.startsWith("Arrow")) {
            return;
        }
        key.preventDefault();
        key.stopPropagation();
    };
    const id = `flame-${label.toLowerCase().replace(/[^a-z]+/g, "-")}`;
    return (
        <div class={`chart${offset ? " offset" : ""}`}>
            <div class="scroll picture" ref={ref} tabIndex={0} role="application" aria-roledescription="flame graph" aria-label={label}
                aria-activedescendant={`${id}-${current}`} aria-owns={id} onKeyDown={onKey}
                onScroll={(scroll) => setTop(scroll.currentTarget.scrollTop)}
                onWheel={(wheel) => {
                    if (!wheel.ctrlKey && !wheel.metaKey) { return; }
                    wheel.preventDefault();
                    const box = wheel.currentTarget.getBoundingClientRect();
                    zoom(wheel.deltaY > 0 ? 1.25 : 0.8, range[0] + ((wheel.clientX - box.left) / across) * (range[1] - range[0]));
                }}
                onMouseDown={(press) => { drag.current = { x: press.clientX, range, moved: false }; }}
                onMouseMove={(move) => {
                    const held = drag.current;
                    if (held && (move.buttons & 1) !== 0 && range[1] - range[0] < 1) {
                        const span = held.range[1] - held.range[0];
                        const start = Math.max(0, Math.min(1 - span, held.range[0] - ((move.clientX - held.x) / across) * span));
                        held.moved ||= Math.abs(move.clientX - held.x) > 3;
                        setRange([start, start + span]);
                        setHover(null);
                        return;
                    }
                    const cell = at(move);
                    const box = move.currentTarget.getBoundingClientRect();
                    setHover(cell ? { cell, x: move.clientX - box.left, y: move.clientY - box.top } : null);
                }}
                onMouseLeave={() => setHover(null)}
                onClick={(click) => {
                    if (drag.current?.moved) { return; }
                    const cell = at(click);
                    if (cell) { choose(cell.node); }
                }}
                onDblClick={(click) => {
                    const cell = at(click);
                    if (cell && !cell.gone) { onZoom(cell.node); }
                }}
                onContextMenu={(click) => {
                    const cell = at(click);
                    if (cell && tree.fn[cell.node] >= 0) {
                        click.preventDefault();
                        choose(cell.node);
                        openMenu(tree.fn[cell.node], click.clientX, click.clientY);
                    }
                }}>
                <canvas ref={canvas} aria-hidden="true" />
                <div style={{ height: `${Math.max(0, tall - height)}px` }} />
            </div>
            {hover && <Tip tree={tree} cell={hover.cell} x={hover.x} y={hover.y} width={across} height={height} />}
            <Parallel tree={tree} current={current} label={label} id={id} />
        </div>
    );
}

/** What a cell is about. */
export function Tip({ tree, cell, x, y, width: across, height }: { tree: Tree; cell: { node: number; more: boolean }; x: number; y: number; width: number; height: number }) {
    const f = tree.fn[cell.node];
    const cost = cell.more ? tree.rest[0][cell.node] : tree.cost[0][cell.node];
    const about = tree.exact[cell.node] && !cell.more ? "" : "\u2248\u2009";
    // What is not expanded is part of the node itself.
    const whole = cell.more ? shareOf(shownTotal.value, tree.cost[0][cell.node]) : wholeOf(tree, cell.node, shownTotal.value);
    return (
        <div class="tip" style={{ left: `${Math.max(4, Math.min(x + 14, across - 390))}px`, top: y > height / 2 ? "auto" : `${y + 18}px`,
            bottom: y > height / 2 ? `${height - y + 14}px` : "auto" }}>
            <strong>{cell.more ? `${digits(tree.restCount[cell.node])} more below ${f < 0 ? "the program" : model().names[f]}` : f < 0 ? "whole program" : model().names[f]}</strong>
            {f >= 0 && <span class="muted">{model().file(f)} {"\u00b7"} {model().object(f)}</span>}
            <span>{about}{digits(Math.round(cost))} {event.value.name}, {about}{percent(cost, whole)} %</span>
            {!cell.more && <span>self {about}{digits(Math.round(tree.own[0][cell.node]))}, {percent(tree.own[0][cell.node], whole)} %</span>}
            {tree.cost.length > 1 && !cell.more && <span>base {about}{digits(Math.round(tree.cost[1][cell.node]))}, {"\u0394"} {signed(Math.round(cost - tree.cost[1][cell.node]))}</span>}
        </div>
    );
}

/** The tree below or above the active function. */
export function useTree(up: boolean, wanted: boolean, pixels: number, along: readonly number[], budget = BUDGET): Tree | undefined {
    const way = wanted ? ways(up) : undefined;
    const root = active.value === WHOLE ? TOP : active.value;
    return useMemo(() => {
        if (!way) { return undefined; }
        let size = Math.max(...wholes(way, root));
        if (along.length > 0) {
            const led = treeOf(way, root, { budget: along.length + 2, least: 0, along });
            const node = nodeAt(led, along);
            size = Math.max(...led.cost.map((cost) => cost[node]));
        }
        return treeOf(way, root, { budget, least: (size * 0.5) / Math.max(300, pixels), along });
    }, [keyOf(way), model().side, root, event.value, comparison.value, up, pixels, along, budget]);
}

export function Flame() {
    const report = model();
    const up = direction.value === "up" || direction.value === "both";
    const down = direction.value === "down" || direction.value === "both";
    const both = direction.value === "both";
    const along = direction.value === "down" ? path.value : NONE;
    const [upAlong, setUpAlong] = useWithin<readonly number[]>(`${active.value} ${direction.value}`, NONE);
    const pixels = 1400;
    const inverted = active.value !== WHOLE && up;
    const below = useTree(false, report.hasCalls && (down || active.value === WHOLE), pixels, along);
    const above = useTree(true, report.hasCalls && inverted, pixels, upAlong);
    if (!report.hasCalls) {
        return <Empty title="This profile has no calls"><p>Flame graphs show call paths. Profiles made with <code>--tool=callgrind</code> have them.</p></Empty>;
    }
    if ((down || active.value === WHOLE) && !below || inverted && !above) { return <Loading />; }
    const exact = (tree: Tree | undefined) => !tree || tree.exact.every(Boolean);
    const bar = (
        <div class="bar-tools">
            <Segments label="Direction" value={active.value === WHOLE ? "down" : direction.value} onChange={(value) => { direction.value = value; }}
                options={[["down", "Callees", "What the active function calls"], ["up", "Callers", "What calls it, inverted"], ["both", "Both", "Callers above, callees below"]]} />
            <Segments label="Orientation" value={upright.value ? "flame" : "icicle"} onChange={(value) => { upright.value = value === "flame"; }}
                options={[["icicle", "Icicle"], ["flame", "Flame"]]} />
            <ColourChoice />
            {isDiff.value && comparison.value === "delta" && <Segments label="Width" value={width.value} onChange={(value) => { width.value = value; }} options={[["new", "New", "Widths are costs of the new profile"], ["base", "Base", "Widths are costs of the base"]]} />}
            <Estimated exact={exact(below) && exact(above)} />
            <span class="grow" />
            {along.length + upAlong.length > 0 && <button type="button" class="quiet" onClick={() => { path.value = []; setUpAlong(NONE); }}>Reset zoom</button>}
            <button type="button" class="quiet" title="Save call paths as folded stacks" onClick={() => save("stacks.folded", new Blob([exporters.folded(active.value)], { type: "text/plain" }))}>Folded</button>
            <button type="button" class="quiet" title="Save call paths for speedscope" onClick={() => save("profile.speedscope.json", new Blob([exporters.speedscope(active.value)], { type: "application/json" }))}>speedscope</button>
            <button type="button" class="quiet" title="Save this picture" onClick={(click) => savePng(click.currentTarget.closest(".view")?.querySelector("canvas"), "flame.png")}>PNG</button>
        </div>
    );
    return (
        <div class="view">
            {bar}
            <div class={`charts${both && inverted ? " both" : ""}`}>
                {inverted && above && <Chart tree={above} root={nodeAt(above, upAlong)} flip={both ? true : upright.value} label="Callers"
                    onZoom={(node) => setUpAlong(node < 0 ? NONE : pathTo(above, node))} />}
                {(down || !inverted) && below && <Chart tree={below} root={nodeAt(below, along)} flip={!both && upright.value} label="Callees"
                    onZoom={(node) => { path.value = node < 0 ? [] : pathTo(below, node); if (both) { direction.value = "down"; } }} />}
            </div>
        </div>
    );
}

const NONE: readonly number[] = [];

export function ColourChoice() {
    const more = second.value;
    return (
        <label class="choice">Colour <select value={colouring.value} onChange={(change) => { colouring.value = change.currentTarget.value as Colouring; }}>
            <option value="space">class, namespace</option><option value="object">object</option><option value="file">file</option>
            {more && <option value="ratio">{isRatio(more) ? more.name : `${more.name} / ${event.value.name}`}</option>}
            {isDiff.value && <option value="delta">{"\u0394"}</option>}
        </select></label>
    );
}
