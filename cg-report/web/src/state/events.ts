// Events that can be shown: those of the profile and formulas of them.
//
// A formula that is a sum of events is added up like an event: its cost of a whole is the sum of its costs of the parts. A ratio is
// none: it has two events, which are added up by themselves and divided last, so it never sizes anything.

import { BUILT_IN, parse, type Meaning } from "./formula.ts";
import { compact, rational } from "../data/format.ts";
import type { Column, Numbers } from "../data/columns.ts";
import type { EventInfo } from "../data/head.ts";
import type { Model, Side } from "../data/model.ts";

export interface Event {
    name: string;
    meaning: string;
    /** Columns of the profile and what they are multiplied by. */
    terms: [number, number][];
    derived: boolean;
    /** Whether inclusive costs of it are estimates. */
    spread: boolean;
}

/** Two events, of which the first one is divided by the second one. */
export interface Ratio {
    name: string;
    meaning: string;
    over: Event;
    under: Event;
}

/** What can be told of things: what they cost, or a ratio of two costs. */
export type Measure = Event | Ratio;

export function isRatio(measure: Measure): measure is Ratio {
    return "under" in measure;
}

/** A formula as what it is. */
export function measureOf(name: string, formula: string, { terms, under }: Meaning, known: readonly EventInfo[]): Measure {
    const event = (terms: [number, number][]): Event => ({ name, meaning: formula, terms, derived: true, spread: spreads(terms, known) });
    return under ? { name, meaning: formula, over: event(terms), under: event(under) } : event(terms);
}

function spreads(terms: [number, number][], known: readonly EventInfo[]): boolean {
    return terms.some(([column]) => known.some((event) => event.column === column && event.spread));
}

/** What a formula may name: all that there is, and built-in sums that nothing else has the name of. */
export function nameable(known: readonly Measure[]): (Meaning & { name: string })[] {
    const out = known.map((one) => (isRatio(one) ? { name: one.name, terms: one.over.terms, under: one.under.terms } : one)) as (Meaning & { name: string })[];
    for (const { name, formula } of BUILT_IN) {
        if (out.some((event) => event.name === name)) { continue; }
        const result = parse(formula, out);
        if ("terms" in result) { out.push({ name, ...result }); }
    }
    return out;
}

/** The events of a profile, those that the report was made with, then built-in sums that it has all parts of; ratios come last. */
export function measuresOf(model: Model): { events: Event[]; ratios: Ratio[] } {
    const { events } = model.pack.head;
    const all: Measure[] = events.map(({ name, meaning, column, spread }): Event => {
        return { name, meaning, terms: [[column, 1]], derived: false, spread };
    });
    for (const { name, formula } of model.pack.head.formulas) {
        const result = parse(formula, nameable(all));
        if ("terms" in result) { all.push(measureOf(name, formula, result, events)); }
    }
    for (const { name, terms } of nameable(all)) {
        if (all.some((known) => known.name === name)) { continue; }
        const meaning = BUILT_IN.find((known) => known.name === name)?.meaning ?? "";
        all.push({ name, meaning, terms, derived: true, spread: spreads(terms, events) });
    }
    return { events: all.filter((one): one is Event => !isRatio(one)), ratios: all.filter(isRatio) };
}

const sums = new WeakMap<Side, Map<string, Column>>();

/** Costs of a kind, such as `fn.self`, for an event; undefined until they are unpacked. */
export function costs(side: Side, kind: string, event: Event): Column | undefined {
    if (event.terms.length === 1 && event.terms[0][1] === 1) { return side.column(`${kind}.${event.terms[0][0]}`); }
    const key = `${kind} ${JSON.stringify(event.terms)}`;
    let known = sums.get(side);
    if (!known) { sums.set(side, (known = new Map())); }
    const found = known.get(key);
    if (found) { return found; }
    const columns = event.terms.map(([column]) => side.column(`${kind}.${column}`));
    const loaded: Numbers[] = [];
    for (const column of columns) {
        if (!column) { return undefined; }
        loaded.push(column.values);
    }
    const values = new Float64Array(loaded[0]?.length ?? 0);
    loaded.forEach((column, term) => {
        const factor = event.terms[term][1];
        for (let i = 0; i < values.length; i++) { values[i] += factor * column[i]; }
    });
    const column = { values, exact: null };
    known.set(key, column);
    return column;
}

/** The total of a side, or of a part, for an event. */
export function totalOf(model: Model, { totals }: { totals: readonly string[] }, event: Event): number {
    const { events } = model.pack.head;
    return event.terms.reduce((sum, [column, factor]) => {
        return sum + factor * Number(totals[events.findIndex((known) => known.column === column)]);
    }, 0);
}

/** The total with all its digits, where it is one of the profile's. */
export function exactTotal(model: Model, side: Side, event: Event): bigint | number {
    if (event.derived) { return totalOf(model, side, event); }
    const at = model.pack.head.events.findIndex((known) => known.column === event.terms[0][0]);
    return BigInt(side.totals[at]);
}

/** Costs of a kind for what is told, and of a ratio what they are divided by; undefined until they are unpacked. */
export function parts(side: Side, kind: string, of: Measure): { over: Numbers; under?: Numbers } | undefined {
    if (!isRatio(of)) {
        const over = costs(side, kind, of)?.values;
        return over && { over };
    }
    const [over, under] = [costs(side, kind, of.over)?.values, costs(side, kind, of.under)?.values];
    return over && under && { over, under };
}

/** What is told of a whole, from the sums of its parts: NaN if a ratio is divided by 0. */
export function quotient(of: Measure, over: number, under: number): number {
    if (!isRatio(of)) { return over; }
    return under === 0 ? NaN : over / under;
}

/** The same of each function or row by itself. */
export function quotients(side: Side, kind: string, of: Measure): Numbers | undefined {
    const found = parts(side, kind, of);
    if (!found?.under) { return found?.over; }
    const { over, under } = found;
    const known = made.get(over);
    if (known && known.under === under) { return known.values; }
    const values = Float64Array.from(over, (value, at) => quotient(of, value, under[at]));
    made.set(over, { under, values });
    return values;
}

const made = new WeakMap<object, { under: Numbers; values: Float64Array }>();

/** What is told of a whole side, or of a part of it. */
export function totalMeasure(model: Model, side: { totals: readonly string[] }, of: Measure): number {
    return isRatio(of) ? quotient(of, totalOf(model, side, of.over), totalOf(model, side, of.under)) : totalOf(model, side, of);
}

/** A value as it is shown: of a ratio with four digits, or a dash where it is divided by 0. */
export function said(of: Measure, value: number): string {
    if (!isRatio(of)) { return compact(value); }
    return Number.isNaN(value) ? "\u2013" : rational(value);
}
