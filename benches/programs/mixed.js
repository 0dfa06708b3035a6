// Objects, closures, typed arrays and strings: code that the engine compiles while it runs.
let state = 1, map = new Map(), total = 0;
const next = () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff);
class Point { constructor(x, y) { this.x = x; this.y = y; } add(o) { return new Point(this.x + o.x, this.y ^ o.y); } }
let p = new Point(0, 0);
const cells = new Float64Array(100000);
for (let round = 0; round < 100; round++) {
    for (let i = 0; i < 100000; i++) {
        p = p.add(new Point(next() % 10, i));
        cells[i] = cells[(i * 7) % 100000] * 0.5 + p.x;
    }
    for (let i = 0; i < 20000; i++) { const k = "k" + next() % 3000; map.set(k, (map.get(k) || 0) + 1); }
    total += [...map.values()].sort((a, b) => a - b)[10] + cells[round];
}
console.log(map.size, Math.round(total), p.y);
