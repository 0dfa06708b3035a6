// Numbers as they are shown.

import type { Column } from "./columns.ts";

const grouped = new Intl.NumberFormat("en-US");

/** All digits, in groups. */
export function digits(value: number | bigint): string {
    // Most numbers are small, and tables have hundreds of them.
    if (typeof value === "number" && value >= 0 && value < 1000 && Number.isInteger(value)) { return String(value); }
    return grouped.format(value).replace("-", "\u2212");
}

/** All digits of a value of a column, also beyond 53 bits. */
export function exactly(column: Column, at: number): string {
    return digits(column.exact ? column.exact[at] : column.values[at]);
}

/** Three digits and a unit: 12.3 M. */
export function compact(value: number): string {
    const size = Math.abs(value);
    if (size < 10000) { return Number.isInteger(value) ? digits(value) : value.toFixed(size < 10 ? 2 : 1).replace("-", "\u2212"); }
    const units = ["", "k", "M", "G", "T", "P", "E"];
    let unit = 0;
    let scaled = size;
    while (scaled >= 999.5 && unit < units.length - 1) {
        scaled /= 1000;
        unit += 1;
    }
    const text = scaled >= 99.95 ? scaled.toFixed(0) : scaled >= 9.995 ? scaled.toFixed(1) : scaled.toFixed(2);
    return `${value < 0 ? "\u2212" : ""}${text} ${units[unit]}`;
}

/** A share in percent with two digits behind the point; "–" of nothing. */
export function percent(value: number, total: number): string {
    if (total === 0) { return "\u2013"; }
    const share = (value * 100) / total;
    if (share > 0 && share < 0.005) { return "<0.01"; }
    return share.toFixed(2).replace("-", "\u2212");
}

/** A ratio; "–" if it is divided by 0. */
export function ratio(value: number, by: number): string {
    if (by === 0) { return "\u2013"; }
    const result = value / by;
    return result >= 1000 ? compact(result) : Number.isInteger(result) ? String(result) : result.toFixed(result < 10 ? 2 : 1);
}

/** A number that is no count, with four digits: 0.01234, 1.234, 12.34 k. */
export function rational(value: number): string {
    const size = Math.abs(value);
    if (size >= 10000) { return compact(value); }
    if (size > 0 && size < 0.0001) { return value.toExponential(2).replace(/-/g, "\u2212"); }
    return String(Number(value.toPrecision(4))).replace("-", "\u2212");
}

/** A difference with its sign. */
export function signed(value: number): string {
    return value > 0 ? `+${compact(value)}` : compact(value);
}

/** n things, in the right number. */
export function plural(count: number, one: string, many = `${one}s`): string {
    return `${digits(count)} ${count === 1 ? one : many}`;
}

/** By how much one share is above another one; NaN where there is nothing to compare with. */
export function paceOf(count: number, counts: number, cost: number, costs: number): number {
    return cost > 0 && counts > 0 && costs > 0 ? (count / counts) / (cost / costs) : NaN;
}

/** The same as it is shown. */
export function pacing(pace: number): string {
    return Number.isNaN(pace) ? "\u2013" : `${rational(pace)}\u00d7`;
}
