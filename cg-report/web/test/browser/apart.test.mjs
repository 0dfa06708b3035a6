// Inlined functions in their callers, or of their own: self costs change hands and add up.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, rows, settled, shutOut } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

const own = ".inlined-switch button:nth-child(2)";

/** Inclusive and self costs by function. */
async function figures(page) {
    await settled(page);
    return Object.fromEntries((await rows(page, "Functions")).map((row) => [row.at(-1), row.slice(0, 2).join(" ")]));
}

test("self costs of inlined functions change hands, and nothing else changes", async () => {
    const page = await open(context, "apart", "#v=1&num=absolute&p=overview,calltree");
    assert.deepEqual(await figures(page), { main: "610 311", work: "259 259", leaf: "40 40" });
    await page.locator(own).click();
    assert.deepEqual(await figures(page), { main: "610 11", mix: "540 500", work: "259 59", leaf: "40 40" });
    const again = await open(context, "apart", new URL(page.url()).hash);
    assert.deepEqual(await figures(again), await figures(page), "the link says it");
    assert.deepEqual(await shutOut(again), []);
    await again.close();
    await page.locator("#tab-1-calls").click();
    await page.locator(".navigator .row", { hasText: "mix" }).dblclick();
    await settled(page);
    assert.deepEqual((await rows(page, "Callers")).map((row) => [row.at(-1), row[0]]), [["main", "340"], ["work", "200"]]);
    assert.deepEqual((await rows(page, "Callees")).map((row) => [row.at(-1), row[0], row[1]]), [["leaf", "40", "4"]]);
    await page.keyboard.press("i");
    assert.deepEqual(await figures(page), { main: "610 311", work: "259 259", leaf: "40 40" });
    assert.deepEqual(page.faults, []);
    await page.close();
});

for (const view of ["flame", "graph", "treemap", "calls", "calltree", "functions", "code", "overview"]) {
    test(`${view} shows inlined functions of their own`, async () => {
        const page = await open(context, "apart", "#v=1&own=inlined&p=functions,flame");
        await page.locator(".navigator .row", { hasText: "mix" }).dblclick();
        await page.locator(`#tab-1-${view}`).click();
        await settled(page);
        assert.match(await page.locator("#pane-1").innerText() + await page.locator("#pane-1 .hidden").allInnerTexts(), view === "calls" ? /main\s[^]*work\s[^]*leaf/ : /mix/);
        assert.deepEqual(page.faults, []);
        await page.close();
    });
}

test("causes of a change name inlined functions and add up", async () => {
    const page = await open(context, "apart-diff", "#v=1&num=absolute&p=why,functions");
    await settled(page);
    const inside = await page.locator("#pane-0").innerText();
    assert.ok(!/\bmix\b/.test(inside), inside);
    await page.locator(own).click();
    await settled(page);
    const apart = await page.locator("#pane-0").innerText();
    assert.match(apart, /mix/);
    assert.match(apart, /\+200/);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("instructions with debug information are enough, and the code stays with the function that it is in", async () => {
    const page = await open(context, "inline", "#v=1&num=absolute&own=inlined&p=functions,code");
    const found = await figures(page);
    assert.ok(found.twice && found.step && found.work, JSON.stringify(found));
    const sum = Object.values(found).reduce((all, cell) => all + Number(cell.split(" ")[1].replaceAll(",", "")), 0);
    assert.equal(sum, 1015, JSON.stringify(found));
    await page.locator(".navigator .row", { hasText: "work" }).dblclick();
    await settled(page);
    assert.ok(await page.locator("#pane-1 .lines[aria-label=\"Machine code\"] .line").count() > 5);
    assert.deepEqual(page.faults, []);
    await page.close();
});
