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

/** What a side takes its columns from. */
export interface Source {
    column(name: string): Column | undefined;
    /** A column that is there. */
    now(name: string): Column;
    /** Whether there is such a column. */
    has(name: string): boolean;
}

/** Columns of a side as they stand in the report. */
function packed(pack: Pack, at: number): Source {
    const prefix = at === 0 ? "" : "b.";
    return { column: (name) => pack.column(prefix + name), now: (name) => pack.now(prefix + name), has: (name) => pack.has(prefix + name) };
}

/** The same with inlined functions of their own; what does not depend on them is that of the whole. */
function apart(pack: Pack, at: number): Source {
    const prefix = at === 0 ? "i." : "b.i.";
    const plain = packed(pack, at);
    const name = (wanted: string) => (pack.has(prefix + wanted) ? prefix + wanted : undefined);
    return {
        column: (wanted) => { const own = name(wanted); return own ? pack.column(own) : plain.column(wanted); },
        now: (wanted) => { const own = name(wanted); return own ? pack.now(own) : plain.now(wanted); },
        // Chains of calls tell nothing of inlined functions.
        has: (wanted) => name(wanted) !== undefined,
    };
}

/** A side: the profile or some of its parts, or the base that it is compared with. */
export class Side {
    readonly at: number;
    /** Decimal, one for each event of the report. */
    readonly totals: string[];
    private readonly source: Source;
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

const withApart = new WeakMap<Pack, Model>();

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
    private lower: string[] | undefined;
    /** Whether inlined functions are functions of their own here. */
    readonly apart: boolean = false;
    private short: (string | undefined)[];
    private spaces: (string | undefined)[];

    private constructor(pack: Pack) {
        this.pack = pack;
        this.functions = pack.head.functions;
        this.sides = pack.head.sides.map(({ totals }, at) => new Side(packed(pack, at), at, totals));
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
        const first = pack.head.sides.flatMap((_, at) => Side.FIRST.map((name) => (at === 0 ? name : `b.${name}`)));
        const { column } = pack.head.events[pack.head.primary] ?? pack.head.events[0];
        await pack.load("names.fn", "names.file", "names.obj", "fn.file", "fn.obj", "fn.byname", `fn.self.${column}`,
            `fn.incl.${column}`, ...first);
        return new Model(pack);
    }

    /** The same report with another first side. */
    of(side: Side): Model {
        return Object.assign(Object.create(Model.prototype) as Model, this, { sides: [side, ...this.sides.slice(1)] });
    }

    /** Whether it is known what was inlined. */
    get knowsInlined(): boolean {
        return this.pack.has("i.fn.flags");
    }

    /** The same report with inlined functions of their own; undefined until what it begins with is there, when who asked is called again. */
    withInlined(): Model | undefined {
        const found = withApart.get(this.pack);
        if (found) { return found; }
        if (Model.inlinedFirst(this.pack).filter((name) => !this.pack.column(name)).length > 0) { return undefined; }
        const sides = this.sides.map((side) => new Side(apart(this.pack, side.at), side.at, side.totals));
        const made = Object.assign(Object.create(Model.prototype) as Model, this, { sides, apart: true });
        withApart.set(this.pack, made);
        return made;
    }

    /** What must be there before inlined functions are shown. */
    static inlinedFirst(pack: Pack): string[] {
        return pack.head.sides.flatMap((_, at) => Side.FIRST.map((name) => (at === 0 ? `i.${name}` : `b.i.${name}`)));
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

    lowered(): string[] {
        return (this.lower ??= this.names.map((name) => name.toLowerCase()));
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
