// V6c: the control flow graph of the active function, with what its blocks cost and how often each way between them was taken.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { compact, digits, percent } from "../data/format.ts";
import { machineOf, type MachineLine } from "../data/machine.ts";
import { flowOf, type FlowBlock, type FlowWay } from "../layout/flow.ts";
import type { Laid } from "../layout/layered.ts";
import { active, event, events, model, plainModel, self, shareOf, total, WHOLE } from "../state/store.ts";
import { startWorker } from "../work.ts";
import { heatColour } from "../ui/colours.ts";
import { Empty, Loading, Slider } from "../ui/parts.tsx";
import { useWithin } from "../ui/within.ts";
import { curve } from "./graph.tsx";
import { partsOfCode } from "./loops.tsx";
import { goalLine, syntax } from "./machine.tsx";

const WIDE = 190, TALL = 46;
/** More blocks are no picture that anyone reads. */
const MOST = 150;
const limit = signal(0);

/** Blocks that cost at least a share of the function, and the ways between them. */
export function shownOf(flow: { blocks: FlowBlock[]; ways: FlowWay[] }, least: number, most = MOST): { blocks: number[]; ways: FlowWay[] } {
    const whole = flow.blocks.reduce((sum, { cost }) => sum + cost, 0);
    const order = flow.blocks.map((_, at) => at).sort((a, b) => flow.blocks[b].cost - flow.blocks[a].cost);
    const kept = new Set(order.filter((at) => flow.blocks[at].cost >= least * whole).slice(0, most));
    return { blocks: [...kept].sort((a, b) => a - b), ways: flow.ways.filter(({ from, to }) => kept.has(from) && kept.has(to)) };
}

export function FlowGraph() {
    const report = plainModel();
    const f = active.value;
    const { addresses, jumps } = report.pack.head.sides[0];
    const ready = f !== WHOLE && addresses && jumps;
    const lines = ready ? machineOf(report, report.side, f, event.value, undefined, syntax.value) : undefined;
    const ir = events.value.find((of) => of.name === "Ir");
    const counts = ready && ir ? machineOf(report, report.side, f, ir, undefined, syntax.value) : undefined;
    const flow = useMemo(() => {
        if (!lines || !counts) { return undefined; }
        const parts = partsOfCode(lines, counts);
        return flowOf(parts.instructions, parts.jumps, parts.ends);
    }, [lines?.length, counts?.length, f, event.value, report.side]);
    const shown = useMemo(() => flow && shownOf(flow, limit.value), [flow, limit.value]);
    const [laid, setLaid] = useState<{ shown: { blocks: number[]; ways: FlowWay[] }; flow: { blocks: FlowBlock[] }; laid: Laid } | null>(null);
    const [fault, setFault] = useState("");
    useEffect(() => {
        if (!shown || !flow || shown.blocks.length === 0) { return undefined; }
        setFault("");
        const most = Math.max(...shown.ways.map(({ count }) => count || 0), 1);
        const job = startWorker({ kind: "layout", nodes: shown.blocks.map((at) => ({ id: String(at), width: WIDE, height: TALL })),
            edges: shown.ways.map(({ from, to, count }) => ({ from: String(from), to: String(to), weight: 1 + Math.round((8 * (count || 0)) / most) })) },
        (answer) => setLaid({ shown, flow, laid: answer as Laid }), setFault);
        return () => job.stop();
    }, [shown]);
    if (!addresses || !jumps) {
        return <Empty title="This profile has no jumps"><p>Blocks are found by jumps between instructions: record with <code>--dump-instr=yes --collect-jumps=yes</code>.</p></Empty>;
    }
    if (!ir) { return <Empty title="No instructions were counted"><p>How often a block runs is told by the event Ir, which this report does not have.</p></Empty>; }
    if (f === WHOLE) { return <Empty title="Choose a function"><p>Double-click a function to see its blocks.</p></Empty>; }
    if (flow && flow.blocks.length === 0) { return <Empty title="No instruction was counted here"><p>The function is only known from calls.</p></Empty>; }
    if (!flow || !shown || !lines) { return <Loading />; }
    return (
        <div class="view">
            <div class="bar-tools">
                <Slider label="Blocks from" value={limit.value} min={0} max={0.1} step={0.0025} show={(value) => `${(value * 100).toFixed(2)} %`} onChange={(value) => { limit.value = value; }} />
                <span class="muted">{digits(shown.blocks.length)} of {digits(flow.blocks.length)} blocks, with what they cost themselves</span>
                {fault && <span class="fault" role="alert">{fault}</span>}
            </div>
            {laid && laid.flow === flow ? <Blocks key={f} blocks={flow.blocks} shown={laid.shown} laid={laid.laid} lines={lines} /> : fault ? null : <Loading />}
        </div>
    );
}

function Blocks({ blocks, shown, laid, lines }: { blocks: FlowBlock[]; shown: { blocks: number[]; ways: FlowWay[] }; laid: Laid; lines: MachineLine[] }) {
    const box = useRef<HTMLDivElement>(null);
    const [current, setCurrent] = useWithin(shown, shown.blocks[0]);
    const [scale, setScale] = useState(1);
    const most = Math.max(...shown.blocks.map((at) => blocks[at].cost), 1);
    const largest = Math.max(...shown.ways.map(({ count }) => count || 0), 1);
    const byAddress = useMemo(() => new Map(lines.map((line) => [line.addr, line])), [lines]);
    const whole = shareOf(total.value, self()?.[active.value] ?? total.value);
    const place = (at: number) => {
        const line = byAddress.get(blocks[at].addr);
        const file = line && line.file >= 0 ? model().files[line.file] : "";
        return line && line.line > 0 ? `${file.slice(file.lastIndexOf("/") + 1)}:${line.line}` : `0x${blocks[at].addr.toString(16)}`;
    };
    const end = (at: number) => byAddress.get(blocks[at].end)?.text.split(/\s+/)[0] ?? "";
    const tell = (at: number) => `${place(at)}, ${digits(blocks[at].instructions)} instructions, executed ${digits(blocks[at].count)}\u00d7, ${percent(blocks[at].cost, whole)} %`;
    const choose = (at: number) => {
        setCurrent(at);
        const line = byAddress.get(blocks[at].addr);
        if (line && line.line > 0) { goalLine.value = { file: line.file, line: line.line, by: "source" }; }
    };
    // What leaves a block most often, what leads to it, and what stands beside it.
    const walk = (key: string): number | undefined => {
        const best = (ways: FlowWay[], end: "from" | "to") => ways.sort((a, b) => (b.count || 0) - (a.count || 0))[0]?.[end];
        if (key === "ArrowDown") { return best(shown.ways.filter(({ from, to }) => from === current && to !== current), "to"); }
        if (key === "ArrowUp") { return best(shown.ways.filter(({ from, to }) => to === current && from !== current), "from"); }
        const at = shown.blocks.indexOf(current) + (key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0);
        return key === "ArrowRight" || key === "ArrowLeft" ? shown.blocks[at] : undefined;
    };
    useEffect(() => {
        const node = laid.nodes[String(current)];
        const element = box.current;
        if (!node || !element) { return; }
        element.scrollTo({ left: node.x * scale - element.clientWidth / 2, top: node.y * scale - element.clientHeight / 2 });
    }, [current, laid]);
    return (
        <div class="scroll flow" ref={box} tabIndex={0} role="application" aria-roledescription="control flow graph" aria-label="Control flow graph"
            onKeyDown={(key) => {
                if (key.ctrlKey || key.metaKey || key.altKey) { return; }
                const to = walk(key.key);
                if (to !== undefined) { choose(to); } else if (key.key === "Enter") { choose(current); } else if (key.key === "+" || key.key === "-") {
                    setScale(Math.max(0.2, Math.min(3, scale * (key.key === "+" ? 1.25 : 0.8))));
                } else if (key.key === "0") { setScale(1); } else if (!key.key.startsWith("Arrow")) { return; }
                key.preventDefault();
                key.stopPropagation();
            }}
            onWheel={(wheel) => {
                if (!wheel.ctrlKey && !wheel.metaKey) { return; }
                wheel.preventDefault();
                setScale(Math.max(0.2, Math.min(3, scale * (wheel.deltaY > 0 ? 0.9 : 1.1))));
            }}>
            <svg class="graph-flow" width={laid.width * scale} height={laid.height * scale} viewBox={`0 0 ${laid.width} ${laid.height}`} aria-hidden="true">
                <defs><marker id="flow-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" class="tip-end" /></marker></defs>
                {shown.ways.map((way, at) => {
                    const points = laid.edges[at] ?? [];
                    const middle = points[Math.floor(points.length / 2)];
                    const of = blocks[way.from].count;
                    return (
                        <g key={`${way.from} ${way.to}`} class={`arc${way.back ? " backward" : way.next ? "" : " taken"}${way.from === current || way.to === current ? " lit" : ""}`}>
                            <path d={curve(points)} marker-end="url(#flow-tip)" style={{ strokeWidth: `${1 + 4 * ((way.count || 0) / largest)}px` }}><title>{`${place(way.from)} \u2192 ${place(way.to)}: ${Number.isNaN(way.count) ? "not known how often" : `${digits(way.count)}\u00d7`}`}</title></path>
                            {middle && !Number.isNaN(way.count) && <text x={middle.x} y={middle.y + 4}>{compact(way.count)}{"\u00d7"}{of > 0 && way.count < of && ` \u00b7 ${percent(way.count, of)} %`}</text>}
                        </g>
                    );
                })}
                {shown.blocks.map((at) => {
                    const node = laid.nodes[String(at)];
                    const block = blocks[at];
                    return (
                        <g key={at} class={`node${at === current ? " chosen" : ""}`} transform={`translate(${node.x - WIDE / 2} ${node.y - TALL / 2})`} onClick={() => choose(at)}>
                            <title>{tell(at)}</title>
                            <rect width={WIDE} height={TALL} rx="4" style={{ fill: heatColour(block.cost / most) }} />
                            <text x="8" y="18">{place(at)} <tspan class="end">{end(at)}</tspan></text>
                            <text x="8" y="36" class="figures">{percent(block.cost, whole)} % {"\u00b7"} {Number.isNaN(block.count) ? "" : `${compact(block.count)}\u00d7 \u00b7 `}{digits(block.instructions)} ins.</text>
                        </g>
                    );
                })}
            </svg>
            <div class="hidden" role="tree" aria-label="Blocks">
                {shown.blocks.slice(0, 200).map((at) => <div key={at} role="treeitem" aria-level={1} aria-selected={at === current}>{tell(at)}</div>)}
            </div>
            <div class="hidden" aria-live="polite">{tell(current)}</div>
        </div>
    );
}
