// Every view on real profiles, and its numbers against those of the command line.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, report, rows, settled, shutOut, VIEWS } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

const FIXTURES = ["rust", "cpp", "cc1", "cachegrind", "threads", "exact", "hostile", "loop", "inline", "chains", "chains-two", "chains-diff"];

for (const fixture of FIXTURES) {
    test(`every view of ${fixture} shows something and nothing goes wrong`, async () => {
        const page = await open(context, fixture);
        await page.locator(".navigator .row").first().dblclick();
        for (const view of VIEWS) {
            await page.locator(`#tab-0-${view}`).click();
            await settled(page);
            const text = await page.locator("#pane-0").innerText();
            assert.ok(!text.includes("This view failed"), `${view}: ${text}`);
            assert.ok(text.trim().length > 10, `${view} is empty`);
            if (fixture !== "cachegrind" && ["flame", "treemap"].includes(view)) {
                const colours = await page.evaluate(() => {
                    const canvas = document.querySelector("#pane-0 canvas");
                    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, Math.min(60, canvas.height));
                    const found = new Set();
                    for (let at = 0; at < data.length; at += 4) { if (data[at + 3]) { found.add(data.slice(at, at + 3).join()); } }
                    return found.size;
                });
                assert.ok(colours >= 2, `${view} is blank: ${colours} colours`);
            }
            if (fixture === "cachegrind" && ["flame", "graph", "treemap", "calls", "calltree"].includes(view)) {
                assert.match(text, /no calls/, "says why there is nothing");
            }
        }
        assert.deepEqual(page.faults, []);
        await page.close();
    });
}

const data = resolve(import.meta.dirname, "../../../tests/data");

for (const [fixture, file] of [["rust", "rust.cg.xz"], ["cpp", "cpp.cg.xz"], ["cc1", "cc1.cg.xz"], ["exact", "exact.cg"]]) {
    test(`inclusive costs and calls of ${fixture} are those of callgrind_annotate`, async () => {
        const told = JSON.parse(execFileSync(process.env.CALLGRIND_ANNOTATE,
            ["--json", "--auto=no", "--inclusive=yes", "--threshold=100", resolve(data, file)], { maxBuffer: 1 << 28 }));
        const known = new Map();
        for (const entry of told.functions) {
            if (entry.function === null || entry.function === undefined) { continue; }
            known.set(entry.function, [...(known.get(entry.function) ?? []), entry.inclusive[0]]);
        }
        const page = await open(context, fixture, "#v=1&own=contexts");
        await page.getByRole("button", { name: "123" }).click();
        await page.getByTitle("Shorten templates and generics").click();
        await settled(page);
        let seen = 0;
        for (const [inclusive, , , name] of await rows(page, "Functions")) {
            const plain = name.replace(/^[\u21bb\u25d0]+/u, "");
            if (!known.has(plain)) { continue; }
            assert.ok(known.get(plain).includes(Number(inclusive.replaceAll(",", ""))), `${plain}: ${inclusive}, not ${known.get(plain)}`);
            seen += 1;
        }
        assert.ok(seen >= Math.min(7, known.size), `only ${seen} functions were compared`);
        const total = await page.locator(".totals tbody tr").first().locator("td").first().innerText();
        assert.equal(Number(total.replaceAll(",", "")), told.total[0]);
        assert.deepEqual(page.faults, []);
        await page.close();
    });
}

test("callers and callees are those of the profile, and a cycle has no cost within", async () => {
    const page = await open(context, "exact");
    await page.locator(".navigator .row", { hasText: "shared" }).dblclick();
    await page.locator("#tab-0-calls").click();
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    assert.deepEqual((await rows(page, "Callers")).map((row) => [row[0], row[1], row[3]]), [["400", "10", "right"], ["100", "5", "left"]]);
    assert.deepEqual((await rows(page, "Callees")).map((row) => [row[0], row[1], row[3]]), [["150", "3", "\u21bbeven"]]);
    await page.locator(".navigator .row", { hasText: "even" }).dblclick();
    await settled(page);
    const callees = await rows(page, "Callees");
    assert.deepEqual(callees.map((row) => [row[0], row[1], row[3]]), [["\u21bb", "4", "\u21bbodd"]]);
    await page.close();
});

test("estimated cells are marked and exact ones are not", async () => {
    const page = await open(context, "exact", "#v=1&p=flame,code");
    await settled(page);
    const chart = page.locator("#pane-0 .picture");
    await chart.focus();
    const said = [];
    for (let at = 0; at < 5; at++) {
        await page.keyboard.press("ArrowDown");
        said.push(await page.locator("#pane-0 [aria-live]").innerText());
    }
    // main, right and shared below right are sums of counts; what shared hands on there is a share.
    assert.deepEqual(said.map((text) => text.includes("about")), [false, false, false, true, true], said.join("\n"));
    assert.match(said[2], /^shared, 40\.00 %/);
    assert.match(said[3], /^even, about 12\.00 %/);
    await page.close();
});

test("shares are of the program, or of what contains a thing, in every view and in the link", async () => {
    const page = await open(context, "exact", "#v=1&p=calls,code");
    const callers = async () => (await rows(page, "Callers")).map((row) => [row[0], row[3]]);
    await page.locator(".navigator .row", { hasText: "shared" }).dblclick();
    await settled(page);
    const line = page.locator("#pane-1 .source .line:not(.columns)", { hasText: "30" }).first().locator(".value");
    assert.deepEqual(await callers(), [["40.00", "right"], ["10.00", "left"]]);
    assert.equal(await line.innerText(), "35.00");
    await page.keyboard.press("r");
    await settled(page);
    // It costs 500 with all that it calls; the functions that call it are its parents in no list, and stay shares of the program.
    assert.deepEqual(await callers(), [["80.00", "right"], ["20.00", "left"]]);
    assert.deepEqual((await rows(page, "Callees")).map((row) => row[0]), ["30.00"]);
    assert.equal(await line.innerText(), "70.00");
    assert.deepEqual((await rows(page, "Functions")).slice(0, 2).map((row) => row[0]), ["100.00", "60.00"]);
    await page.locator("#tab-1-graph").click();
    await settled(page);
    const figures = await page.locator("#pane-1 .node.root .figures").innerHTML();
    assert.match(figures, /100\.00 %/);
    assert.match(page.url(), /[&#]num=parent(&|$)/);
    await page.keyboard.press("h");
    await page.locator("#tab-0-flame").click();
    await settled(page);
    await page.locator("#pane-0 .picture").focus();
    const said = [];
    for (let at = 0; at < 4; at++) {
        await page.keyboard.press("ArrowDown");
        said.push(await page.locator("#pane-0 [aria-live]").innerText());
    }
    assert.match(said[1], /^right, 60\.00 %/);
    assert.match(said[2], /^shared, 66\.67 %/);
    assert.match(said[3], /^even, about 30\.00 %/);
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    assert.equal(await page.getByRole("button", { name: "%\u2191" }).getAttribute("aria-pressed"), "true");
    await page.keyboard.press("r");
    await settled(page);
    assert.equal(await page.getByRole("button", { name: "%", exact: true }).getAttribute("aria-pressed"), "true");
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("source lines have their costs and calls", async () => {
    const page = await open(context, "exact", "#v=1&p=code,flame");
    await page.locator(".navigator .row", { hasText: "main" }).first().dblclick();
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const lines = await page.locator("#pane-0 .lines [role=row]").allInnerTexts();
    const flat = lines.map((line) => line.replace(/\s+/g, " ").trim());
    assert.ok(flat.some((line) => line.startsWith("100 1")), flat.join("\n"));
    assert.ok(flat.some((line) => /^600 ▸ right 2×/.test(line)), flat.join("\n"));
    await page.close();
});

test("an embedded source is shown with its text", async () => {
    const page = await open(context, "rust", "#v=1&p=code,flame");
    await page.locator("#search").fill("small::main");
    await page.locator(".navigator .row", { hasText: "small::main" }).first().dblclick();
    await settled(page);
    const file = page.locator("#pane-0 .choice select");
    await file.selectOption(await file.locator("option", { hasText: "small.rs" }).getAttribute("value"));
    await page.waitForFunction(() => document.querySelector("#pane-0 .lines")?.textContent.includes("lookup(&map, &keys)"));
    assert.ok(await page.locator("#pane-0 .t-keyword").count() > 3, "and with colours");
    await page.close();
});

test("machine code has costs, calls, jumps and what was never executed", async () => {
    const page = await open(context, "loop", "#v=1&p=code,loops&e2=Bcm");
    await page.locator(".navigator .row", { hasText: "below main" }).dblclick();
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const flat = async () => (await page.locator("#pane-0 [aria-label='Machine code'] [role=row]").allInnerTexts()).map((line) => line.replace(/\s+/g, " ").trim());
    const lines = await flat();
    assert.ok(lines.some((line) => /^200 8 40100d je /.test(line) && line.includes("taken 100 of 200")), lines.join("\n"));
    assert.ok(lines.some((line) => /^20 ▸ work 10×/.test(line)), lines.join("\n"));
    assert.ok(lines.some((line) => /^0 401028 nop$/.test(line)), lines.join("\n"));
    assert.equal(lines.filter((line) => /^\d+ (\d+ )?4010/.test(line)).length, 14);
    assert.equal(await page.locator("#pane-0 .machine .jump").count(), 3);
    assert.equal(await page.locator("#pane-0 .machine .jump.backward").count(), 2);
    await page.getByRole("button", { name: "Intel" }).click();
    await settled(page);
    assert.ok((await flat()).some((line) => line.includes("mov ebx,0xa") || line.includes("mov ebx,0Ah")), "other syntax");
    // Source and machine code are linked.
    await page.locator("#pane-0 .source:not(.machine) .line", { hasText: "dec %edx" }).hover();
    assert.equal(await page.locator("#pane-0 .machine .line.lit").count(), 1);
    assert.match(await page.locator("#pane-0 .machine .line.lit").innerText(), /dec/);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("blocks of a function are a graph whose ways were taken as often as the program did", async () => {
    const page = await open(context, "loop", "#v=1&p=flow,loops");
    await page.locator(".navigator .row").first().dblclick();
    await page.waitForSelector(".flow .arc");
    await settled(page);
    const ways = await page.evaluate(() => [...document.querySelectorAll(".flow .arc title")].map((title) => title.textContent.replaceAll("loop.s:", "")));
    const [end] = ways.filter((way) => /^15 \u2192 .*: 1\u00d7$/.test(way));
    assert.deepEqual(ways.sort(), [end, "5 \u2192 7: 1\u00d7", "7 \u2192 9: 10\u00d7", "9 \u2192 11: 100\u00d7", "9 \u2192 13: 100\u00d7", "11 \u2192 13: 100\u00d7",
        "13 \u2192 9: 190\u00d7", "13 \u2192 15: 10\u00d7", "15 \u2192 7: 9\u00d7"].sort());
    // By keys: down to where it goes most often, and round the inner loop.
    const graph = page.getByLabel("Control flow graph");
    const here = () => graph.locator("[aria-live]").innerText();
    await graph.focus();
    for (const [key, line] of [["ArrowDown", 7], ["ArrowDown", 9], ["ArrowLeft", 7], ["ArrowRight", 9], ["ArrowUp", 13], ["ArrowDown", 9]]) {
        await page.keyboard.press(key);
        assert.match(await here(), new RegExp(`^loop\\.s:${line},`), `${key} to ${line}`);
    }
    assert.deepEqual(await shutOut(page), []);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("loops have entries, iterations and costs of each", async () => {
    const page = await open(context, "loop", "#v=1&p=loops,code&e2=Bcm");
    await page.locator(".navigator .row", { hasText: "below main" }).dblclick();
    await settled(page);
    const loops = await rows(page, "Loops");
    // Where, self, entries, iterations, iterations an entry, cost and mispredictions of each.
    assert.deepEqual(loops.map((row) => [row[0].split(" ")[0], ...row.slice(2)]), [["loop.s:7", "1", "10", "10", "94", "3.20"], ["loop.s:9", "10", "200", "20", "4.50", "0.14"]]);
    await page.close();
});

test("inlined functions have their own exact cost", async () => {
    const page = await open(context, "inline", "#v=1&p=inlined,code");
    await page.getByRole("button", { name: "123" }).click();
    await page.locator(".navigator .row", { hasText: "work" }).dblclick();
    await settled(page);
    const own = Number((await rows(page, "Functions")).find((row) => row[3] === "work")[1].replaceAll(",", ""));
    const inlined = (await rows(page, "Inlined")).map(([name, all, self, site]) => [name, Number(all.replaceAll(",", "")), Number(self.replaceAll(",", "")), site]);
    assert.deepEqual(inlined.map(([name, , , site]) => `${name} ${site}`).sort(), ["step inline.c:7", "twice inline.c:4", "twice inline.c:8", "work "]);
    assert.equal(inlined.reduce((sum, row) => sum + row[2], 0), own, "self costs are a partition");
    assert.equal(inlined[0][1], own);
    const heads = await page.locator("#pane-1 .line.inlined").allInnerTexts();
    assert.ok(heads.some((text) => text.trim() === "twice \u2039 step"), heads.join("|"));
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("groups add up and filter functions", async () => {
    const page = await open(context, "cpp");
    await page.getByRole("tab", { name: "Groups" }).click();
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const objects = await rows(page, "Groups");
    const sum = objects.reduce((all, row) => all + Number(row[1].replaceAll(",", "")), 0);
    const total = await page.locator(".totals tbody tr").first().locator("td").first().innerText();
    assert.equal(sum, Number(total.replaceAll(",", "")));
    await page.locator("[aria-label=Groups] .row", { hasText: "shapes" }).first().click();
    assert.match(await page.locator("#search").inputValue(), /^obj:.*shapes/);
    await page.close();
});

test("the search finds by word, expression, place and cost", async () => {
    const page = await open(context, "exact");
    const names = async (text) => {
        await page.locator("#search").fill(text);
        await settled(page);
        await page.waitForTimeout(80);
        return (await rows(page, "Functions")).map((row) => row[3].replace("\u21bb", "")).sort();
    };
    assert.deepEqual(await names("ef"), ["left"]);
    assert.deepEqual(await names("self>15%"), ["left", "right", "shared"]);
    assert.deepEqual(await names("calls>5 file:exact"), ["even", "shared"]);
    await page.locator("#search").fill("/^(odd|even)$/");
    await page.waitForFunction(() => document.querySelectorAll(".navigator .row").length === 2);
    assert.deepEqual(await names("obj:nothing"), []);
    await page.locator("#search").fill("/(((a+)+)+)+$/");
    await page.waitForTimeout(200);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("rates of cache misses are those of callgrind_annotate's counts", async () => {
    const told = JSON.parse(execFileSync(process.env.CALLGRIND_ANNOTATE,
        ["--json", "--auto=no", "--inclusive=yes", "--threshold=100", resolve(data, "cpp.cg.xz")], { maxBuffer: 1 << 28 }));
    const at = (name) => told.events.findIndex((event) => (event.name ?? event) === name);
    const page = await open(context, "cpp", "#v=1&p=cache,flame&own=contexts");
    await page.locator("#pane-0").getByRole("button", { name: "Inclusive" }).click();
    await page.getByTitle("Shorten templates and generics").click();
    await settled(page);
    const heads = (await page.locator("#pane-0 [role=columnheader]").allInnerTexts()).map((text) => text.replace(/[\u25be\u25b4]/u, "").trim());
    let seen = 0;
    for (const row of await rows(page, "Caches")) {
        const name = row[0].replace(/^[\u21bb\u25d0]+/u, "");
        const entries = told.functions.filter((entry) => entry.function === name);
        if (entries.length !== 1) { continue; }
        const costs = entries[0].inclusive;
        const sum = (...names) => names.reduce((all, event) => all + costs[at(event)], 0);
        const said = (title) => row[heads.indexOf(title)];
        assert.equal(Number(said("L1m").replaceAll(",", "")), sum("I1mr", "D1mr", "D1mw"), name);
        assert.equal(Number(said("LLm").replaceAll(",", "")), sum("ILmr", "DLmr", "DLmw"), name);
        for (const [title, misses, of] of [["D1 rd %", "D1mr", "Dr"], ["D1 wr %", "D1mw", "Dw"], ["DL rd %", "DLmr", "Dr"]]) {
            const share = (sum(misses) * 100) / sum(of);
            const expected = sum(of) === 0 ? "\u2013" : share > 0 && share < 0.005 ? "<0.01" : share.toFixed(2);
            assert.equal(said(title), expected, `${name} ${title}`);
        }
        seen += 1;
    }
    assert.ok(seen >= 5, `only ${seen} functions were compared`);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("there is no cache view where no caches were simulated", async () => {
    const page = await open(context, "exact");
    assert.equal(await page.locator("#tab-0-cache").count(), 0);
    await page.close();
});

test("columns come from the blob, or from the page, once their text was put away", async () => {
    for (const room of [true, false]) {
        const page = await context.newPage();
        // A browser without room for a blob says so when it is read.
        if (!room) { await page.addInitScript(() => { Blob.prototype.text = () => Promise.reject(new Error("no room")); }); }
        await page.goto(report("exact", "#v=1&p=overview,flame"));
        await page.waitForSelector("html[data-ready]");
        await page.waitForTimeout(1300);
        await page.locator("#tab-0-code").click();
        await settled(page);
        assert.ok(await page.locator("#pane-0 .source .line").count() > 3);
        assert.equal(await page.locator(".note.fault").count(), 0);
        await page.close();
    }
});
