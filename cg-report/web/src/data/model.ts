// What the report is about: functions, arcs and positions, by the numbers that functions have in the profile.
//
// Costs come in columns that may not be there yet; then the answer is undefined, and whoever asked within a component or an
// effect is called again. Nothing is computed here that Rust has computed already.

import type { Column, Numbers } from "./columns.ts";
import { namespaceOf, shortened, visible } from "./names.ts";
import type { Pack } from "./pack.ts";

export const HAS_ROWS = 1;
export const INCOMPLETE = 2;

/** Calls by one end: those of function `f` are `order[k]` for k from `from[f]` to `from[f + 1]`. */
export interface Calls {
    from: Numbers;
    /** Numbers of arcs. */
    order: Uint32Array;
}

/** Texts of a line each as one, which is searched much faster than each by itself: text `n` begins at `start[n]`. */
export interface Lines {
    readonly text: string;
    readonly start: Uint32Array;
}

/** Texts without ends of lines as one. */
export function linesOf(texts: readonly string[]): Lines {
    const start = new Uint32Array(texts.length + 1);
    texts.forEach((text, at) => { start[at + 1] = start[at] + text.length + 1; });
    return { text: texts.join("\n"), start };
}

/** What a side takes its columns from. */
export interface Source {
    column(name: string): Column | undefined;
    /** A column that is there. */
    now(name: string): Column;
    /** Whether there is such a column. */
    has(name: string): boolean;
}

/** What is a function of its own: `i` inlined ones, `c` those of each context. */
export type Apart = "" | "c" | "i" | "ci";

/** What names of a side's columns begin with. */
function prefixOf(at: number, apart: Apart): string {
    return (at === 0 ? "" : "b.") + [...apart].map((letter) => `${letter}.`).join("");
}

/** Columns of a side with what is apart there. What does not depend on that is that of the whole. */
function packed(pack: Pack, at: number, apart: Apart): Source {
    // Beside inlined functions of their own chains of calls are not read, which tell nothing of those.
    const inlined = apart.endsWith("i");
    const without = inlined ? apart.slice(0, -1) as Apart : "";
    const prefixes = [prefixOf(at, apart), prefixOf(at, without), prefixOf(at, "")];
    const named = (wanted: string) => prefixes.map((prefix) => prefix + wanted).find((name) => pack.has(name)) ?? prefixes[2] + wanted;
    return {
        column: (wanted) => pack.column(named(wanted)),
        now: (wanted) => pack.now(named(wanted)),
        has: (wanted) => pack.has(prefixes[0] + wanted),
    };
}

/** A side: the profile or some of its parts, or the base that it is compared with. */
export class Side {
    readonly at: number;
    /** Decimal, one for each event of the report. */
    readonly totals: string[];
    /** What its columns come from. */
    readonly source: Source;
    private callersIndex: Calls | undefined;
    private callerOf: Uint32Array | undefined;

    constructor(source: Source, at: number, totals: string[]) {
        this.source = source;
        this.at = at;
        this.totals = totals;
    }

    static readonly FIRST = ["fn.flags", "fn.cycle", "fn.calls", "arc.from", "arc.to", "arc.count", "arc.within"];

    column(name: string): Column | undefined {
        return this.source.column(name);
    }

    now(name: string): Numbers {
        return this.source.now(name).values;
    }

    /** Whether whole chains of calls were recorded. */
    get hasChains(): boolean {
        return this.source.has("chain.depth");
    }

    /** Whether calls from one function to another are within a cycle, so that what they cost is no sum. */
    within(from: number, to: number): boolean {
        const cycle = this.now("fn.cycle");
        return from === to || (cycle[from] !== 0 && cycle[from] === cycle[to]);
    }

    get arcs(): number {
        return this.now("arc.to").length;
    }

    /** The caller of each arc. */
    callers(): Uint32Array {
        if (!this.callerOf) {
            const from = this.now("arc.from");
            this.callerOf = new Uint32Array(this.arcs);
            for (let f = 0; f + 1 < from.length; f++) { this.callerOf.fill(f, from[f], from[f + 1]); }
        }
        return this.callerOf;
    }

    /** Arcs by callee. */
    incoming(): Calls {
        if (!this.callersIndex) {
            const to = this.now("arc.to");
            const from = new Uint32Array(this.now("arc.from").length);
            for (let arc = 0; arc < to.length; arc++) { from[to[arc] + 1] += 1; }
            for (let f = 0; f + 1 < from.length; f++) { from[f + 1] += from[f]; }
            const next = from.slice();
            const order = new Uint32Array(to.length);
            for (let arc = 0; arc < to.length; arc++) { order[next[to[arc]]++] = arc; }
            this.callersIndex = { from, order };
        }
        return this.callersIndex;
    }
}

const others = new WeakMap<Pack, Map<Apart, Model>>();

export class Model {
    readonly pack: Pack;
    readonly sides: readonly Side[];
    readonly functions: number;
    readonly hasCalls: boolean;
    /** Names of functions, files and objects, made visible. */
    readonly names: string[];
    readonly files: string[];
    readonly objects: string[];
    readonly fileOf: Numbers;
    readonly objectOf: Numbers;
    /** Functions in the order of their names. */
    readonly byName: Numbers;
    private lower: Lines | undefined;
    /** What is a function of its own here. */
    readonly kind: Apart = "";
    private short: (string | undefined)[];
    private spaces: (string | undefined)[];

    private constructor(pack: Pack) {
        this.pack = pack;
        this.functions = pack.head.functions;
        this.sides = pack.head.sides.map(({ totals }, at) => new Side(packed(pack, at, ""), at, totals));
        this.hasCalls = this.sides.some((side) => side.arcs > 0);
        const list = (name: string, count: number) => {
            const text = pack.text(name) ?? "";
            return count === 0 ? [] : text.split("\n").map(visible);
        };
        this.names = list("names.fn", this.functions);
        this.files = list("names.file", 1);
        this.objects = list("names.obj", 1);
        this.fileOf = pack.now("fn.file").values;
        this.objectOf = pack.now("fn.obj").values;
        this.byName = pack.now("fn.byname").values;
        this.short = new Array(this.functions);
        this.spaces = new Array(this.functions);
        for (let f = 0; f < this.names.length; f++) {
            if (this.names[f] === "") { this.names[f] = "(no name)"; }
        }
        if (this.names.length !== this.functions) { throw new Error("the names of functions are damaged"); }
    }

    static async open(pack: Pack): Promise<Model> {
        const first = Model.first(pack, "");
        const { column } = pack.head.events[pack.head.primary] ?? pack.head.events[0];
        await pack.load("names.fn", "names.file", "names.obj", "fn.file", "fn.obj", "fn.byname", `fn.self.${column}`,
            `fn.incl.${column}`, ...first);
        return new Model(pack);
    }

    /** The same report with another first side. */
    of(side: Side): Model {
        return Object.assign(Object.create(Model.prototype) as Model, this, { sides: [side, ...this.sides.slice(1)] });
    }

    /** Whether inlined functions are functions of their own here. */
    get inlinedApart(): boolean {
        return this.kind.endsWith("i");
    }

    /** Whether it is known what was inlined. */
    get knowsInlined(): boolean {
        return this.pack.has(`${this.kind.startsWith("c") ? "c." : ""}i.fn.flags`);
    }

    /** Whether functions can be told apart by their callers and levels of recursion. */
    get knowsContexts(): boolean {
        return this.pack.has("c.fn.flags");
    }

    /** The same report with other functions; undefined until what it begins with is there, when who asked is called again. */
    with(kind: Apart): Model | undefined {
        if (kind === this.kind) { return this; }
        const known = others.get(this.pack) ?? new Map<Apart, Model>();
        others.set(this.pack, known);
        const found = known.get(kind);
        if (found) { return found; }
        if (Model.first(this.pack, kind).filter((name) => !this.pack.column(name)).length > 0) { return undefined; }
        const sides = this.pack.head.sides.map(({ totals }, at) => new Side(packed(this.pack, at, kind), at, totals));
        const made = Object.assign(Object.create(Model.prototype) as Model, this, { sides, kind });
        known.set(kind, made);
        return made;
    }

    /** What must be there before functions of a kind are shown. */
    static first(pack: Pack, kind: Apart): string[] {
        const columns = pack.head.sides.flatMap((_, at) => Side.FIRST.map((name) => prefixOf(at, kind) + name));
        return kind.startsWith("c") ? [...columns, "fn.plain"] : columns;
    }

    /** What a function is without its callers and its level of recursion: its code is known by that. */
    plainOf(f: number): number {
        return this.kind.startsWith("c") ? this.pack.now("fn.plain").values[f] : f;
    }

    /** The function of another kind of this report that is this one: of several the most expensive one. */
    counterpart(f: number, cost: Numbers | undefined, there: (f: number) => boolean): number {
        const plain = this.pack.column("fn.plain")?.values;
        if (!plain || there(f)) { return f; }
        if (there(plain[f])) { return plain[f]; }
        let best = f;
        for (let g = 0; g < this.functions; g++) {
            if (plain[g] === f && there(g) && (best === f || (cost?.[g] ?? 0) > (cost?.[best] ?? 0))) { best = g; }
        }
        return best;
    }

    get side(): Side {
        return this.sides[0];
    }

    get base(): Side | undefined {
        return this.sides[1];
    }

    /** The name of a function, shortened if that is wanted. */
    name(f: number, short: boolean): string {
        if (!short) { return this.names[f]; }
        return (this.short[f] ??= shortened(this.names[f]));
    }

    /** The names of all functions in small letters, for searches. */
    lowered(): Lines {
        return (this.lower ??= linesOf(this.names.map((name) => name.toLowerCase())));
    }

    namespace(f: number): string {
        return (this.spaces[f] ??= namespaceOf(this.names[f]));
    }

    file(f: number): string {
        return this.files[this.fileOf[f]];
    }

    object(f: number): string {
        return this.objects[this.objectOf[f]];
    }
}
