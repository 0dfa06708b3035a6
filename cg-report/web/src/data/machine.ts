// Machine code of a function: instructions with their costs, calls and jumps.

import { costs, parts, type Event, type Measure } from "../state/events.ts";
import { visible } from "./names.ts";
import type { Model, Side } from "./model.ts";
import type { Pack } from "./pack.ts";

export const NEXT = 0, JUMP = 1, CONDITIONAL = 2, CALL = 3, RETURN = 4, INDIRECT = 5;

export interface MachineCall {
    callee: number;
    count: number;
    cost: number;
}

export interface MachineJump {
    to: number;
    taken: number;
    /** 0 if it is not conditional. */
    executed: number;
}

export interface InlineFrame {
    name: string;
    site: string;
}

export interface MachineLine {
    addr: number;
    /** Empty if the object file was not there. */
    text: string;
    bytes: string;
    flow: number;
    target: number;
    /** Whether a row says that it was executed. */
    executed: boolean;
    cost: number;
    /** The second event; of a ratio what is divided, and what by. */
    second: number;
    under: number;
    base: number;
    file: number;
    line: number;
    /** Functions that were inlined here, outermost first, and where each was called. */
    inline: readonly InlineFrame[];
    calls: MachineCall[];
    jumps: MachineJump[];
}

/** The lines of a function, by address; undefined until the data is there. */
export function machineOf(model: Model, side: Side, f: number, event: Event, second: Measure | undefined, syntax: "att" | "intel" | "none"): MachineLine[] | undefined {
    const list = (name: string) => side.column(name)?.values;
    const [rowFrom, rowAddr, rowFile, rowLine] = ["row.from", "row.addr", "row.file", "row.line"].map(list);
    const [callFrom, callAddr, callTo, callCount] = ["call.from", "call.addr", "call.to", "call.count"].map(list);
    const [jumpFrom, jumpAddr, jumpTo, taken, executed] = ["jump.from", "jump.addr", "jump.toaddr", "jump.taken", "jump.executed"].map(list);
    const cost = costs(side, "row.cost", event)?.values;
    const callCost = costs(side, "call.cost", event)?.values;
    const other = second ? parts(side, "row.cost", second) : undefined;
    if (!rowFrom || !rowAddr || !rowFile || !rowLine || !callFrom || !callAddr || !callTo || !callCount || !jumpFrom || !jumpAddr || !jumpTo
        || !taken || !executed || !cost || !callCost || (second && !other)) { return undefined; }
    const lines = new Map<number, MachineLine>();
    const at = (addr: number): MachineLine => {
        let line = lines.get(addr);
        if (!line) {
            line = { addr, text: "", bytes: "", flow: NEXT, target: 0, executed: false, cost: 0, second: 0, under: 0, base: 0, file: -1, line: 0, inline: NONE, calls: [], jumps: [] };
            lines.set(addr, line);
        }
        return line;
    };
    if (side.at === 0 && model.pack.has("code.from")) {
        // A function has stretches of code, which others may have too; instructions of one kind differ in their place alone.
        const [from, stretch, starts, first, byte] = ["code.from", "code.stretch", "stretch.addr", "stretch.from", "stretch.byte"].map(list);
        const [kinds, chain, bytes, length, flow, target] = ["ins.kind", "ins.inline", "ins.bytes", "kind.len", "kind.flow", "kind.target"].map(list);
        // Who does not show code does not unpack its text.
        const texts = syntax === "none" ? [] : splitText(model, syntax);
        const chains = syntax === "none" ? [] : chainsOf(model);
        if (!from || !stretch || !starts || !first || !byte || !kinds || !chain || !bytes || !length || !flow || !target || !chains || !texts) { return undefined; }
        const code = model.plainOf(f);
        for (let s = from[code]; s < from[code + 1]; s++) {
            let addr = starts[stretch[s]];
            let offset = byte[stretch[s]];
            for (let k = first[stretch[s]]; k < first[stretch[s] + 1]; k++) {
                const kind = kinds[k];
                const line = at(addr);
                line.text = texts[kind] ?? "";
                line.flow = flow[kind];
                line.target = target[kind];
                line.inline = chain[k] > 0 ? chains[chain[k] - 1] ?? NONE : NONE;
                line.bytes = Array.from(bytes.subarray(offset, offset + length[kind]), (value) => value.toString(16).padStart(2, "0")).join(" ");
                addr += length[kind];
                offset += length[kind];
            }
        }
    }
    for (let k = rowFrom[f]; k < rowFrom[f + 1]; k++) {
        // Samples that are known by their function alone are of no instruction.
        if (rowAddr[k] === 0) { continue; }
        const line = at(rowAddr[k]);
        line.executed = true;
        line.cost += cost[k];
        line.second += other?.over[k] ?? 0;
        line.under += other?.under?.[k] ?? 0;
        line.file = rowFile[k];
        line.line = rowLine[k];
    }
    for (let k = callFrom[f]; k < callFrom[f + 1]; k++) { at(callAddr[k]).calls.push({ callee: callTo[k], count: callCount[k], cost: callCost[k] }); }
    for (let k = jumpFrom[f]; k < jumpFrom[f + 1]; k++) { at(jumpAddr[k]).jumps.push({ to: jumpTo[k], taken: taken[k], executed: executed[k] }); }
    return [...lines.values()].sort((a, b) => a.addr - b.addr);
}

const NONE: readonly InlineFrame[] = [];
const parsed = new WeakMap<Pack, InlineFrame[][]>();

/** Chains of inlined functions, as the debug information has them. */
function chainsOf(model: Model): InlineFrame[][] | undefined {
    const found = parsed.get(model.pack);
    if (found) { return found; }
    const text = model.pack.text("text.inline");
    if (text === undefined) { return undefined; }
    const chains = text.split("\n").map((line) => {
        const parts = line.split("\t");
        const frames: InlineFrame[] = [];
        for (let at = 0; at + 1 < parts.length; at += 2) { frames.push({ name: visible(parts[at]), site: visible(parts[at + 1]) }); }
        return frames;
    });
    parsed.set(model.pack, chains);
    return chains;
}

const split = new WeakMap<Pack, Map<string, string[]>>();

function splitText(model: Model, syntax: string): string[] | undefined {
    let known = split.get(model.pack);
    if (!known) { split.set(model.pack, (known = new Map())); }
    const found = known.get(syntax);
    if (found) { return found; }
    const text = model.pack.text(`text.${syntax}`);
    if (text === undefined) { return undefined; }
    const lines = text.split("\n");
    known.set(syntax, lines);
    return lines;
}
