// V4: the call graph around the active function.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { compact, digits, percent, signed } from "../data/format.ts";
import { TOP } from "../layout/expand.ts";
import type { Laid } from "../layout/layered.ts";
import { neighbourhood, type Neighbourhood, type Paths } from "../layout/neighbourhood.ts";
import { keyOf, treeOf, ways, wholes, type Ways } from "../state/paths.ts";
import { active, activate, comparison, event, found, isDiff, model, select, selected, shareOf, short, total, shownTotal, WHOLE } from "../state/store.ts";
import { fitted, FONT, useSize } from "../ui/canvas.ts";
import { colouring, colourOf, deltaColour } from "../ui/colours.ts";
import { dotString, save } from "../ui/exports.ts";
import { openMenu } from "../ui/menu.tsx";
import { Empty, Estimated, Loading, Slider, Segments } from "../ui/parts.tsx";
import { useWithin } from "../ui/within.ts";
import { startWorker } from "../work.ts";
import { ColourChoice } from "./flame.tsx";

const nodeLimit = signal(0.05);
const arcLimit = signal(0.01);
const callers = signal(2);
/** As many levels of callees stand for all. */
const ALL = 40;
const callees = signal(ALL);
const cycles = signal<"members" | "box">("members");
/** Cycles whose members are shown all the same. */
const opened = signal<ReadonlySet<number>>(new Set());
const cluster = signal<"none" | "object" | "file" | "space">("none");
const MOST = 60;
const WIDE = 190;
const TALL = 42;

function backArcs(f: number): Iterable<number> {
    const side = model().side;
    const from = side.now("arc.from");
    const to = side.now("arc.to");
    return Array.from(to.subarray(from[f], from[f + 1]));
}

/** What stands for a cycle: below the whole program's number. */
const boxOf = (cycle: number) => TOP - cycle;
const cycleOf = (box: number) => TOP - box;

/** What a function is shown as. */
function shownAs(): (f: number) => number {
    const cycle = model().side.now("fn.cycle");
    if (cycles.value === "members") { return (f) => f; }
    return (f) => (f >= 0 && cycle[f] > 0 && !opened.value.has(cycle[f]) ? boxOf(cycle[f]) : f);
}

function membersOf(box: number): number[] {
    const cycle = model().side.now("fn.cycle");
    const members: number[] = [];
    for (let f = 0; f < cycle.length; f++) { if (cycle[f] === cycleOf(box)) { members.push(f); } }
    return members;
}

/** What a node of the graph is called. */
function called(f: number, shorten: boolean): string {
    if (f >= 0) { return model().name(f, shorten); }
    return f === TOP ? "whole program" : `\u21bb cycle ${cycleOf(f)}: ${digits(membersOf(f).length)} functions`;
}

/** Makes a function the root, or shows the members of a cycle. */
function enter(f: number) {
    if (f < TOP) { opened.value = new Set([...opened.value, cycleOf(f)]); } else { activate(f < 0 ? WHOLE : f); }
}

const measure = document.createElement("canvas").getContext("2d");

export function Graph() {
    const report = model();
    const root = active.value === WHOLE ? TOP : active.value;
    const down = report.hasCalls ? ways(false) : undefined;
    const up = report.hasCalls && root !== TOP ? ways(true) : undefined;
    const ready = down !== undefined && (root === TOP || up !== undefined);
    const around = useMemo(() => {
        if (!down || !ready) { return undefined; }
        // Chains of calls are looked at all, so that sums of them are exact.
        const paths = (way: Ways): Paths => (limits) => treeOf(way, root,
            way.chains ? { budget: 60_000, least: 0, depth: limits.depth === ALL ? undefined : limits.depth } : limits);
        return neighbourhood(wholes(down, root), paths(down), up && paths(up), root, { node: nodeLimit.value, arc: arcLimit.value,
            callers: callers.value, callees: callees.value, most: MOST }, backArcs, shownAs());
    }, [cycles.value, opened.value, comparison.value, ready, keyOf(down), report.side, root, event.value, nodeLimit.value, arcLimit.value, callers.value, callees.value, isDiff.value]);
    const [laid, setLaid] = useState<{ around: Neighbourhood; laid: Laid } | null>(null);
    const [fault, setFault] = useState("");
    const [busy, setBusy] = useState(false);
    useEffect(() => {
        if (!around) { return undefined; }
        const group = (f: number) => (f < 0 || cluster.value === "none" ? undefined : cluster.value === "object" ? report.object(f)
            : cluster.value === "file" ? report.file(f) : report.namespace(f) || undefined);
        setBusy(true);
        setFault("");
        const job = startWorker({
            kind: "layout",
            nodes: [...around.nodes.keys()].map((f) => ({ id: String(f), width: WIDE, height: TALL, group: group(f) })),
            edges: around.arcs.map(({ from, to, cost }) => ({ from: String(from), to: String(to), weight: 1 + Math.round((8 * cost[0]) / (total.value || 1)) })),
        }, (answer) => {
            setBusy(false);
            setLaid({ around, laid: answer as Laid });
        }, (why) => {
            setBusy(false);
            setFault(why);
        });
        return () => job.stop();
    }, [around, cluster.value]);
    if (!report.hasCalls) {
        return <Empty title="This profile has no calls"><p>Profiles made with <code>--tool=callgrind</code> have them.</p></Empty>;
    }
    const numbers = report.side.column("cy.number")?.values;
    const hasCycles = numbers !== undefined && numbers.length > 0;
    const exact = !around || [...around.nodes.values()].every((node) => node.exact);
    return (
        <div class="view">
            <div class="bar-tools">
                <Slider label="Functions from" value={nodeLimit.value} min={0.005} max={0.25} step={0.005} show={(value) => `${(value * 100).toFixed(1)} %`} onChange={(value) => { nodeLimit.value = value; }} />
                <Slider label="Arcs from" value={arcLimit.value} min={0} max={0.1} step={0.0025} show={(value) => `${(value * 100).toFixed(2)} %`} onChange={(value) => { arcLimit.value = value; }} />
                <Slider label="Callers" value={callers.value} min={0} max={10} step={1} show={String} onChange={(value) => { callers.value = value; }} />
                <Slider label="Callees" value={callees.value} min={0} max={ALL} step={1} show={(value) => (value === ALL ? "all" : String(value))} onChange={(value) => { callees.value = value; }} />
                <label class="choice">Cluster <select value={cluster.value} onChange={(change) => { cluster.value = change.currentTarget.value as "none"; }}>
                    <option value="none">none</option><option value="object">object</option><option value="file">file</option><option value="space">class</option>
                </select></label>
                {hasCycles && <Segments label="Cycles" value={cycles.value} onChange={(value) => { cycles.value = value; opened.value = new Set(); }}
                    options={[["members", "Members", "Functions of cycles one by one"], ["box", "Cycles", "A cycle as one box; a double click shows its members"]]} />}
                <ColourChoice />
                <Estimated exact={exact} />
                {around && around.limit > nodeLimit.value && <span class="badge" title={`More than ${MOST} functions were left, so the limit was doubled.`}>limit raised to {(around.limit * 100).toFixed(1)} %</span>}
                {busy && <span class="muted" role="status">laying out {"\u2026"}</span>}
                {fault && <span class="fault" role="alert">{fault}</span>}
                <span class="grow" />
                {around && <button type="button" class="quiet" title="Save this graph for Graphviz" onClick={() => save("calls.dot", new Blob([dot(around)], { type: "text/vnd.graphviz" }))}>DOT</button>}
                {laid && <button type="button" class="quiet" title="Save this picture" onClick={() => savePicture()}>SVG</button>}
            </div>
            {laid ? <Picture around={laid.around} laid={laid.laid} /> : <Loading />}
        </div>
    );
}

function dot(around: Neighbourhood): string {
    const name = (f: number) => dotString(called(f, false));
    const id = (f: number) => (f < TOP ? `c${cycleOf(f)}` : `n${f + 1}`);
    const lines = ["digraph calls {", "  node [shape=box];"];
    for (const { f, cost } of around.nodes.values()) {
        lines.push(`  ${id(f)} [label=${name(f)}, tooltip=${dotString(`${Math.round(cost[0])} ${event.value.name}`)}];`);
    }
    for (const { from, to, cost } of around.arcs) { lines.push(`  ${id(from)} -> ${id(to)} [label=${dotString(compact(Math.round(cost[0])))}];`); }
    return `${lines.join("\n")}\n}\n`;
}

/** The picture with its colours, as a file of its own. */
function savePicture() {
    const picture = document.querySelector(".graph svg.main");
    if (!picture) { return; }
    const copy = picture.cloneNode(true) as SVGElement;
    const [originals, copies] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
    originals.forEach((element, at) => {
        const style = getComputedStyle(element);
        const target = copies[at] as SVGElement;
        for (const property of ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight", "stroke-dasharray", "opacity"]) {
            target.style.setProperty(property, style.getPropertyValue(property));
        }
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    save("calls.svg", new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
}

function Picture({ around, laid }: { around: Neighbourhood; laid: Laid }) {
    const report = model();
    const { ref, width, height } = useSize<HTMLDivElement>();
    const [view, setView] = useState({ x: 0, y: 0, scale: 1 });
    const drag = useRef<{ x: number; y: number; view: { x: number; y: number; scale: number } } | null>(null);
    const [current, setCurrent] = useWithin(laid, around.root);
    useEffect(() => {
        if (width === 0) { return; }
        // The whole picture if it can be read, else the active function in the middle.
        const fit = Math.min(1.15, (width - 24) / laid.width, (height - 24) / laid.height);
        const scale = Math.max(fit, 0.85);
        const root = laid.nodes[String(around.root)];
        const centred = fit >= 0.85;
        setView({ scale, x: centred ? (width - laid.width * scale) / 2 : width / 2 - root.x * scale,
            y: centred ? Math.max(12, (height - laid.height * scale) / 2) : Math.min(24, height / 2 - root.y * scale) });
    }, [laid, width, height]);
    const program = shownTotal.value;
    const whole = shareOf(program, around.nodes.get(around.root)?.cost[0] ?? program);
    const largest = Math.max(...around.arcs.map((arc) => arc.cost[0]), 1);
    const mask = found.value;
    const diff = isDiff.value && [...around.nodes.values()].some((node) => node.cost.length > 1);
    const count = report.side.now("arc.count");
    const countOf = (from: number, to: number): number => {
        if (from < 0 || to < 0) { return NaN; }
        const [starts, ends] = [report.side.now("arc.from"), report.side.now("arc.to")];
        for (let k = starts[from]; k < starts[from + 1]; k++) { if (ends[k] === to) { return count[k]; } }
        return NaN;
    };
    const text = (f: number) => {
        const name = called(f, short.value);
        if (!measure) { return name; }
        measure.font = FONT;
        return fitted(measure, name, WIDE - 16);
    };
    const zoom = (factor: number, x: number, y: number) => {
        const scale = Math.min(3, Math.max(0.1, view.scale * factor));
        const by = scale / view.scale;
        setView({ scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by });
    };
    const choose = (f: number) => {
        setCurrent(f);
        if (f >= 0) { select(f); }
        const box = laid.nodes[String(f)];
        const [x, y] = [box.x * view.scale + view.x, box.y * view.scale + view.y];
        if (x < 60 || x > width - 60 || y < 30 || y > height - 30) { setView({ ...view, x: width / 2 - box.x * view.scale, y: height / 2 - box.y * view.scale }); }
    };
    const walk = (key: string): number | undefined => {
        const by = (a: { cost: number[] }, b: { cost: number[] }) => b.cost[0] - a.cost[0];
        const out = around.arcs.filter((arc) => arc.from === current && !arc.back && arc.to !== current).sort(by);
        const into = around.arcs.filter((arc) => arc.to === current && !arc.back && arc.from !== current).sort(by);
        if (key === "ArrowDown") { return out[0]?.to; }
        if (key === "ArrowUp") { return into[0]?.from; }
        const rank = laid.nodes[String(current)].y;
        const row = [...around.nodes.keys()].filter((f) => Math.abs(laid.nodes[String(f)].y - rank) < 8).sort((a, b) => laid.nodes[String(a)].x - laid.nodes[String(b)].x);
        const at = row.indexOf(current);
        return key === "ArrowLeft" ? row[at - 1] : key === "ArrowRight" ? row[at + 1] : undefined;
    };
    const groups = Object.entries(laid.nodes).filter(([id]) => id.startsWith("group "));
    const mini = Math.min(140 / laid.width, 100 / laid.height);
    const tell = (f: number) => {
        const node = around.nodes.get(f);
        if (!node) { return ""; }
        return `${called(f, false)}, ${node.exact ? "" : "about "}${percent(node.cost[0], whole)} %`;
    };
    return (
        <div class="graph" ref={ref} tabIndex={0} role="application" aria-roledescription="call graph" aria-label="Call graph"
            onKeyDown={(key) => {
                if (key.ctrlKey || key.metaKey || key.altKey) { return; }
                const to = walk(key.key);
                if (to !== undefined) { choose(to); } else if (key.key === "Enter") { enter(current); } else if (key.key === "+" || key.key === "-") {
                    zoom(key.key === "+" ? 1.25 : 0.8, width / 2, height / 2);
                } else if (!key.key.startsWith("Arrow")) { return; }
                key.preventDefault();
                key.stopPropagation();
            }}
            onWheel={(wheel) => {
                wheel.preventDefault();
                const box = wheel.currentTarget.getBoundingClientRect();
                if (wheel.ctrlKey || wheel.metaKey) { zoom(wheel.deltaY > 0 ? 0.9 : 1.1, wheel.clientX - box.left, wheel.clientY - box.top); } else {
                    setView({ ...view, x: view.x - wheel.deltaX, y: view.y - wheel.deltaY });
                }
            }}
            onMouseDown={(press) => { drag.current = { x: press.clientX, y: press.clientY, view }; }}
            onMouseMove={(move) => {
                const held = drag.current;
                if (held && (move.buttons & 1) !== 0) { setView({ ...held.view, x: held.view.x + move.clientX - held.x, y: held.view.y + move.clientY - held.y }); }
            }}>
            <svg class="main" width={width} height={height} aria-hidden="true">
                <defs>
                    <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" class="tip-end" /></marker>
                </defs>
                <g transform={`translate(${view.x} ${view.y}) scale(${view.scale})`}>
                    {groups.map(([id, box]) => (
                        <g key={id} class="cluster">
                            <rect x={box.x - box.width / 2} y={box.y - box.height / 2} width={box.width} height={box.height} rx="8" />
                            <text x={box.x - box.width / 2 + 8} y={box.y - box.height / 2 + 13}>{last(id.slice(6)) || "(none)"}</text>
                        </g>
                    ))}
                    {around.arcs.map((arc, at) => {
                        const points = laid.edges[at] ?? [];
                        const middle = points[Math.floor(points.length / 2)];
                        const lit = arc.from === current || arc.to === current;
                        const calls = countOf(arc.from, arc.to);
                        return (
                            <g key={`${arc.from} ${arc.to}`} class={`arc${arc.back ? " back" : ""}${lit ? " lit" : ""}`}>
                                <path d={curve(points)} marker-end="url(#tip)" style={{ strokeWidth: `${arc.back ? 1 : 1 + 5 * (arc.cost[0] / largest)}px` }} />
                                {middle && (
                                    <text x={middle.x} y={middle.y + 4}>
                                        {arc.back ? `\u21bb ${compact(calls)}\u00d7` : `${arc.exact ? "" : "\u2248\u2009"}${percent(arc.cost[0], whole)} %${Number.isNaN(calls) ? "" : calls === 0 && report.inlinedApart ? " \u00b7 inlined" : ` \u00b7 ${compact(calls)}\u00d7`}`}
                                    </text>
                                )}
                            </g>
                        );
                    })}
                    {[...around.nodes.values()].map((node) => {
                        const box = laid.nodes[String(node.f)];
                        const dim = mask && node.f >= 0 && mask[node.f] === 0;
                        const fill = colouring.value === "delta" && diff ? deltaColour(((node.cost[0] - node.cost[1]) / Math.max(program, 1)) * 4) : colourOf(node.f, colouring.value === "ratio" ? "space" : colouring.value);
                        return (
                            <g key={node.f} transform={`translate(${box.x - WIDE / 2} ${box.y - TALL / 2})`}
                                class={`node${node.f === around.root ? " root" : ""}${node.f === current || (node.f >= 0 && node.f === selected.value) ? " chosen" : ""}${dim ? " dim" : ""}`}
                                onClick={() => choose(node.f)} onDblClick={() => enter(node.f)}
                                onContextMenu={(click) => { if (node.f >= 0) { click.preventDefault(); choose(node.f); openMenu(node.f, click.clientX, click.clientY); } }}>
                                <title>{`${tell(node.f)}\n${digits(Math.round(node.cost[0]))} ${event.value.name}${node.f < TOP ? `\n${membersOf(node.f).slice(0, 20).map((f) => report.names[f]).join("\n")}` : ""}`}</title>
                                <rect width={WIDE} height={TALL} rx="5" style={{ fill }} />
                                <rect class="share" x="0" y={TALL - 3} height="3" rx="1.5" width={Math.max(0, Math.min(1, node.cost[0] / whole)) * WIDE} />
                                <text x="8" y="16">{text(node.f)}</text>
                                <text x="8" y="32" class="figures">
                                    {node.exact ? "" : "\u2248\u2009"}{percent(node.cost[0], whole)} %
                                    {diff ? <tspan dx="8">{"\u0394"} {signed(Math.round(node.cost[0] - node.cost[1]))}</tspan> : Number.isNaN(node.self[0]) ? null : <tspan dx="8" class="self">self {percent(node.self[0], whole)} %</tspan>}
                                </text>
                                {node.belowCount > 0 && <text class="stub" x={WIDE - 2} y={TALL + 12}>{`+${digits(node.belowCount)}, ${percent(node.below, whole)} %`}</text>}
                                {node.aboveCount > 0 && <text class="stub" x={WIDE - 2} y={-5}>{`+${digits(node.aboveCount)} callers`}</text>}
                            </g>
                        );
                    })}
                </g>
            </svg>
            {view.scale * laid.width > width + 40 || view.scale * laid.height > height + 40 ? (
                <svg class="mini" width={laid.width * mini} height={laid.height * mini} aria-hidden="true"
                    onMouseDown={(press) => {
                        const box = press.currentTarget.getBoundingClientRect();
                        const [x, y] = [(press.clientX - box.left) / mini, (press.clientY - box.top) / mini];
                        setView({ ...view, x: width / 2 - x * view.scale, y: height / 2 - y * view.scale });
                        press.stopPropagation();
                    }}>
                    {[...around.nodes.keys()].map((f) => {
                        const box = laid.nodes[String(f)];
                        return <rect key={f} class="dot" x={(box.x - WIDE / 2) * mini} y={(box.y - TALL / 2) * mini} width={WIDE * mini} height={TALL * mini} />;
                    })}
                    <rect class="frame" x={(-view.x / view.scale) * mini} y={(-view.y / view.scale) * mini} width={(width / view.scale) * mini} height={(height / view.scale) * mini} />
                </svg>
            ) : null}
            <div class="hidden" role="tree" aria-label="Functions of the call graph">
                {[...around.nodes.keys()].slice(0, 200).map((f) => <div key={f} role="treeitem" aria-level={1} aria-selected={f === current}>{tell(f)}</div>)}
            </div>
            <div class="hidden" aria-live="polite">{tell(current)}</div>
        </div>
    );
}

function last(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1);
}

/** A smooth line through points. */
export function curve(points: { x: number; y: number }[]): string {
    if (points.length < 2) { return ""; }
    let text = `M${points[0].x},${points[0].y}`;
    for (let at = 1; at + 1 < points.length; at++) {
        const next = { x: (points[at].x + points[at + 1].x) / 2, y: (points[at].y + points[at + 1].y) / 2 };
        const end = at + 2 === points.length ? points[at + 1] : next;
        text += ` Q${points[at].x},${points[at].y} ${end.x},${end.y}`;
    }
    if (points.length === 2) { text += ` L${points[1].x},${points[1].y}`; }
    return text;
}
