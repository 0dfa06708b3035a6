// The one store: what is shown, as signals. Views read them and call the functions below; nothing else changes them.

import { batch, computed, effect, signal } from "@preact/signals";
import { stableId, baseName } from "../data/names.ts";
import { Model } from "../data/model.ts";
import { partsAtFirst } from "../data/partnames.ts";
import { needed, partsOf } from "../data/parts.ts";
import { costs, isRatio, measureOf, measuresOf, nameable, totalOf, type Event, type Measure, type Ratio } from "./events.ts";
import { parse } from "./formula.ts";
import * as memory from "./memory.ts";
import { isEmpty, parseQuery } from "./query.ts";
import { matching } from "./search.ts";
import * as url from "./url.ts";

export const WHOLE = -1;
/** `percent` is of the program, `parent` of what contains a thing. */
export type Numbering = "percent" | "parent" | "absolute" | "percall";
export type Comparison = "new" | "base" | "delta";

/** The report with all parts; there is one once the page shows anything. */
const opened = signal<Model | undefined>(undefined);
/** The parts that are shown, in ascending order; none stands for all. */
export const chosen = signal<readonly number[]>([]);
/** Whether inlined functions are functions of their own. */
export const inlinedApart = signal(false);
/** Whether functions are apart by their callers and levels of recursion. */
export const contextsApart = signal(false);
/** Whether contexts are about to be shown apart, or merged; undefined if nothing is under way. */
const turning = signal<boolean | undefined>(undefined);
/** All parts, with functions as they are wanted. */
const whole = computed(() => {
    const report = opened.value;
    return report && contextsApart.value && report.knowsContexts ? report.with("c") ?? report : report;
});
const plain = computed(() => {
    const report = whole.value;
    return report && chosen.value.length > 0 ? partsOf(report)?.of(chosen.value) ?? report : report;
});
const current = computed(() => {
    const report = plain.value;
    return report && canTakeApart.value && inlinedApart.value ? report.with(`${report.kind as "" | "c"}i`) ?? report : report;
});
/** Whether it is known of all that is shown what was inlined: of some of the parts it is not. */
export const canTakeApart = computed(() => whole.value !== undefined && whole.value.knowsInlined && chosen.value.length === 0);
/** Whether what is wanted is not shown yet, since its data is on its way. */
export const behind = computed(() => {
    const report = opened.value;
    if (turning.value !== undefined) { return true; }
    // What is damaged never comes.
    if (!report || report.pack.fault.value) { return false; }
    if (contextsApart.value && report.knowsContexts && !report.with("c")) { return true; }
    if (chosen.value.length > 0 && whole.value && !partsOf(whole.value)?.of(chosen.value)) { return true; }
    return canTakeApart.value && inlinedApart.value && !plain.value?.with(`${plain.value.kind as "" | "c"}i`);
});
/** Whether functions can be told apart by their callers and levels of recursion. */
export const knowsContexts = computed(() => opened.value?.knowsContexts ?? false);

/** What is shown: the report, or that of the chosen parts. */
export function model(): Model {
    const report = current.value;
    if (!report) { throw new Error("no report is open"); }
    return report;
}

/** What is shown, with inlined functions in their callers: as the code is. */
export function plainModel(): Model {
    return plain.value ?? model();
}

/** Where the code of the active function is: with what was inlined into it, or, if it was only ever inlined, by itself. */
export function codeModel(): Model {
    const f = active.value;
    const whole = plainModel();
    return f !== WHOLE && whole.side.now("fn.flags")[f] === 0 ? model() : whole;
}

/** The report of some parts, whatever is chosen; undefined until it can be made. */
export function modelOf(parts: readonly number[]): Model | undefined {
    return whole.value && partsOf(whole.value)?.of(parts);
}

/** The active function, the root of views; [`WHOLE`] for the program. */
export const active = signal(WHOLE);
/** The selected function, which views outline. */
export const selected = signal(WHOLE);
export const events = signal<Event[]>([]);
/** Ratios of events: they stand beside costs and never size anything. */
export const ratios = signal<Ratio[]>([]);
export const eventAt = signal(0);
/** The name of the second event or ratio; empty for none. */
export const secondName = signal("");
export const query = signal("");
export const panes = signal<[string, string]>(["overview", "flame"]);
export const numbering = signal<Numbering>("percent");
export const comparison = signal<Comparison>("delta");
/** Functions from the root of the flame graph down to where it is zoomed. */
export const path = signal<number[]>([]);
export const file = signal(-1);
export const cause = signal(-1);
export const short = signal(true);
export const note = signal("");
export const dialog = signal<"" | "help" | "formulas">("");
export const theme = signal<"auto" | "light" | "dark">("auto");

export const event = computed(() => events.value[Math.min(eventAt.value, events.value.length - 1)]);
export const second = computed((): Measure | undefined => [...events.value, ...ratios.value].find(({ name }) => name === secondName.value));
/** What stands before an inclusive cost of the event that is shown, where those are estimates. */
export const about = computed(() => (event.value.spread ? "\u2248\u2009" : ""));
/** The event that samples of another profiler are, if there are any. */
export const sampled = computed(() => (current.value?.pack.head.samples ? events.value.find(({ spread, derived }) => spread && !derived) : undefined));
export const isDiff = computed(() => (current.value?.sides.length ?? 0) > 1);
export const total = computed(() => totalOf(model(), model().side, event.value));
export const baseTotal = computed(() => {
    const base = model().base;
    return base ? totalOf(model(), base, event.value) : 0;
});

/** What shares are of: the total of the side that is shown. */
export const shownTotal = computed(() => (comparison.value === "base" && isDiff.value ? baseTotal.value : total.value));

/** What a share is of: of the program, or of what contains it, as the reader wants it. */
export function shareOf(program: number, parent: number): number {
    return numbering.value === "parent" ? parent : program;
}

export function inclusive(side = model().side, of = event.value) {
    return costs(side, "fn.incl", of)?.values;
}

export function self(side = model().side, of = event.value) {
    return costs(side, "fn.self", of)?.values;
}

export const parsed = computed(() => parseQuery(query.value));

/** For each function 1 if the search finds it; null if nothing is searched for or it is not known yet. */
export const found = computed<Uint8Array | null>(() => {
    if (isEmpty(parsed.value)) { return null; }
    const side = model().side;
    return matching(model(), parsed.value, {
        self: self(side), incl: inclusive(side), calls: side.now("fn.calls"), total: total.value,
    });
});

// ---- What changes the state --------------------------------------------------------------------------------------------

/** Makes a function, or the whole program, the root of all views. */
export function activate(f: number) {
    batch(() => {
        active.value = f;
        selected.value = f;
        path.value = [];
        file.value = -1;
        cause.value = -1;
    });
}

/**
 * Has functions apart by their callers and levels of recursion, or all of one together. What is active stays as far as it is there. What was
 * wanted last is what is shown, however long the data takes.
 */
export async function tellContexts(apart: boolean) {
    const report = opened.value;
    if (!report?.knowsContexts || apart === (turning.value ?? contextsApart.value)) { return; }
    if (apart === contextsApart.value) {
        turning.value = undefined;
        return;
    }
    turning.value = apart;
    const { pack } = report;
    const [[column]] = event.value.terms;
    let next: Model | undefined; // Undefined if it cannot be had.
    try {
        await pack.load(...Model.first(pack, "c"));
        next = report.with(apart ? "c" : "") ?? report;
        await pack.load(`${apart ? "c." : ""}fn.incl.${column}`);
    } catch (error) {
        next = undefined;
        pack.damaged("contexts", error);
    }
    if (turning.value !== apart) { return; }
    turning.value = undefined;
    if (opened.value !== report) { return tellContexts(apart); }
    if (!next) { return; }
    const now = next; // What closures know not to be undefined.
    const cost = now.side.now(`fn.incl.${column}`);
    const there = (f: number) => now.sides.some((side) => side.now("fn.flags")[f] !== 0 || side.now("fn.calls")[f] > 0);
    const same = (f: number) => (f === WHOLE ? f : now.counterpart(f, cost, there));
    batch(() => {
        contextsApart.value = apart;
        const f = same(active.value);
        const other = same(selected.value);
        activate(f);
        selected.value = other;
    });
}

export function select(f: number) {
    selected.value = f;
}

/** Shows some parts instead of all, in all views. */
export function choose(parts: readonly number[]) {
    const count = model().pack.head.parts.length;
    const known = [...new Set(parts)].filter((part) => part >= 0 && part < count).sort((a, b) => a - b);
    chosen.value = known.length === count ? [] : known;
}

export function show(view: string, pane: 0 | 1) {
    const next: [string, string] = [...panes.value];
    next[pane] = view;
    panes.value = next;
}

/** Shows a view in the pane that does not show it already. */
export function reveal(view: string) {
    if (!panes.value.includes(view)) { show(view, 1); }
}

export function nextEvent(step: number) {
    const count = events.value.length;
    eventAt.value = (eventAt.value + step + count) % count;
}

/** The caller that brings most, or the callee that takes most. */
export function hottest(callers: boolean): number {
    const side = model().side;
    const cost = costs(side, "arc.cost", event.value)?.values;
    if (active.value === WHOLE || !cost) { return WHOLE; }
    const f = active.value;
    let best = WHOLE;
    let most = -1;
    if (callers) {
        const { from, order } = side.incoming();
        const caller = side.callers();
        for (let k = from[f]; k < from[f + 1]; k++) {
            if (caller[order[k]] !== f && cost[order[k]] > most) { [best, most] = [caller[order[k]], cost[order[k]]]; }
        }
    } else {
        const from = side.now("arc.from");
        const to = side.now("arc.to");
        for (let arc = from[f]; arc < from[f + 1]; arc++) {
            if (to[arc] !== f && cost[arc] > most) { [best, most] = [to[arc], cost[arc]]; }
        }
    }
    return best;
}

/** Adds or replaces a formula; gives what is wrong with it. */
export function addFormula(name: string, formula: string): { fault: string; at: number } | undefined {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) { return { fault: "the name is no name of an event", at: -1 }; }
    // What is replaced is no part of what replaces it.
    const own = [...events.value, ...ratios.value].filter((known) => known.name !== name || !formulas.value.has(name));
    if (own.some((known) => known.name === name)) { return { fault: "there is an event of this name", at: -1 }; }
    const result = parse(formula, nameable(own));
    if ("fault" in result) { return result; }
    const made = measureOf(name, formula, result, model().pack.head.events);
    const shown = event.value.name;
    batch(() => {
        formulas.value = new Map([...formulas.value, [name, formula]]);
        events.value = [...own.filter((known): known is Event => !isRatio(known)), ...(isRatio(made) ? [] : [made])];
        ratios.value = [...own.filter(isRatio), ...(isRatio(made) ? [made] : [])];
        eventAt.value = Math.max(0, events.value.findIndex((known) => known.name === shown));
    });
    return undefined;
}

export function removeFormula(name: string) {
    batch(() => {
        formulas.value = new Map([...formulas.value].filter(([known]) => known !== name));
        const shown = event.value.name;
        events.value = events.value.filter((event) => event.name !== name);
        ratios.value = ratios.value.filter((ratio) => ratio.name !== name);
        eventAt.value = Math.max(0, events.value.findIndex((event) => event.name === shown));
        if (secondName.value === name) { secondName.value = ""; }
    });
}

/** Shows an event in all views, or a ratio beside it. */
export function look(name: string) {
    const at = events.value.findIndex((event) => event.name === name);
    if (at >= 0) { eventAt.value = at; } else if (ratios.value.some((ratio) => ratio.name === name)) { secondName.value = name; }
}

/** The events and ratios that a report has. */
function measure(report: Model) {
    const { events: own, ratios: rates } = measuresOf(report);
    events.value = own;
    ratios.value = rates;
}

/** Formulas made in the page, by name. */
export const formulas = signal<Map<string, string>>(new Map());

// ---- The URL -----------------------------------------------------------------------------------------------------------

let ids: Map<string, number> | undefined;

export function idOf(f: number): string {
    return stableId(model().object(f), model().file(f), model().names[f]);
}

/** The function of a stable id. */
function byId(id: string): number {
    if (!id) { return WHOLE; }
    if (!ids) {
        ids = new Map();
        for (let f = 0; f < model().functions; f++) { ids.set(idOf(f), f); }
    }
    return ids.get(id) ?? WHOLE;
}

function shown(): url.Shown {
    const f = active.value;
    return {
        f: f === WHOLE ? "" : idOf(f),
        s: selected.value === f || selected.value === WHOLE ? "" : idOf(selected.value),
        n: f === WHOLE ? "" : model().names[f].slice(0, 200),
        e: eventAt.value === model().pack.head.primary ? "" : event.value.name,
        e2: second.value?.name ?? "",
        p: panes.value,
        q: query.value,
        cmp: comparison.value === "delta" ? "" : comparison.value,
        path: path.value.map(idOf),
        x: [...formulas.value].map(([name, formula]) => `${name}=${formula}`),
        file: file.value >= 0 ? model().files[file.value] : "",
        why: cause.value >= 0 ? String(cause.value) : "",
        part: partText(),
        num: numbering.value === "percent" ? "" : numbering.value,
        own: [...(contextsApart.value ? ["contexts"] : []), ...(inlinedApart.value ? ["inlined"] : [])].join(),
        mem: memory.told(),
    };
}

/** Which parts are shown, unless they are those that are shown at first. */
function partText(): string {
    const { head } = model().pack;
    const text = url.ranges(chosen.value);
    const first = url.ranges(partsAtFirst(head));
    return text === first ? "" : text || `1-${head.parts.length}`;
}

const NUMBERINGS: Numbering[] = ["parent", "absolute", "percall"];

function restore(hash: string) {
    const wanted = url.decode(hash);
    batch(() => {
        for (const text of wanted.x) {
            const at = text.indexOf("=");
            if (at > 0) { addFormula(text.slice(0, at), text.slice(at + 1)); }
        }
        const eventOf = (name: string) => events.value.findIndex((event) => event.name === name);
        eventAt.value = wanted.e && eventOf(wanted.e) >= 0 ? eventOf(wanted.e) : model().pack.head.primary;
        inlinedApart.value = wanted.own.split(",").includes("inlined");
        contextsApart.value = wanted.own.split(",").includes("contexts") && knowsContexts.value;
        secondName.value = wanted.e2;
        memory.restore(wanted.mem);
        panes.value = wanted.p;
        query.value = wanted.q;
        comparison.value = wanted.cmp === "new" || wanted.cmp === "base" ? wanted.cmp : "delta";
        numbering.value = NUMBERINGS.find((known) => known === wanted.num) ?? "percent";
        const f = byId(wanted.f);
        if (wanted.f && f === WHOLE) {
            note.value = `This report has no function ${wanted.n || wanted.f} of that object and file; searching for it.`;
            query.value = wanted.n ? `"${baseName(wanted.n).replaceAll("\"", "")}"` : wanted.q;
        }
        active.value = f;
        selected.value = wanted.s ? byId(wanted.s) : f;
        const known = wanted.path.map(byId);
        path.value = known.includes(WHOLE) ? [] : known;
        file.value = wanted.file ? model().files.indexOf(wanted.file) : -1;
        const { head } = model().pack;
        choose(wanted.part ? url.places(wanted.part, head.parts.length) : partsAtFirst(head));
        cause.value = /^\d+$/.test(wanted.why) ? Number(wanted.why) : -1;
    });
}

export function permalink(): string {
    return location.href.replace(/#.*$/, "") + url.encode(shown());
}

/** Has what the chosen parts need, where some are chosen, so that nobody sees the others first. */
async function prepared(report: Model) {
    const { head } = report.pack;
    const { part, own } = url.decode(location.hash);
    const kind = own.includes("contexts") && report.knowsContexts ? "c" : "";
    if (kind) { await report.pack.load(...Model.first(report.pack, kind)); }
    if (own.includes("inlined") && report.with(kind)?.knowsInlined) { await report.pack.load(...Model.first(report.pack, `${kind}i`)); }
    const some = part || head.separate;
    if (some && head.parts.length > 0) { await report.pack.load(...needed(report.pack).map((name) => (kind ? `${kind}.${name}` : name))); }
}

/** Shows a newer report of the same thing; what is seen, by names, stays. */
export async function reopen(report: Model) {
    await prepared(report);
    const hash = url.encode(shown());
    const kept = { panes: panes.value, query: query.value };
    batch(() => {
        ids = undefined;
        chosen.value = [];
        active.value = WHOLE;
        selected.value = WHOLE;
        path.value = [];
        file.value = -1;
        opened.value = report;
        // Formulas are made anew of the events that there are now.
        formulas.value = new Map();
        measure(report);
        restore(hash);
        panes.value = kept.panes;
        query.value = kept.query;
    });
}

/** Writes the hash once what it says has been painted: that takes as long as a search, and nobody looks at it meanwhile. */
const written = {
    next: undefined as string | undefined,
    later(hash: string) {
        const waits = this.next !== undefined;
        this.next = hash;
        if (waits) { return; }
        // (Nothing is painted of a page that is not looked at.)
        const done = () => setTimeout(() => this.now(), 0);
        if (document.visibilityState === "visible") { requestAnimationFrame(done); } else { done(); }
    },
    now() {
        if (this.next !== undefined) { history.replaceState(null, "", this.next); }
        this.next = undefined;
    },
    cancel() {
        this.next = undefined;
    },
};

/** Opens a report and keeps state and URL together from then on. */
export async function open(report: Model) {
    await prepared(report);
    opened.value = report;
    measure(report);
    eventAt.value = report.pack.head.primary;
    if (!report.hasCalls) { panes.value = ["overview", "code"]; url.NOTHING.p = ["overview", "code"]; }
    restore(location.hash);
    let last = shown().f;
    effect(() => {
        const state = shown();
        const hash = url.encode(state);
        if (hash === location.hash) { written.cancel(); }
        if (hash === location.hash || (location.hash === "" && hash === url.encode(url.NOTHING))) { return; }
        // Going somewhere is a step back leads over; looking at it differently is not.
        if (state.f !== last) {
            written.cancel();
            history.pushState(null, "", hash);
        } else {
            written.later(hash);
        }
        last = state.f;
    });
    addEventListener("popstate", () => {
        written.cancel();
        restore(location.hash);
        last = shown().f;
    });
}

/** How many parts the report has. */
export function partsShown(): number {
    const { head } = model().pack;
    return Math.max(head.parts.length, 1);
}
