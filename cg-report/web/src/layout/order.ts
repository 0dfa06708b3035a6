// The order of rows by numbers, in time that does not depend on how many of them are equal.
//
// Comparing 200,000 functions with each other, and their names where costs are equal, takes seconds where most costs are 0. So
// rows are not compared: they are dealt out by the bits of their numbers, 16 at a time, the lowest ones first. Rows with equal
// numbers never change places, so who wants them by name puts them in the order of names before.

import type { Numbers } from "../data/columns.ts";

const DIGIT = 65536;
/** Where the upper half of a number stands. */
const UPPER = new Uint32Array(new Float64Array([1]).buffer)[1] === 0 ? 0 : 1;

/** The rows by their numbers `value[row]`; those of equal numbers stay in the order in which they are, whatever the direction. */
export function ordered(rows: Uint32Array, value: ArrayLike<number>, down: boolean): Uint32Array {
    const count = rows.length;
    const keys = value instanceof Uint32Array || value instanceof Uint16Array || value instanceof Uint8Array ? [small(rows, value, down)] : bits(rows, value, down);
    let from = new Uint32Array(count);
    for (let at = 0; at < count; at++) { from[at] = at; }
    let to = new Uint32Array(count);
    const starts = new Uint32Array(DIGIT);
    for (const key of keys) {
        for (const shift of [0, 16]) {
            starts.fill(0);
            for (let at = 0; at < count; at++) { starts[(key[at] >>> shift) & 0xffff] += 1; }
            if (count > 0 && starts[(key[0] >>> shift) & 0xffff] === count) { continue; }
            let next = 0;
            for (let digit = 0; digit < DIGIT; digit++) {
                const here = starts[digit];
                starts[digit] = next;
                next += here;
            }
            for (let at = 0; at < count; at++) {
                const one = from[at];
                to[starts[(key[one] >>> shift) & 0xffff]++] = one;
            }
            [from, to] = [to, from];
        }
    }
    for (let at = 0; at < count; at++) { to[at] = rows[from[at]]; }
    return to;
}

/** What counts are ordered by: they have no signs, and half the bits of other numbers. */
function small(rows: Uint32Array, value: Uint32Array | Uint16Array | Uint8Array, down: boolean): Uint32Array {
    const turned = down ? 0xffffffff : 0;
    const key = new Uint32Array(rows.length);
    for (let at = 0; at < key.length; at++) { key[at] = value[rows[at]] ^ turned; }
    return key;
}

/** What any numbers are ordered by: their bits, the lower half first. */
function bits(rows: Uint32Array, value: ArrayLike<number>, down: boolean): [Uint32Array, Uint32Array] {
    const count = rows.length;
    const numbers = new Float64Array(count);
    // Adding 0 makes 0 of −0, which has other bits. What is no number, as a ratio to 0, is below all.
    for (let at = 0; at < count; at++) {
        const number = value[rows[at]] + 0;
        numbers[at] = Number.isNaN(number) ? -Infinity : number;
    }
    const halves = new Uint32Array(numbers.buffer);
    const [low, high] = [new Uint32Array(count), new Uint32Array(count)];
    for (let at = 0; at < count; at++) {
        const upper = halves[2 * at + UPPER];
        const lower = halves[2 * at + 1 - UPPER];
        // Bits of numbers ascend with them but for the sign, and descend below 0.
        const below = upper >>> 31 === 1;
        const turned = below !== down ? 0xffffffff : 0;
        low[at] = lower ^ turned;
        high[at] = upper ^ turned ^ (below ? 0 : 0x80000000);
    }
    return [low, high];
}

/** For each text its place among all of them in the order of texts; equal ones have the same. */
export function ranks(texts: readonly string[]): Uint32Array {
    const sorted = [...new Set(texts)].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const places = new Map(sorted.map((text, at) => [text, at]));
    return Uint32Array.from(texts, (text) => places.get(text) as number);
}

/** Functions with the highest values above 0, in their order. */
export function top(values: Numbers, count: number, keep: (f: number) => boolean = () => true): number[] {
    const best: number[] = [];
    for (let f = 0; f < values.length; f++) {
        if (values[f] <= 0 || !keep(f) || (best.length === count && values[f] <= values[best[count - 1]])) { continue; }
        let at = best.length;
        while (at > 0 && values[best[at - 1]] < values[f]) { at -= 1; }
        best.splice(at, 0, f);
        if (best.length > count) { best.pop(); }
    }
    return best;
}
