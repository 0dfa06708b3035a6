// Rows in the order of numbers, held against comparing them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ordered, ranks } from "../../src/layout/order.ts";

let state = 1;
function random(below: number): number {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
}

test("rows come in the order of their numbers, equal ones in the order they had", () => {
    const special = [0, -0, 1, -1, 2 ** 53, -(2 ** 53), 0.5, -0.5, 65535, 65536, 2 ** 32, 2 ** 32 + 1, Infinity, -Infinity, 5e-324];
    for (let round = 0; round < 200; round++) {
        const many = random(300);
        const value = Float64Array.from({ length: many }, () => (round % 3 === 0 ? special[random(special.length)]
            : round % 3 === 1 ? random(5) - 2 : (random(2 ** 31) - 2 ** 30) * (round % 2 === 0 ? 1 : 2 ** 20)));
        const rows = Uint32Array.from({ length: many }, (_, at) => at).filter(() => random(4) > 0).reverse();
        const counts = [Uint8Array, Uint16Array, Uint32Array].map((kind) => kind.from(value, (number) => (Number.isFinite(number) ? Math.abs(number) : 7)));
        for (const down of [false, true]) {
            for (const count of counts) {
                const compared = Array.from(rows).sort((a, b) => (count[a] - count[b]) * (down ? -1 : 1));
                assert.deepEqual(Array.from(ordered(rows, count, down)), compared, count.constructor.name);
            }
            // 0 and −0 are equal, and the difference of infinities is none.
            const compared = Array.from(rows).sort((a, b) => (value[a] === value[b] ? 0 : value[a] < value[b] !== down ? -1 : 1));
            assert.deepEqual(Array.from(ordered(rows, value, down)), compared);
        }
    }
    assert.deepEqual(ordered(new Uint32Array(0), [], true), new Uint32Array(0));
});

test("texts have the place that they have among each other", () => {
    assert.deepEqual(Array.from(ranks(["b", "a", "b", ""])), [2, 1, 2, 0]);
});

test("many rows of which most are equal take no longer than others", () => {
    const many = 500_000;
    const value = new Float64Array(many);
    value[7] = 1;
    const rows = Uint32Array.from({ length: many }, (_, at) => at);
    const start = performance.now();
    assert.equal(ordered(rows, value, true)[0], 7);
    assert.ok(performance.now() - start < 1000);
});
