// What happened at the lines of source files, from the rows of functions.

import { costs, parts, type Event, type Measure } from "../state/events.ts";
import type { Numbers } from "./columns.ts";
import type { Side } from "./model.ts";

export interface LineCall {
    f: number;
    callee: number;
    count: number;
    cost: number;
}

export interface SourceLine {
    /** Self cost of the functions that are looked at, and of all. */
    own: number;
    all: number;
    /** The second event; of a ratio what is divided, and what by. */
    second: number;
    under: number;
    calls: LineCall[];
}

interface Index {
    /** Rows, or calls, by file. */
    from: Uint32Array;
    order: Uint32Array;
    /** The function of each row. */
    owner: Uint32Array;
}

const indices = new WeakMap<Side, Map<string, Index>>();

function index(side: Side, kind: "row" | "call" | "jump", files: number): Index | undefined {
    let known = indices.get(side);
    if (!known) { indices.set(side, (known = new Map())); }
    const found = known.get(kind);
    if (found) { return found; }
    const starts = side.column(`${kind}.from`)?.values;
    const file = side.column(`${kind}.file`)?.values;
    if (!starts || !file) { return undefined; }
    const from = new Uint32Array(files + 1);
    for (let at = 0; at < file.length; at++) { from[file[at] + 1] += 1; }
    for (let at = 0; at < files; at++) { from[at + 1] += from[at]; }
    const next = from.slice();
    const order = new Uint32Array(file.length);
    for (let at = 0; at < file.length; at++) { order[next[file[at]]++] = at; }
    const owner = new Uint32Array(file.length);
    for (let f = 0; f + 1 < starts.length; f++) { owner.fill(f, starts[f], starts[f + 1]); }
    const made = { from, order, owner };
    known.set(kind, made);
    return made;
}

/** Files in which a function has code, the most expensive first, with its costs there. */
export function filesOf(side: Side, f: number, event: Event): [number, number][] | undefined {
    const starts = side.column("row.from")?.values;
    const file = side.column("row.file")?.values;
    const cost = costs(side, "row.cost", event)?.values;
    if (!starts || !file || !cost) { return undefined; }
    const sums = new Map<number, number>();
    for (let at = starts[f]; at < starts[f + 1]; at++) { sums.set(file[at], (sums.get(file[at]) ?? 0) + cost[at]); }
    return [...sums].sort((a, b) => b[1] - a[1]);
}

/** The most expensive files of all. */
export function topFiles(side: Side, event: Event, files: number): [number, number][] | undefined {
    const file = side.column("row.file")?.values;
    const cost = costs(side, "row.cost", event)?.values;
    if (!file || !cost) { return undefined; }
    const sums = new Float64Array(files);
    for (let at = 0; at < file.length; at++) { sums[file[at]] += cost[at]; }
    return Array.from(sums, (sum, at): [number, number] => [at, sum]).filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]);
}

/** What happened in a file by line; `f` is whose costs are `own`, or -1 for everybody's. */
export function linesOf(side: Side, file: number, files: number, f: number, event: Event, second: Measure | undefined): Map<number, SourceLine> | undefined {
    const rows = index(side, "row", files);
    const calls = index(side, "call", files);
    const line = side.column("row.line")?.values;
    const cost = costs(side, "row.cost", event)?.values;
    const other = second ? parts(side, "row.cost", second) : undefined;
    const callLine = side.column("call.line")?.values;
    const callTo = side.column("call.to")?.values;
    const callCount = side.column("call.count")?.values;
    const callCost = costs(side, "call.cost", event)?.values;
    if (!rows || !calls || !line || !cost || (second && !other) || !callLine || !callTo || !callCount || !callCost) { return undefined; }
    const out = new Map<number, SourceLine>();
    const at = (number: number): SourceLine => {
        let known = out.get(number);
        if (!known) { out.set(number, (known = { own: 0, all: 0, second: 0, under: 0, calls: [] })); }
        return known;
    };
    for (let k = rows.from[file]; k < rows.from[file + 1]; k++) {
        const row = rows.order[k];
        const known = at(line[row]);
        known.all += cost[row];
        if (f < 0 || rows.owner[row] === f) {
            known.own += cost[row];
            known.second += other?.over[row] ?? 0;
            known.under += other?.under?.[row] ?? 0;
        }
    }
    const seen = new Map<string, LineCall>();
    for (let k = calls.from[file]; k < calls.from[file + 1]; k++) {
        const call = calls.order[k];
        if (f >= 0 && calls.owner[call] !== f) { continue; }
        const key = `${callLine[call]} ${callTo[call]}`;
        const known = seen.get(key);
        if (known) {
            known.count += callCount[call];
            known.cost += callCost[call];
        } else {
            const made = { f: calls.owner[call], callee: callTo[call], count: callCount[call], cost: callCost[call] };
            seen.set(key, made);
            at(callLine[call]).calls.push(made);
        }
    }
    for (const known of out.values()) { known.calls.sort((a, b) => b.cost - a.cost); }
    return out;
}

export interface LineJump {
    from: number;
    to: number;
    taken: number;
    /** 0 if it is not conditional. */
    executed: number;
}

/** Jumps of a function between lines of a file. */
export function jumpsOf(side: Side, file: number, f: number): LineJump[] | undefined {
    const names = ["jump.from", "jump.file", "jump.line", "jump.tofile", "jump.toline", "jump.tofn", "jump.taken", "jump.executed"];
    const columns = names.map((name) => side.column(name)?.values);
    if (columns.some((column) => !column)) { return undefined; }
    const [starts, files, line, toFile, toLine, toFunction, taken, executed] = columns as Numbers[];
    const sums = new Map<string, LineJump>();
    for (let at = starts[f]; at < starts[f + 1]; at++) {
        if (files[at] !== file || toFile[at] !== file || toFunction[at] !== f || line[at] === toLine[at] || line[at] === 0 || toLine[at] === 0) { continue; }
        const key = `${line[at]} ${toLine[at]} ${executed[at] > 0}`;
        const known = sums.get(key);
        if (known) {
            known.taken += taken[at];
            known.executed += executed[at];
        } else {
            sums.set(key, { from: line[at], to: toLine[at], taken: taken[at], executed: executed[at] });
        }
    }
    return [...sums.values()];
}
