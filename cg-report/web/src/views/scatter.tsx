// V8 as a picture: functions by what they execute and how often that misses, both on scales of powers of ten. What stands far to the
// right and high up is where misses cost most.

import { useMemo } from "preact/hooks";
import { compact, digits, ratio } from "../data/format.ts";
import type { Numbers } from "../data/columns.ts";
import { activate, model, select, selected, short } from "../state/store.ts";

/** More dots would hide each other; those that are left out execute least. */
const MOST = 600;
/** Misses for each 1,000 instructions from which on a function is said to miss often, and the share of instructions that makes it hot. */
const OFTEN = 10, HOT = 0.01;

export interface Dot {
    f: number;
    x: number;
    y: number;
}

/** Places from 0 to 1 of functions that execute and miss something, those that execute most first, and those of the bounds. */
export function dotsOf(count: Numbers, misses: Numbers, total: number, mask: Uint8Array | null, most = MOST): { dots: Dot[]; often: number; hot: number; left: number; ends: [number, number, number, number] } {
    const known: number[] = [];
    for (let f = 0; f < count.length; f++) { if (count[f] > 0 && misses[f] > 0 && (!mask || mask[f])) { known.push(f); } }
    known.sort((a, b) => count[b] - count[a]);
    const shown = known.slice(0, most);
    const rate = (f: number) => (misses[f] * 1000) / count[f];
    const log = (value: number) => Math.log10(Math.max(value, 1e-9));
    const xs = shown.map((f) => log(count[f]));
    const ys = shown.map((f) => log(rate(f)));
    const ends: [number, number, number, number] = [Math.min(...xs, log(total * HOT)), Math.max(...xs, log(total * HOT)) + 0.1, Math.min(...ys, log(OFTEN)), Math.max(...ys, log(OFTEN)) + 0.1];
    const place = (value: number, from: number, to: number) => (to > from ? (value - from) / (to - from) : 0.5);
    return { dots: shown.map((f, at) => ({ f, x: place(xs[at], ends[0], ends[1]), y: place(ys[at], ends[2], ends[3]) })), left: known.length - shown.length,
        often: place(log(OFTEN), ends[2], ends[3]), hot: place(log(total * HOT), ends[0], ends[1]), ends };
}

const WIDTH = 900, HEIGHT = 380, LEFT = 54, BELOW = 30;

export function Scatter({ count, misses, total, mask, of, by }: { count: Numbers; misses: Numbers; total: number; mask: Uint8Array | null; of: string; by: string }) {
    const report = model();
    const { dots, often, hot, left, ends } = useMemo(() => dotsOf(count, misses, total, mask), [count, misses, total, mask]);
    const px = (x: number) => LEFT + x * (WIDTH - LEFT - 14);
    const py = (y: number) => 10 + (1 - y) * (HEIGHT - BELOW - 16);
    const powers = (from: number, to: number) => Array.from({ length: Math.max(0, Math.floor(to) - Math.ceil(from) + 1) }, (_, at) => Math.ceil(from) + at);
    // Names where there is room: of the hottest, unless one stands there already.
    const named: Dot[] = [];
    for (const dot of dots.filter(({ x, y }) => x >= hot || y >= often).slice(0, 60)) {
        if (named.length < 14 && named.every((other) => Math.abs(px(other.x) - px(dot.x)) > 150 || Math.abs(py(other.y) - py(dot.y)) > 14)) { named.push(dot); }
    }
    const told = (f: number) => `${report.name(f, short.value)}: ${digits(count[f])} ${by}, ${ratio(misses[f] * 1000, count[f])} ${of} for each 1,000`;
    return (
        <div class="scroll scatter" tabIndex={0} role="group" aria-label="Misses as a picture">
            <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${of} per 1,000 ${by} beside ${by}, by function`}>
                {powers(ends[2], ends[3]).map((power) => { const y = py((power - ends[2]) / (ends[3] - ends[2])); return <g key={power}><line class="rule" x1={LEFT} x2={WIDTH - 14} y1={y} y2={y} /><text x={LEFT - 6} y={y + 4} text-anchor="end">{10 ** power >= 0.01 ? String(Number((10 ** power).toPrecision(1))) : `1e${power}`}</text></g>; })}
                {powers(ends[0], ends[1]).map((power) => <text key={power} x={px((power - ends[0]) / (ends[1] - ends[0]))} y={HEIGHT - 12} text-anchor="middle">{compact(10 ** power)}</text>)}
                <line class="bound" x1={LEFT} x2={WIDTH - 14} y1={py(often)} y2={py(often)} /><line class="bound" x1={px(hot)} x2={px(hot)} y1={10} y2={HEIGHT - BELOW} />
                <text class="quarter" x={WIDTH - 18} y={22} text-anchor="end">hot, misses often</text><text class="quarter" x={LEFT + 6} y={22}>misses often, but rarely runs</text>
                <text class="quarter" x={WIDTH - 18} y={HEIGHT - BELOW - 8} text-anchor="end">hot &amp; fine</text>
                <text x={WIDTH - 14} y={HEIGHT - 1} text-anchor="end">self {by}</text><text x={4} y={8}>{of} per 1,000 {by}</text>
                {dots.map(({ f, x, y }) => (
                    <circle key={f} cx={px(x)} cy={py(y)} r={f === selected.value ? 6 : 4} class={f === selected.value ? "dot chosen" : x >= hot && y >= often ? "dot costly" : "dot"}
                        onClick={() => select(f)} onDblClick={() => activate(f)}><title>{told(f)}</title></circle>
                ))}
                {named.map(({ f, x, y }) => <text key={f} x={x > 0.75 ? px(x) - 8 : px(x) + 8} y={py(y) + 4} text-anchor={x > 0.75 ? "end" : "start"} class="label">{cut(report.name(f, true))}</text>)}
            </svg>
            <p class="muted">A dot is a function; bounds are at 1 % of {by} and {OFTEN} misses per 1,000.{left > 0 && ` ${digits(left)} functions that execute less are left out.`} The table has the same figures.</p>
        </div>
    );
}

const cut = (name: string) => (name.length > 28 ? `${name.slice(0, 27)}\u2026` : name);
