// Formulas of events: sums and differences of events, each times a number, with parentheses: `Ir + 10 Bm + 100 (ILmr + DLmr)`, and
// ratios of two such sums: `1000 L1m / Ir`.
//
// A sum of events is added up like an event. Of a ratio both sums are added up by themselves, and divided last; nothing is added to one.
// `src/formula.rs` of the program is the same.

/** Columns of the profile and what they are multiplied by. */
export type Terms = [number, number][];

export interface Meaning {
    /** The sum; of a ratio what is divided. */
    terms: Terms;
    /** What that is divided by, of a ratio. */
    under?: Terms;
}

export interface Known extends Meaning {
    name: string;
}

export interface Fault {
    fault: string;
    /** Where in the text. */
    at: number;
}

export const BUILT_IN = [
    { name: "L1m", formula: "I1mr + D1mr + D1mw", meaning: "First-level misses" },
    { name: "LLm", formula: "ILmr + DLmr + DLmw", meaning: "Last-level misses" },
    { name: "Bm", formula: "Bcm + Bim", meaning: "Mispredicted branches" },
    { name: "CEst", formula: "Ir + 10 (Bcm + Bim) + 10 (I1mr + D1mr + D1mw) + 100 (ILmr + DLmr + DLmw)",
        meaning: "Cycle estimation" },
    { name: "CEst", formula: "Ir + 10 (I1mr + D1mr + D1mw) + 100 (ILmr + DLmr + DLmw)", meaning: "Cycle estimation" },
];

/** A number, a sum of events, or a ratio of two. */
type Value = { constant: number; terms: Map<number, number>; under?: Map<number, number> };

class Stop extends Error {
    readonly at: number;
    constructor(message: string, at: number) {
        super(message);
        this.at = at;
    }
}

/** What a formula means, in terms of columns of the profile. */
export function parse(text: string, known: readonly Known[]): Meaning | Fault {
    const tokens = [...text.matchAll(/\s*(?:(\d+(?:\.\d+)?)|([A-Za-z_][A-Za-z0-9_]*)|(.))/gsu)]
        .filter((token) => token[0].trim() !== "")
        .map((token) => ({ number: token[1], name: token[2], sign: token[3], at: token.index + token[0].search(/\S/) }));
    let next = 0;
    const here = () => tokens[next]?.at ?? text.length;
    const is = (...signs: string[]) => next < tokens.length && signs.includes(tokens[next].sign);
    let depth = 0;

    function sum(): Value {
        depth += 1;
        if (depth > 100) { throw new Stop("too many parentheses", here()); }
        let value = product();
        while (is("+", "-", "\u2212")) {
            const sign = tokens[next++].sign === "+" ? 1 : -1;
            const at = here();
            value = add(value, product(), sign, at);
        }
        depth -= 1;
        return value;
    }
    function product(): Value {
        let value = factor();
        while (next < tokens.length && (is("*", "\u00d7", "/", "(") || tokens[next].name || tokens[next].number)) {
            const by = is("/");
            if (is("*", "\u00d7", "/")) { next += 1; }
            const at = here();
            const other = factor();
            if (by && other.terms.size > 0) {
                if (value.terms.size === 0) { throw new Stop("a number is divided by a cost", at); }
                if (value.under || other.under) { throw new Stop("a ratio is divided, or divided by", at); }
                value = { ...value, under: other.terms };
                continue;
            }
            if (by && other.constant === 0) { throw new Stop("division by 0", at); }
            if (value.terms.size > 0 && other.terms.size > 0) { throw new Stop("a product of events is not a cost", at); }
            const [events, by2] = value.terms.size > 0 ? [value, other.constant] : [other, value.constant];
            value = by ? scale(value, 1 / other.constant) : events.terms.size > 0 ? scale(events, by2)
                : { constant: value.constant * other.constant, terms: new Map() };
        }
        return value;
    }
    function factor(): Value {
        const token = tokens[next];
        if (!token) { throw new Stop("something is missing", text.length); }
        next += 1;
        if (token.number) { return { constant: Number(token.number), terms: new Map() }; }
        if (token.sign === "-") { return scale(factor(), -1); }
        if (token.sign === "(") {
            const value = sum();
            if (!is(")")) { throw new Stop("a parenthesis is not closed", here()); }
            next += 1;
            return value;
        }
        if (!token.name) { throw new Stop(`\`${token.sign}\` was not expected`, token.at); }
        const event = known.find((event) => event.name === token.name);
        if (!event) { throw new Stop(`there is no event ${token.name}`, token.at); }
        return { constant: 0, terms: new Map(event.terms), under: event.under && new Map(event.under) };
    }

    try {
        const value = sum();
        if (next < tokens.length) { throw new Stop("something is too much", here()); }
        if (value.terms.size === 0) { throw new Stop("it has no event", 0); }
        const terms = settled(value.terms);
        return value.under ? { terms, under: settled(value.under) } : { terms };
    } catch (stop) {
        if (stop instanceof Stop) { return { fault: stop.message, at: stop.at }; }
        throw stop;
    }
}

/** A sum without what is multiplied by 0. */
function settled(sum: Map<number, number>): Terms {
    const terms = [...sum].filter(([, factor]) => factor !== 0);
    if (terms.some(([, factor]) => !Number.isFinite(factor))) { throw new Stop("a number is too large", 0); }
    if (terms.length === 0) { throw new Stop("it is always 0", 0); }
    return terms;
}

function scale(value: Value, by: number): Value {
    return { ...value, constant: value.constant * by, terms: new Map([...value.terms].map(([event, factor]) => [event, factor * by])) };
}

function add(a: Value, b: Value, sign: number, at: number): Value {
    if (a.under || b.under) { throw new Stop("nothing can be added to a ratio: its sums are added up by themselves", at); }
    if ((a.terms.size > 0) !== (b.terms.size > 0)) { throw new Stop("a number is added to a cost", at); }
    const terms = new Map(a.terms);
    for (const [event, factor] of b.terms) { terms.set(event, (terms.get(event) ?? 0) + sign * factor); }
    return { constant: a.constant + sign * b.constant, terms };
}
