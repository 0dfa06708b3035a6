// Data objects, streams, distances and shared lines beside the file that they are from, which is read here line by line.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, rows, settled, shutOut } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

const raw = execFileSync("xz", ["-dc", resolve("../tests/data/shared.mem.xz")], { maxBuffer: 1 << 28 }).toString().trim().split("\n").map((line) => JSON.parse(line));
const [head, ...lines] = raw;
const number = (text) => Number(text.replaceAll(",", ""));

test("objects have the misses of the file, and open into streams in words", async () => {
    const page = await open(context, "memory", "#v=1&p=memory,overview&num=absolute");
    await settled(page);
    const shown = await rows(page, "Data objects");
    const [reads, writes] = ["D1mr", "D1mw"].map((name) => head.events.indexOf(name));
    const missed = lines.filter((line) => "kind" in line).map(({ counts }) => counts[reads] + counts[writes]).sort((a, b) => b - a);
    assert.deepEqual(shown.slice(0, 8).map((row) => number(row[1])), missed.slice(0, 8));
    assert.match(shown[0].join(" "), /turned/, "it is called by the variable");
    const place = shown.findIndex((row) => row[0].endsWith("turned"));
    await page.locator('[aria-label="Data objects"] .row').nth(place).click();
    await page.keyboard.press("ArrowRight");
    await settled(page);
    const opened = await rows(page, "Data objects");
    assert.match(opened.map((row) => row[0]).join("\n"), /write turned\[.*600.*\]/, "its stream goes down columns");
    assert.match(await page.locator(".hint").first().innerText(), /exchange the loops/);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("a double click on an object shows the code of its allocation", async () => {
    const page = await open(context, "memory", "#v=1&p=memory,overview");
    await settled(page);
    await page.locator('[aria-label="Data objects"] .row').filter({ hasText: "turned" }).first().dblclick();
    await settled(page);
    assert.equal(await page.locator(".crumb-bar .here").innerText(), "main");
    assert.equal(await page.locator(".pane").nth(1).locator("[role=tab][aria-selected=true]").innerText(), "Code");
    await page.close();
});

test("distances are told for caches of each size", async () => {
    const page = await open(context, "memory", "#v=1&p=memory,overview&num=absolute");
    await page.getByRole("button", { name: "Distances" }).click();
    await page.getByRole("button", { name: "Lines", exact: true }).click();
    await settled(page);
    // 32 KiB are 512 lines of 64 bytes: what lies behind the bin of 256 to 511.
    const known = lines.filter((line) => "reuse" in line).map(({ first = 0, bins }) => first + bins.slice(10).reduce((sum, count) => sum + count, 0)).sort((a, b) => b - a);
    const shown = (await rows(page, "Distances")).map(([first]) => number(first));
    assert.ok(shown.length > 5);
    assert.deepEqual(shown, known.slice(0, shown.length));
    const all = lines.filter((line) => "reuse" in line).reduce((sum, { first = 0, bins }) => sum + bins.reduce((a, b) => a + b, first), 0);
    assert.equal(all, head.reuse.accesses);
    assert.match(await page.locator(".foot").filter({ hasText: "accesses" }).innerText(), new RegExp(all.toLocaleString("en-US")));
    await page.getByRole("button", { name: "Functions", exact: true }).click();
    await settled(page);
    const functions = (await rows(page, "Distances")).map((row) => [number(row[0]), row[row.length - 1]]);
    const turn = lines.filter((line) => line.reuse === "turn").reduce((sum, { first = 0, bins }) => sum + first + bins.slice(10).reduce((a, b) => a + b, 0), 0);
    assert.ok(functions.some(([misses, name]) => misses === turn && /turn$/.test(name)), "a function is its lines");
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("lines that threads share are told with who uses which bytes", async () => {
    const page = await open(context, "memory", "#v=1&p=memory,overview&num=absolute");
    await page.getByRole("button", { name: "Sharing" }).click();
    await settled(page);
    const shown = await rows(page, "Shared lines");
    const row = lines.filter((line) => "sharing" in line).sort((a, b) => sum(b) - sum(a))[0];
    assert.equal(row.sharing, "false");
    assert.deepEqual(shown[0].slice(1, 4).map(number), [row.uses.reduce((all, use) => all + use.reads, 0), row.uses.reduce((all, use) => all + use.writes, 0), row.lines]);
    assert.match(shown[0][0], /false counts/);
    assert.match(shown[1][0], /T\d reads and writes counts\+0\.\.31/);
    assert.match(shown[2][0], /T\d reads and writes counts\+32\.\.63/);
    // Half of the line each, as the strip shows.
    const widths = await page.evaluate(() => [...document.querySelectorAll(".bytes-used")].slice(0, 2).map((strip) => [...strip.children].map((part) => `${part.className} ${part.style.width}`)));
    assert.deepEqual(widths, [["written 50%", " 50%"], [" 50%", "written 50%"]]);
    await page.close();
});

const sum = (row) => row.uses.reduce((all, use) => all + use.reads + use.writes, 0);

test("a report without data objects has no view of them", async () => {
    const page = await open(context, "exact", "#v=1&p=memory,overview");
    await settled(page);
    assert.equal(await page.locator("[role=tab]").filter({ hasText: "Memory" }).count(), 0);
    await page.close();
});

for (const theme of ["light", "dark"]) {
    test(`nobody is shut out of what is told of memory in the ${theme} theme`, async () => {
        const page = await open(context, "memory", "#v=1&p=memory,cache");
        await page.emulateMedia({ colorScheme: theme });
        for (const kind of ["Objects", "Distances", "Sharing"]) {
            await page.getByRole("button", { name: kind }).click();
            await settled(page);
            assert.deepEqual(await shutOut(page), [], `${kind} ${theme}`);
        }
        await page.getByRole("button", { name: "Picture" }).click();
        await settled(page);
        assert.deepEqual(await shutOut(page), [], `misses ${theme}`);
        await page.close();
    });
}
