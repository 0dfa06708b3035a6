// Several profiles: switched between under their labels, and runs of one thing with what they differ by.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, rows, settled } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

test("profiles that are not added up are switched between, in all views and in the link", async () => {
    const page = await open(context, "sets", "#v=1&p=overview,flame");
    await settled(page);
    const total = () => page.locator(".program .number").getAttribute("title");
    assert.equal(await total(), "1,000 Ir");
    const set = page.locator(".chosen-set select");
    assert.deepEqual(await set.locator("option").allInnerTexts(), ["before", "after", "all, added up"]);
    assert.ok(!page.url().includes("part="), page.url());
    await set.selectOption("1");
    await settled(page);
    assert.equal(await total(), "1,150 Ir");
    const again = await open(context, "sets", new URL(page.url()).hash);
    await settled(again);
    assert.equal(await again.locator(".program .number").getAttribute("title"), "1,150 Ir");
    await again.close();
    await page.bringToFront();
    await set.selectOption("2");
    await settled(page);
    assert.equal(await total(), "2,150 Ir");
    const both = await open(context, "sets", new URL(page.url()).hash);
    await settled(both);
    assert.equal(await both.locator(".program .number").getAttribute("title"), "2,150 Ir");
    assert.deepEqual([...page.faults, ...both.faults], []);
    await both.close();
    await page.close();
});

test("a formula of the command line is an event like any other", async () => {
    const page = await open(context, "sets", "#v=1&p=overview,flame&e=Work");
    await settled(page);
    // 1000 Ir and 100 Dr.
    assert.equal(await page.locator(".program .number").getAttribute("title"), "1,300 Work");
    assert.match(await page.locator(".totals").innerText(), /Work\s+1,300\s+Ir \+ 3 Dr/);
    await page.close();
});

test("runs are told with their spread, and a change within it is grey", async () => {
    const page = await open(context, "runs", "#v=1&p=overview,functions");
    await settled(page);
    // The ones in the middle: 80 + 50, and of two the smaller one, 60 + 20.
    const totals = (await page.locator(".totals tbody tr").first().innerText()).replace(/\s+/g, " ");
    assert.match(totals, /Ir 130 80 .*\+50/);
    const runs = (await page.locator(".runs").innerText()).replace(/\s+/g, " ");
    assert.match(runs, /New: 3 runs, 120 to 150 Ir/);
    assert.match(runs, /130 r2\.cg shown/);
    assert.match(runs, /Base: 2 runs, 80 to 95 Ir/);
    const kinds = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".navigator .row")].map((row) =>
        [row.querySelector(".name").textContent, row.querySelector(".delta").className])));
    // 70 to 100 and 60 to 75 overlap; 50 and 20 do not.
    assert.deepEqual(kinds, { steady: "delta noise", grown: "delta more" });
    assert.ok((await rows(page, "Functions")).length === 2);
    assert.deepEqual(page.faults, []);
    await page.close();
});
