// Events that can be shown: those of the profile and formulas of them.
//
// A formula is a sum of events, each times a number, so it is added up like an event: its cost of a whole is the sum of its
// costs of the parts.

import { BUILT_IN, parse } from "./formula.ts";
import type { Column, Numbers } from "../data/columns.ts";
import type { Model, Side } from "../data/model.ts";

export interface Event {
    name: string;
    meaning: string;
    /** Columns of the profile and what they are multiplied by. */
    terms: [number, number][];
    derived: boolean;
}

/** The events of a profile, those that the report was made with, then built-in sums that it has all parts of. */
export function eventsOf(model: Model): Event[] {
    const own = model.pack.head.events.map(({ name, meaning, column }): Event => {
        return { name, meaning, terms: [[column, 1]], derived: false };
    });
    for (const { name, formula } of model.pack.head.formulas) {
        const result = parse(formula, own);
        if ("terms" in result) { own.push({ name, meaning: formula, terms: result.terms, derived: true }); }
    }
    for (const { name, formula, meaning } of BUILT_IN) {
        if (own.some((event) => event.name === name)) { continue; }
        const result = parse(formula, own);
        if ("terms" in result) { own.push({ name, meaning, terms: result.terms, derived: true }); }
    }
    return own;
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
