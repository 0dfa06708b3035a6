// The law of parts: what is shown of some of them is what a report of those parts alone shows, to the last row.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { components } from "../../src/layout/components.ts";
import type { Head } from "../../src/data/head.ts";
import { Model } from "../../src/data/model.ts";
import { inside, Pack } from "../../src/data/pack.ts";
import { groupsOf, partNames, waysOf } from "../../src/data/partnames.ts";
import { needed, partsOf } from "../../src/data/parts.ts";
import { spread, trend } from "../../src/layout/trend.ts";
import { places, ranges } from "../../src/state/url.ts";

function random(seed: number) {
    let state = seed;
    return (below: number) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
    };
}

/** Opens a report, all columns unpacked. */
async function open(file: string): Promise<Model> {
    const page = readFileSync(file, "utf8");
    const element = (id: string) => new RegExp(`id="${id}">([^]*?)</script>`).exec(page)?.[1] ?? "";
    const pack = new Pack(JSON.parse(element("head")) as Head, inside(element("data"), async () => element("rest")));
    await pack.load(...Object.keys(pack.head.columns));
    return Model.open(pack);
}

/** Everything that a report says, by names, in an order that no number decides. */
function told(report: Model): string[] {
    const { side } = report;
    const events = report.pack.head.events.map(({ column }) => column);
    const list = (name: string) => side.column(name)?.values as ArrayLike<number>;
    const costs = (kind: string, at: number) => events.map((event) => list(`${kind}.${event}`)[at]);
    const name = (f: number) => `${report.object(f)}|${report.file(f)}|${report.names[f]}`;
    const out = [`total ${side.totals}`];
    const each = (kind: string, use: (f: number, at: number) => unknown[]) => {
        const from = list(`${kind}.from`);
        for (let f = 0; f < report.functions; f++) {
            for (let at = from[f]; at < from[f + 1]; at++) { out.push(`${kind} ${name(f)} ${use(f, at).join(" ")}`); }
        }
    };
    for (let f = 0; f < report.functions; f++) {
        if (list("fn.flags")[f] || list("fn.calls")[f] || costs("fn.incl", f).some((cost) => cost)) {
            out.push(`fn ${name(f)} ${[list("fn.flags")[f], list("fn.cycle")[f], list("fn.calls")[f], costs("fn.self", f), costs("fn.incl", f), costs("fn.seen", f)].join(" ")}`);
        }
    }
    Array.from(list("cy.number"), (number, at) => out.push(`cycle ${number} ${costs("cy.self", at)} ${costs("cy.incl", at)}`));
    each("arc", (_, at) => [name(list("arc.to")[at]), list("arc.count")[at], list("arc.within")[at], costs("arc.cost", at)]);
    const place = (kind: string, at: number, to = "") => [report.files[list(`${kind}.${to}file`)[at]], list(`${kind}.${to}line`)[at], list(`${kind}.${to}addr`)?.[at]];
    each("row", (_, at) => [...place("row", at), costs("row.cost", at)]);
    each("call", (_, at) => [...place("call", at), name(list("call.to")[at]), list("call.count")[at], costs("call.cost", at)]);
    each("jump", (_, at) => [...place("jump", at), ...place("jump", at, "to"), name(list("jump.tofn")[at]), list("jump.taken")[at], list("jump.executed")[at], list("jump.cond")[at]]);
    return out.sort();
}

/** A part of a run of few functions that call each other anyhow. */
function part(below: (n: number) => number, number: number): string {
    const lines = [`part: ${number}`, `thread: ${1 + below(3)}`, "positions: instr line", "events: Ir Dr"];
    for (let count = 1 + below(6); count > 0; count--) {
        const f = below(8);
        lines.push(`ob=o${f % 2}`, `fl=file${f % 3}.c`, `fn=f${f}`);
        for (let row = 1 + below(6); row >= 0; row--) {
            const at = `0x${(1 + below(9)).toString(16)} ${1 + below(4)}`;
            const to = below(8);
            switch (below(6)) {
                case 0: case 4: case 5: lines.push(`cob=o${to % 2}`, `cfi=file${to % 3}.c`, `cfn=f${to}`, `calls=${below(4)} 0x1 1`, `${at} ${below(90)} ${below(9)}`); break;
                case 1: lines.push(below(2) ? `jump=${1 + below(5)} 0x2 2` : `jcnd=${below(3)}/${3 + below(5)} 0x3 1`, at); break;
                case 2: lines.push(`fi=file${below(3)}.c`, `${at} ${below(50)} ${below(5)}`, `fe=file${f % 3}.c`); break;
                default: lines.push(`${at} ${below(100)}`);
            }
        }
    }
    return lines.join("\n");
}

test("some parts are what a report of them alone says", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cg-report-parts-"));
    const make = (name: string, texts: string[]) => {
        const profiles = texts.map((text, at) => join(folder, `${name}-${at}.cg`));
        texts.forEach((text, at) => writeFileSync(profiles[at], `# callgrind format\nversion: 1\ncreator: test\npid: ${7 + at}\ncmd: x\n${text}\n`));
        execFileSync(process.env.CG_REPORT as string, ["-o", join(folder, `${name}.html`), "--source=none", ...profiles]);
        return open(join(folder, `${name}.html`));
    };
    try {
        let cycles = 0;
        for (let seed = 1; seed <= 5; seed++) {
            const below = random(seed * 7919);
            const texts = [1, 2, 3].map((number) => part(below, number));
            // Files with several parts, and several files, are the same.
            const all = await make("all", seed % 2 ? texts : [`${texts[0]}\n\n${texts[1]}`, texts[2]]);
            const parts = partsOf(all);
            assert.ok(parts && parts.count === 3);
            assert.equal(parts.of([0, 1, 2]), all);
            for (const chosen of [[0], [1], [2], [0, 2], [1, 2]]) {
                const some = parts.of(chosen);
                const alone = await make("alone", chosen.map((at) => texts[at]));
                assert.deepEqual(told(some), told(alone), `seed ${seed}, parts ${chosen}`);
                cycles += some.side.now("cy.number").length;
            }
        }
        assert.ok(cycles > 5, `${cycles} cycles`);
    } finally {
        rmSync(folder, { recursive: true });
    }
});

test("all parts together are the whole", async () => {
    const all = await open(join(process.env.REPORTS as string, "threads.html"));
    assert.ok(needed(all.pack).every((name) => all.pack.has(name)));
    const parts = partsOf(all);
    assert.ok(parts);
    const models = [0, 1, 2].map((at) => parts.of([at]));
    for (const name of ["fn.self.0", "fn.calls"]) {
        const sum = Array.from({ length: all.functions }, (_, f) => models.reduce((total, { side }) => total + side.now(name)[f], 0));
        assert.deepEqual(sum, [...all.side.now(name)], name);
    }
    assert.deepEqual(models.map(({ side }) => side.totals), [["161211"], ["280"], ["280"]]);
    assert.deepEqual(told(models[1]), told(await open(join(process.env.REPORTS as string, "thread-2.html"))));
});

test("components are groups of mutual reach", () => {
    const below = random(99);
    for (let round = 0; round < 300; round++) {
        const nodes = 1 + below(10);
        const lists = Array.from({ length: nodes }, () => Array.from({ length: below(3) }, () => below(nodes)));
        const from = [0];
        lists.forEach((list) => from.push(from[from.length - 1] + list.length));
        const group = components(from, lists.flat());
        const reach = lists.map((_, node) => { const seen = new Set([node]); for (const at of seen) { lists[at].forEach((end) => seen.add(end)); } return seen; });
        for (let a = 0; a < nodes; a++) { for (let b = 0; b < nodes; b++) { assert.equal(group[a] === group[b], reach[a].has(b) && reach[b].has(a)); } }
    }
    const long = 200_000;
    assert.equal(new Set(components(Array.from({ length: long + 1 }, (_, at) => Math.min(at, long - 1)), Array.from({ length: long - 1 }, (_, at) => at + 1))).size, long);
});

test("parts are named by what tells them apart", () => {
    const head = (parts: object[], files = ["a.out.1"]) => ({ parts: parts.map((part) => ({ input: 0, desc: [], totals: [], ...part })), sides: [{ inputs: files.map((name) => ({ name })) }] }) as unknown as Head;
    assert.deepEqual(partNames(head([{ number: 1, thread: 1 }, { number: 2, thread: 1 }])), ["part 1", "part 2"]);
    assert.deepEqual(partNames(head([{ number: 1, thread: 1, pid: 4 }, { number: 1, thread: 2, pid: 5 }])), ["process 4 \u00b7 thread 1", "process 5 \u00b7 thread 2"]);
    assert.deepEqual(partNames(head([{}, { input: 1 }], ["x/a", "y/a"])), ["x/a", "y/a"]);
    assert.deepEqual(partNames(head([{}, {}])), ["no. 1", "no. 2"]);
    const tree = head([{ number: 1, pid: 7, program: "cc" }, { number: 1, pid: 8, program: "cc" }, { number: 1, pid: 9 }]);
    assert.deepEqual(partNames(tree), ["cc 7", "cc 8", "process 9"]);
    const two = head([{ number: 1, thread: 1 }, { number: 1, thread: 2 }, { number: 2, thread: 1 }, { number: 2, thread: 2 }]);
    assert.deepEqual(waysOf(two), ["part", "thread"]);
    assert.deepEqual(groupsOf(two, "thread"), [{ name: "thread 1", parts: [0, 2] }, { name: "thread 2", parts: [1, 3] }]);
});

test("parts in links are ranges", () => {
    assert.equal(ranges([1, 2, 3, 6]), "2-4,7");
    assert.equal(ranges([]), "");
    assert.deepEqual(places("2-4,7,x,0-1,999999999", 8), [0, 1, 2, 3, 6]);
    assert.deepEqual(places("1-999999999", 3), [0, 1, 2]);
    const below = random(3);
    for (let round = 0; round < 100; round++) {
        const list = Array.from({ length: 20 }, (_, at) => at).filter(() => below(2));
        assert.deepEqual(places(ranges(list), 20), list);
    }
});

test("spread and trend of values", () => {
    assert.deepEqual([spread([2, 6, 3]), spread([0, 0]), spread([0, 1]), spread([5])], [3, 1, Infinity, 1]);
    assert.ok(Math.abs(trend([1, 2, 3]) - 0.5) < 1e-12);
    assert.deepEqual([trend([4, 4]), trend([3]), trend([0, 0])], [0, 0, 0]);
});
