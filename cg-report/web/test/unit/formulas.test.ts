// The laws of computed events: what is shown is what the formula says, of single things, of their sums, and of differences.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Column } from "../../src/data/columns.ts";
import type { Model, Side } from "../../src/data/model.ts";
import { costs, isRatio, measuresOf, parts, quotient, quotients, said, totalMeasure, totalOf, type Measure } from "../../src/state/events.ts";
import { ordered } from "../../src/layout/order.ts";

let state = 5;
function random(below: number): number {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
}

const NAMES = ["Ir", "Dr", "I1mr", "D1mr", "D1mw", "Bcm", "Bim"];
/** A formula as text, and what it says of costs: computed here from the text's own parts, without any terms. */
type Made = { text: string; of: (cost: (name: string) => number) => number };

function someSum(depth: number): Made {
    let { text, of } = product(depth);
    for (let more = random(3); more > 0; more--) {
        const next = product(depth);
        const [before, sign] = [of, random(2)];
        text += `${sign ? " + " : "-"}${next.text}`;
        of = (cost) => before(cost) + (sign ? 1 : -1) * next.of(cost);
    }
    return { text, of };
}

function product(depth: number): Made {
    const by = 1 + random(9);
    switch (random(depth > 0 ? 6 : 4)) {
        case 0: { const name = NAMES[random(NAMES.length)]; return { text: name, of: (cost) => cost(name) }; }
        case 1: { const name = NAMES[random(NAMES.length)]; return { text: `${by} ${name}`, of: (cost) => by * cost(name) }; }
        case 2: { const name = NAMES[random(NAMES.length)]; return { text: `${name} * ${by}`, of: (cost) => cost(name) * by }; }
        case 3: return { text: `${by} Bm`, of: (cost) => by * (cost("Bcm") + cost("Bim")) };
        case 4: { const inner = someSum(depth - 1); return { text: `-(${inner.text})`, of: (cost) => -inner.of(cost) }; }
        default: { const inner = someSum(depth - 1); return { text: `(${inner.text}) / ${by}`, of: (cost) => inner.of(cost) / by }; }
    }
}

const COUNT = 24;

/** A report of these formulas whose functions, and a base's, cost something at random; the total of each side is their sum. */
function reportOf(formulas: { name: string; formula: string }[]): Model {
    const events = NAMES.map((name, column) => ({ name, column, meaning: "" }));
    const side = (at: number): Side => {
        const columns = new Map(NAMES.map((_, column): [string, Column] => {
            const values = Float64Array.from({ length: COUNT }, () => (random(4) === 0 ? 0 : random(1000)));
            return [`fn.self.${column}`, { values, exact: null } as Column];
        }));
        const totals = NAMES.map((_, column) => String((columns.get(`fn.self.${column}`) as Column).values.reduce((a, b) => a + b, 0)));
        return { at, totals, column: (name: string) => columns.get(name) } as unknown as Side;
    };
    const sides = [side(0), side(1)];
    return { pack: { head: { events, formulas } }, sides, side: sides[0], base: sides[1] } as unknown as Model;
}

const near = (a: number, b: number, size: number, text: string) => assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(size, 1), `${text}: ${a} and ${b}`);

test("computed events are what their formulas say, of each thing, of sums of things and of differences", () => {
    let told = 0;
    for (let round = 0; round < 300; round++) {
        const made = someSum(2);
        const report = reportOf([{ name: "F", formula: made.text }]);
        const measure = measuresOf(report).events.find(({ name }) => name === "F");
        if (!measure) { continue; }
        told += 1;
        const direct = (side: Side, f: number) => made.of((name) => Number(side.column(`fn.self.${NAMES.indexOf(name)}`)?.values[f]));
        const whole = (side: Side) => made.of((name) => Number(side.totals[NAMES.indexOf(name)]));
        for (const side of report.sides) {
            const shown = costs(side, "fn.self", measure)?.values;
            assert.ok(shown);
            let sum = 0;
            for (let f = 0; f < COUNT; f++) {
                near(shown[f], direct(side, f), 1e6, made.text);
                sum += shown[f];
            }
            near(sum, totalOf(report, side, measure), 1e8, `${made.text} in sums`);
            near(sum, whole(side), 1e8, made.text);
        }
        const [now, before] = report.sides.map((side) => costs(side, "fn.self", measure)?.values);
        // A difference of computed costs is what is computed of differences.
        const change = made.of((name) => { const [a, b] = report.sides.map((side) => Number(side.totals[NAMES.indexOf(name)])); return a - b; });
        let sum = 0;
        for (let f = 0; f < COUNT; f++) { sum += (now?.[f] ?? 0) - (before?.[f] ?? 0); }
        near(sum, change, 1e8, `${made.text} in differences`);
    }
    assert.ok(told > 200, `${told} formulas`);
});

test("ratios are of sums, whatever is put together, and divided last", () => {
    let told = 0;
    for (let round = 0; round < 300; round++) {
        const [over, under] = [someSum(1), someSum(1)];
        const factor = 1 + random(1000);
        const report = reportOf([{ name: "R", formula: `${factor} (${over.text}) / (${under.text})` }, { name: "Twice", formula: "2 R" }]);
        const { events, ratios } = measuresOf(report);
        const [ratio, twice] = ["R", "Twice"].map((name) => ratios.find((known) => known.name === name));
        if (!ratio || !twice) { continue; }
        told += 1;
        assert.ok(events.every((event) => event.name !== "R" && event.name !== "Twice"), "no ratio is an event");
        const direct = (cost: (name: string) => number) => { const by = under.of(cost); return by === 0 ? NaN : (factor * over.of(cost)) / by; };
        const same = (a: number, b: number, text: string) => (Number.isNaN(b) || Math.abs(b) > 1e9 ? undefined : near(a, b, Math.abs(b) * 1000, text));
        for (const side of report.sides) {
            const shown = quotients(side, "fn.self", ratio);
            const double = quotients(side, "fn.self", twice);
            assert.ok(shown && double);
            for (let f = 0; f < COUNT; f++) {
                const expected = direct((name) => Number(side.column(`fn.self.${NAMES.indexOf(name)}`)?.values[f]));
                same(shown[f], expected, `${over.text} / ${under.text}`);
                same(double[f], 2 * expected, `2 (${over.text} / ${under.text})`);
            }
            same(totalMeasure(report, side, ratio), direct((name) => Number(side.totals[NAMES.indexOf(name)])), "the whole");
            // Any group of functions, as groups, lines and loops are.
            const found = parts(side, "fn.self", ratio);
            assert.ok(found?.under);
            for (let at = 0; at < 5; at++) {
                const cost = (name: string) => { let all = 0; for (let f = at; f < COUNT; f += 5) { all += Number(side.column(`fn.self.${NAMES.indexOf(name)}`)?.values[f]); } return all; };
                let [above, below] = [0, 0];
                for (let f = at; f < COUNT; f += 5) { above += found.over[f]; below += found.under[f]; }
                same(quotient(ratio, above, below), direct(cost), "a group");
            }
        }
    }
    assert.ok(told > 150, `${told} ratios`);
});

test("a ratio to nothing is a dash, and comes last", () => {
    const report = reportOf([{ name: "R", formula: "Ir / (Bm + Dr)" }]);
    const [ratio] = measuresOf(report).ratios;
    assert.equal(said(ratio, quotient(ratio, 5, 0)), "\u2013");
    assert.equal(said(ratio, quotient(ratio, 1, 3)), "0.3333");
    assert.deepEqual([...ordered(Uint32Array.of(0, 1, 2), [1, NaN, 2], true)], [2, 0, 1]);
});

test("a sum that is built in may be named, and gives way to a formula of its name", () => {
    const names = (list: readonly Measure[]) => list.map(({ name }) => name);
    const report = reportOf([{ name: "Rate", formula: "1000 L1m / Ir" }, { name: "Bm", formula: "2 Bcm" }]);
    const { events, ratios } = measuresOf(report);
    assert.deepEqual([names(events), names(ratios)], [[...NAMES, "Bm", "L1m"], ["Rate"]]);
    assert.deepEqual(events.find(({ name }) => name === "Bm")?.terms, [[NAMES.indexOf("Bcm"), 2]]);
    assert.ok(isRatio(ratios[0]) && ratios[0].over.terms.length === 3);
});
