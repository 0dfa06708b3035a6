// V5: call paths as nested rectangles. The area that a rectangle keeps beside its parts is self cost within that path, so
// that areas add up.

import { signal } from "@preact/signals";
import { hierarchy, treemap, treemapSquarify, type HierarchyRectangularNode } from "d3-hierarchy";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { percent } from "../data/format.ts";
import type { Tree } from "../layout/expand.ts";
import { active, activate, baseTotal, found, isDiff, model, numbering, select, selected, short, total, shownTotal, WHOLE } from "../state/store.ts";
import { FONT, fits, fitted, hatch, prepare, useSize } from "../ui/canvas.ts";
import { colouring, colourOf, deltaColour, isDark, styleColour } from "../ui/colours.ts";
import { savePng } from "../ui/exports.ts";
import { openMenu } from "../ui/menu.tsx";
import { Empty, Estimated, Loading, Segments, Slider } from "../ui/parts.tsx";
import { Parallel, step, wholeOf } from "../ui/tree.tsx";
import { useWithin } from "../ui/within.ts";
import { ColourChoice, Tip, useTree } from "./flame.tsx";

const kind = signal<"callees" | "callers">("callees");
const depth = signal(12);
const HEADER = 17;

interface Datum {
    node: number;
    /** Self cost, or what is not expanded; only leaves have a size. */
    size: number;
    rest: boolean;
    children?: Datum[];
}

/** The tree as nested data: self cost is a leaf without a picture, so that it keeps its area. */
function dataOf(tree: Tree, limit: number): Datum {
    const make = (node: number): Datum => ({ node, size: 0, rest: false });
    const root = make(0);
    const waiting = [root];
    while (waiting.length > 0) {
        const datum = waiting.pop() as Datum;
        const { node } = datum;
        const nested = tree.depth[node] < limit ? tree.children[node] : [];
        if (nested.length === 0) {
            // Too small to be taken apart, or too deep.
            datum.size = tree.cost[0][node];
            continue;
        }
        datum.children = nested.map(make);
        waiting.push(...datum.children);
        if (tree.rest[0][node] > 0) { datum.children.push({ node, size: tree.rest[0][node], rest: true }); }
        if (tree.own[0][node] > 0) { datum.children.push({ node: -1, size: tree.own[0][node], rest: false }); }
    }
    return root;
}

export function Treemap() {
    const report = model();
    const callers = kind.value === "callers" && active.value !== WHOLE;
    const { ref, width, height } = useSize<HTMLDivElement>();
    const canvas = useRef<HTMLCanvasElement>(null);
    const [hover, setHover] = useState<{ node: number; rest: boolean; x: number; y: number } | null>(null);
    const tree = useTree(callers, report.hasCalls, 1200, NONE, 2500);
    const [current, setCurrent] = useWithin(tree, 0);
    const laid = useMemo(() => {
        if (!tree || width < 20 || height < 20) { return []; }
        const root = hierarchy(dataOf(tree, depth.value)).sum((datum) => datum.size);
        const squares = treemap<Datum>().tile(treemapSquarify).size([width, height]).paddingInner(1).paddingOuter(2)
            .paddingTop((node) => (node.x1 - node.x0 > 30 && node.y1 - node.y0 > HEADER * 1.8 ? HEADER : 2));
        return squares(root).descendants();
    }, [tree, width, height, depth.value]);

    useEffect(() => {
        const paint = canvas.current && prepare(canvas.current, width, height);
        if (!paint || !tree) { return; }
        const ink = styleColour("--ink");
        const panel = styleColour("--panel");
        const line = styleColour("--line-strong");
        const accent = styleColour("--accent");
        const mask = found.value;
        paint.font = FONT;
        paint.textBaseline = "middle";
        for (const box of laid) {
            const { node, rest } = box.data;
            const [across, down] = [box.x1 - box.x0, box.y1 - box.y0];
            if (node < 0 || across < 1 || down < 1) { continue; }
            const f = tree.fn[node];
            paint.globalAlpha = mask && f >= 0 && mask[f] === 0 ? 0.35 : 1;
            if (rest) {
                hatch(paint, box.x0, box.y0, across, down, line);
                continue;
            }
            paint.fillStyle = colouring.value === "delta" && tree.cost.length > 1
                ? deltaColour(((tree.cost[0][node] - tree.cost[1][node]) / Math.max(total.value, baseTotal.value, 1)) * 8)
                : colourOf(f, colouring.value === "ratio" ? "space" : colouring.value);
            paint.fillRect(box.x0, box.y0, across, down);
            paint.strokeStyle = line;
            paint.lineWidth = 0.6;
            paint.strokeRect(box.x0 + 0.3, box.y0 + 0.3, across - 0.6, down - 0.6);
            if (down >= 13 && across > 24) {
                const name = f < 0 ? "whole program" : report.name(f, short.value);
                const share = `${tree.exact[node] ? "" : "\u2248\u2009"}${percent(tree.cost[0][node], wholeOf(tree, node, shownTotal.value))} %`;
                const text = `${name}  ${share}`;
                const fit = fitted(paint, fits(paint, text, across - 8) ? text : name, across - 8);
                paint.fillStyle = ink;
                const y = box.children ? box.y0 + HEADER / 2 + 1 : box.y0 + Math.min(down / 2, 9);
                if (!box.children || down > HEADER * 1.8) { paint.fillText(fit, box.x0 + 4, y); }
            }
            paint.globalAlpha = 1;
        }
        for (const box of laid) {
            const { node, rest } = box.data;
            if (node < 0 || rest || !(node === current || (selected.value >= 0 && tree.fn[node] === selected.value))) { continue; }
            if (node !== 0) {
                // The ring stands out of boxes of its own colour.
                paint.strokeStyle = panel;
                paint.lineWidth = 4;
                paint.strokeRect(box.x0 + 1.5, box.y0 + 1.5, Math.max(1, box.x1 - box.x0 - 3), Math.max(1, box.y1 - box.y0 - 3));
            }
            paint.strokeStyle = accent;
            paint.lineWidth = node === 0 ? 1.5 : node === current ? 2.5 : 1.5;
            paint.strokeRect(box.x0 + 1.5, box.y0 + 1.5, Math.max(1, box.x1 - box.x0 - 3), Math.max(1, box.y1 - box.y0 - 3));
        }
    }, [laid, current, selected.value, found.value, isDark.value, colouring.value, short.value, numbering.value]);

    if (!report.hasCalls) {
        return <Empty title="This profile has no calls"><p>Treemaps show what functions call. Profiles made with <code>--tool=callgrind</code> have calls.</p></Empty>;
    }
    const at = (mouse: MouseEvent): HierarchyRectangularNode<Datum> | undefined => {
        const frame = canvas.current?.getBoundingClientRect();
        if (!frame) { return undefined; }
        const [x, y] = [mouse.clientX - frame.left, mouse.clientY - frame.top];
        let best: HierarchyRectangularNode<Datum> | undefined;
        for (const box of laid) {
            if (box.data.node >= 0 && box.x0 <= x && x < box.x1 && box.y0 <= y && y < box.y1 && (!best || box.depth >= best.depth)) { best = box; }
        }
        return best;
    };
    const choose = (node: number) => {
        if (!tree) { return; }
        setCurrent(node);
        if (tree.fn[node] >= 0) { select(tree.fn[node]); }
    };
    return (
        <div class="view">
            <div class="bar-tools">
                <Segments label="Direction" value={callers ? "callers" : "callees"} onChange={(value) => { kind.value = value; }}
                    options={[["callees", "Callees", "What the active function calls"], ["callers", "Callers", "What calls it"]]} />
                <Slider label="Depth" value={depth.value} min={1} max={40} step={1} show={String} onChange={(value) => { depth.value = value; }} />
                <ColourChoice />
                <Estimated exact={!tree || tree.exact.every(Boolean)} />
                <span class="grow" />
                <button type="button" class="quiet" title="Save this picture" onClick={() => savePng(canvas.current, "treemap.png")}>PNG</button>
            </div>
            <div class="map" ref={ref} tabIndex={0} role="application" aria-roledescription="treemap" aria-label={callers ? "Caller map" : "Callee map"}
                aria-activedescendant={tree ? `map-${current}` : undefined}
                onKeyDown={(key) => {
                    if (!tree || key.ctrlKey || key.metaKey || key.altKey) { return; }
                    const to = step(tree, current, key.key);
                    if (to !== undefined) { choose(to); } else if (key.key === "Enter" && tree.fn[current] >= 0) { activate(tree.fn[current]); } else if (key.key === "+" || key.key === "-") {
                        depth.value = Math.max(1, Math.min(40, depth.value + (key.key === "+" ? 1 : -1)));
                    } else if (!key.key.startsWith("Arrow")) { return; }
                    key.preventDefault();
                    key.stopPropagation();
                }}
                onMouseMove={(move) => {
                    const box = at(move);
                    const frame = move.currentTarget.getBoundingClientRect();
                    setHover(box ? { node: box.data.node, rest: box.data.rest, x: move.clientX - frame.left, y: move.clientY - frame.top } : null);
                }}
                onMouseLeave={() => setHover(null)}
                onClick={(click) => { const box = at(click); if (box) { choose(box.data.node); } }}
                onDblClick={(click) => { const box = at(click); if (box && tree && tree.fn[box.data.node] >= 0) { activate(tree.fn[box.data.node]); } }}
                onContextMenu={(click) => {
                    const box = at(click);
                    if (!box || !tree || tree.fn[box.data.node] < 0) { return; }
                    click.preventDefault();
                    choose(box.data.node);
                    openMenu(tree.fn[box.data.node], click.clientX, click.clientY);
                }}>
                <canvas ref={canvas} aria-hidden="true" />
                {!tree && <Loading />}
                {hover && tree && <Tip tree={tree} cell={{ node: hover.node, more: hover.rest }} x={hover.x} y={hover.y} width={width} height={height} />}
                {tree && <Parallel tree={tree} current={current} label="Treemap" id="map" />}
            </div>
        </div>
    );
}

const NONE: readonly number[] = [];
void isDiff;
