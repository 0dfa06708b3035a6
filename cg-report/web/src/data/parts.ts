// Some parts of a profile as a side of its own: what the report says of rows, calls and jumps in each part, added up, and what
// follows from that.
//
// The report has what follows for all parts together. For some of them it is found here by the same rules (`cg-model`), cycles
// included: a call that is recursive in the whole need not be that in a part. So what is shown of one part is what a report of
// that part alone shows, which tests hold.

import { components } from "../layout/components.ts";
import type { Column, Numbers } from "./columns.ts";
import { HAS_ROWS, INCOMPLETE, Side, type Model, type Source } from "./model.ts";
import type { Head } from "./head.ts";
import type { Pack } from "./pack.ts";

type Kind = "row" | "call" | "jump";
const KINDS: Kind[] = ["row", "call", "jump"];
/** Columns that say where something is, and not how much of it. */
const PLACE = /^(row|call|jump)\.(file|line|addr|to|tofn|tofile|toline|toaddr|cond)$/;
const AMOUNT = /^(row|call)\.cost\.\d+$|^call\.count$|^jump\.(taken|executed)$/;

const known = new WeakMap<Model, Parts>();

/** The parts of a report; undefined until what all of them need is there, when who asked is called again. */
export function partsOf(report: Model): Parts | undefined {
    const found = known.get(report);
    if (found) { return found; }
    if (needed(report.pack).filter((name) => !report.side.column(name)).length > 0) { return undefined; }
    const parts = new Parts(report, report.functions);
    known.set(report, parts);
    return parts;
}

/** What must be there before parts can be added up, by the names that a side has for it. */
export function needed(pack: Pack): string[] {
    const costs = pack.head.events.flatMap(({ column }) => [`part.row.cost.${column}`, `part.call.cost.${column}`]);
    return [...KINDS.flatMap((kind) => [`part.${kind}`, `part.${kind}.from`, `${kind}.from`]), "call.to", "part.call.count", ...costs];
}

export class Parts {
    private readonly report: Model;
    private readonly functions: number;
    private readonly models = new Map<string, Model>();

    constructor(report: Model, functions: number) {
        this.report = report;
        this.functions = functions;
    }

    get count(): number {
        return this.report.pack.head.parts.length;
    }

    /** The report of some parts; always the same for the same ones. */
    of(chosen: readonly number[]): Model {
        if (chosen.length === this.count) { return this.report; }
        const key = chosen.join();
        const found = this.models.get(key);
        if (found) { return found; }
        // Enough for a table of all of them and some ways back.
        if (this.models.size > 160) { this.models.clear(); }
        const { head } = this.report.pack;
        const totals = head.events.map((_, at) => String(chosen.reduce((sum, part) => sum + BigInt(head.parts[part].totals[at]), 0n)));
        const made = this.report.of(new Side(new Sum(this.report, this.functions, chosen), 0, totals));
        this.models.set(key, made);
        return made;
    }
}

/** Which rows, calls or jumps some parts have. */
interface Present {
    /** Their numbers in the whole, in ascending order. */
    order: Uint32Array;
    /** Where each of the whole stands in `order`. */
    place: Uint32Array;
    /** Those of function `f` begin at `from[f]`. */
    from: Uint32Array;
}

class Sum implements Source {
    private readonly head: Head;
    /** Columns of all parts together, and of each. */
    private readonly source: Source;
    private readonly names: (f: number) => string;
    private readonly functions: number;
    private readonly chosen: readonly number[];
    private readonly present: Record<Kind, Present>;
    private readonly made = new Map<string, Column>();
    /** The arc of each call. */
    private readonly arcOf: Uint32Array;
    private readonly caller: Uint32Array;
    private readonly cycles: number;

    constructor(report: Model, functions: number, chosen: readonly number[]) {
        this.head = report.pack.head;
        this.source = report.side.source;
        this.names = (f) => `${report.file(f)}:${report.names[f]}`;
        this.functions = functions;
        this.chosen = chosen;
        this.present = { row: this.find("row"), call: this.find("call"), jump: this.find("jump") };
        for (const kind of KINDS) { this.put(`${kind}.from`, this.present[kind].from); }
        const { order, from } = this.present.call;
        const callee = this.source.now("call.to").values;
        const ends: number[] = [];
        const owners: number[] = [];
        const arcFrom = new Uint32Array(functions + 1);
        this.arcOf = new Uint32Array(order.length);
        for (let f = 0; f < functions; f++) {
            const mine = [...new Set(Array.from(order.subarray(from[f], from[f + 1]), (call) => callee[call]))].sort((a, b) => a - b);
            const at = new Map(mine.map((end, index) => [end, ends.length + index]));
            for (let k = from[f]; k < from[f + 1]; k++) { this.arcOf[k] = at.get(callee[order[k]]) as number; }
            for (const end of mine) {
                ends.push(end);
                owners.push(f);
            }
            arcFrom[f + 1] = ends.length;
        }
        this.caller = Uint32Array.from(owners);
        const to = Uint32Array.from(ends);
        this.put("arc.from", arcFrom);
        this.put("arc.to", to);
        this.put("arc.count", this.gather(this.amount("call.count"), this.arcOf, to.length));
        const group = components(arcFrom, to);
        this.put("arc.within", Uint8Array.from(to, (end, arc) => (group[end] === group[this.caller[arc]] ? 1 : 0)));
        this.cycles = this.number(group);
        this.put("fn.calls", this.gather(this.column("arc.count").values, to, functions));
        this.put("fn.flags", this.flags());
    }

    column(name: string): Column;
    column(name: string): Column | undefined {
        const found = this.made.get(name);
        if (found) { return found; }
        const values = this.make(name);
        if (values === undefined) { return undefined; }
        if (values === null) { return this.source.column(name); }
        return this.put(name, values);
    }

    has(name: string): boolean {
        return this.source.has(name);
    }

    now(name: string): Column {
        return this.made.get(name) ?? this.column(name) ?? this.source.now(name);
    }

    private put(name: string, values: Numbers): Column {
        const column = { values, exact: null };
        this.made.set(name, column);
        return column;
    }

    /** A column; undefined if what it is made of is not there yet, null if it is that of the whole. */
    private make(name: string): Numbers | undefined | null {
        if (PLACE.test(name)) {
            const whole = this.source.column(name)?.values;
            return whole && this.pick(whole, name.split(".")[0] as Kind);
        }
        if (AMOUNT.test(name)) { return this.source.column(`part.${name}`) && this.amount(name); }
        const [thing, kind, event] = name.split(".");
        if (thing === "chain" && (kind === "calls" || kind === "cost")) { return this.ofChains(`part.${name}`); }
        if (thing === "arc" && kind === "cost") { return this.gather(this.column(`call.cost.${event}`).values, this.arcOf, this.caller.length); }
        if (thing === "fn" && ["self", "seen", "incl"].includes(kind)) { return this.ofFunctions(kind, event); }
        if (thing === "cy" && (kind === "self" || kind === "incl")) { return this.ofCycles(kind, event); }
        return null;
    }

    private find(kind: Kind): Present {
        const whole = this.source.now(`${kind}.from`).values;
        const from = this.source.now(`part.${kind}.from`).values;
        const index = this.source.now(`part.${kind}`).values;
        const count = whole[this.functions];
        const here = new Uint8Array(count);
        for (const part of this.chosen) { for (let k = from[part]; k < from[part + 1]; k++) { here[index[k]] = 1; } }
        const place = new Uint32Array(count);
        const order = new Uint32Array(here.reduce((sum, one) => sum + one, 0));
        const starts = new Uint32Array(this.functions + 1);
        let next = 0;
        for (let f = 0; f < this.functions; f++) {
            for (let at = whole[f]; at < whole[f + 1]; at++) {
                if (!here[at]) { continue; }
                place[at] = next;
                order[next++] = at;
            }
            starts[f + 1] = next;
        }
        return { order, place, from: starts };
    }

    private pick(whole: Numbers, kind: Kind): Numbers {
        const { order } = this.present[kind];
        const out = new (whole.constructor as Float64ArrayConstructor)(order.length);
        for (let at = 0; at < order.length; at++) { out[at] = whole[order[at]]; }
        return out;
    }

    /** What the chosen parts have of something, added up. */
    private amount(name: string): Float64Array {
        const kind = name.split(".")[0] as Kind;
        const { order, place } = this.present[kind];
        const from = this.source.now(`part.${kind}.from`).values;
        const index = this.source.now(`part.${kind}`).values;
        const values = this.source.now(`part.${name}`).values;
        const out = new Float64Array(order.length);
        for (const part of this.chosen) { for (let k = from[part]; k < from[part + 1]; k++) { out[place[index[k]]] += values[k]; } }
        return out;
    }

    /** What the chosen parts have of each chain of calls; those of other parts alone have nothing. */
    private ofChains(name: string): Float64Array | undefined {
        const columns = [name, "part.chain", "part.chain.from", "chain.fn"].map((wanted) => this.source.column(wanted)?.values);
        const [values, index, from, all] = columns;
        if (!values || !index || !from || !all) { return undefined; }
        const out = new Float64Array(all.length);
        for (const part of this.chosen) { for (let k = from[part]; k < from[part + 1]; k++) { out[index[k]] += values[k]; } }
        return out;
    }

    /** Values added up by where each belongs. */
    private gather(values: Numbers, to: ArrayLike<number>, count: number): Float64Array {
        const out = new Float64Array(count);
        for (let at = 0; at < values.length; at++) { out[to[at]] += values[at]; }
        return out;
    }

    /** Numbers cycles of several functions, from 1 in the order of their names; gives how many there are. */
    private number(group: ArrayLike<number>): number {
        const sizes = new Map<number, number>();
        for (let f = 0; f < this.functions; f++) { sizes.set(group[f], (sizes.get(group[f]) ?? 0) + 1); }
        const members: [string, number][] = [];
        for (let f = 0; f < this.functions; f++) { if ((sizes.get(group[f]) ?? 0) > 1) { members.push([this.names(f), f]); } }
        members.sort(([a, f], [b, g]) => (a < b ? -1 : a > b ? 1 : f - g));
        const numbers = new Map<number, number>();
        const cycle = new Uint32Array(this.functions);
        for (const [, f] of members) {
            const number = numbers.get(group[f]) ?? numbers.size + 1;
            numbers.set(group[f], number);
            cycle[f] = number;
        }
        this.put("fn.cycle", cycle);
        this.put("cy.number", Uint32Array.from({ length: numbers.size }, (_, at) => at + 1));
        return numbers.size;
    }

    /** What functions spend themselves and with what they call outside of their cycle. */
    private spent(event: string): Float64Array {
        const own = Float64Array.from(this.column(`fn.self.${event}`).values);
        const cost = this.column(`arc.cost.${event}`).values;
        const within = this.column("arc.within").values;
        for (let arc = 0; arc < cost.length; arc++) { if (!within[arc]) { own[this.caller[arc]] += cost[arc]; } }
        return own;
    }

    private ofFunctions(kind: string, event: string): Float64Array {
        if (kind === "self") {
            const cost = this.column(`row.cost.${event}`).values;
            const { from } = this.present.row;
            const out = new Float64Array(this.functions);
            for (let f = 0; f < this.functions; f++) { for (let at = from[f]; at < from[f + 1]; at++) { out[f] += cost[at]; } }
            return out;
        }
        const within = this.column("arc.within").values;
        const to = this.column("arc.to").values;
        if (kind === "seen") {
            const cost = this.column(`arc.cost.${event}`).values;
            return this.gather(Float64Array.from(cost, (value, arc) => (within[arc] ? 0 : value)), to, this.functions);
        }
        const cycle = this.column("fn.cycle").values;
        const seen = this.column(`fn.seen.${event}`).values;
        return this.spent(event).map((spent, f) => (cycle[f] > 0 ? spent : Math.max(spent, seen[f])));
    }

    private ofCycles(kind: string, event: string): Float64Array {
        const cycle = this.column("fn.cycle").values;
        const self = this.column(`fn.self.${event}`).values;
        const out = new Float64Array(this.cycles);
        for (let f = 0; f < this.functions; f++) { if (cycle[f] > 0) { out[cycle[f] - 1] += self[f]; } }
        if (kind === "self") { return out; }
        const cost = this.column(`arc.cost.${event}`).values;
        const within = this.column("arc.within").values;
        const to = this.column("arc.to").values;
        const seen = new Float64Array(this.cycles);
        for (let arc = 0; arc < cost.length; arc++) {
            if (within[arc]) { continue; }
            const [from, end] = [cycle[this.caller[arc]], cycle[to[arc]]];
            if (from > 0) { out[from - 1] += cost[arc]; }
            if (end > 0) { seen[end - 1] += cost[arc]; }
        }
        return out.map((spent, at) => Math.max(spent, seen[at]));
    }

    private flags(): Uint8Array {
        const { from } = this.present.row;
        const flags = new Uint8Array(this.functions);
        const called = new Uint8Array(this.functions);
        const cycle = this.column("fn.cycle").values;
        const within = this.column("arc.within").values;
        this.column("arc.to").values.forEach((end, arc) => { if (!within[arc]) { called[end] = 1; } });
        for (let f = 0; f < this.functions; f++) { if (from[f + 1] > from[f]) { flags[f] = HAS_ROWS; } }
        for (const { column } of this.head.events) {
            const spent = this.spent(String(column));
            const seen = this.column(`fn.seen.${column}`).values;
            for (let f = 0; f < this.functions; f++) {
                if (called[f] && cycle[f] === 0 && seen[f] !== spent[f]) { flags[f] |= INCOMPLETE; }
            }
        }
        return flags;
    }
}
