// Functions that a run told apart by callers and levels of recursion: one at first, apart on demand, and the command line's numbers for either.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, rows, settled, shutOut, VIEWS } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

const merged = ".contexts-switch button:first-of-type";
const apart = ".contexts-switch button:last-of-type";

/** Inclusive costs by function, as the table of functions has them. */
async function figures(page) {
    await settled(page);
    return Object.fromEntries((await rows(page, "Functions")).map((row) => [row.at(-1).replace(/^[\u21bb\u25d0]+/u, ""), Number(row[0].replaceAll(",", ""))]));
}

/** The same from the command line. */
function told(file) {
    const data = resolve(import.meta.dirname, "../../../tests/data");
    const json = JSON.parse(execFileSync(process.env.CALLGRIND_ANNOTATE, ["--json", "--auto=no", "--inclusive=yes", "--threshold=100", resolve(data, file)]));
    return Object.fromEntries(json.functions.filter((entry) => entry.function).map((entry) => [entry.function, entry.inclusive[0]]));
}

async function calledBy(page, name) {
    await page.locator(".navigator .row", { hasText: name }).first().dblclick();
    await page.locator("#tab-1-calls").click();
    await settled(page);
    return (await rows(page, "Callers")).map((row) => [row.at(-1), row[0], row[2]].join(" ")).sort();
}

test("functions are one at first, as in a profile without contexts, and apart as this one says", async () => {
    const page = await open(context, "contexts", "#v=1&num=absolute&p=overview,code");
    assert.deepEqual(await figures(page), told("contexts-plain.cg"));
    assert.deepEqual(await shutOut(page), []);
    await page.locator(apart).click();
    assert.deepEqual(await figures(page), told("contexts.cg"));
    assert.ok((await figures(page))["shared'left'main'(below main)"] > 0);
    const again = await open(context, "contexts", new URL(page.url()).hash);
    assert.deepEqual(await figures(again), told("contexts.cg"), "the link says it");
    await again.close();
    await page.keyboard.press("o");
    assert.deepEqual(await figures(page), told("contexts-plain.cg"));
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("what was wanted last is what is shown, however long data takes, and the page says that it is at work", async () => {
    const page = await open(context, "contexts", "#v=1&num=absolute&p=overview,code", 250);
    for (const [times, file] of [[1, "contexts.cg"], [2, "contexts.cg"], [3, "contexts-plain.cg"]]) {
        for (let at = 0; at < times; at++) { await page.keyboard.press("o"); }
        if (times === 1) { assert.equal(await page.locator(".shell").getAttribute("aria-busy"), "true"); }
        assert.deepEqual(await figures(page), told(file), `${times} times`);
    }
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("what is damaged elsewhere does not keep contexts away, and damaged contexts are said, not waited for", async () => {
    const whole = readFileSync(join(process.env.REPORTS, "contexts.html"), "utf8");
    for (const [name, column, file] of [["code", "row.cost.0", "contexts.cg"], ["contexts", "c.fn.flags", "contexts-plain.cg"]]) {
        const damaged = whole.replace(new RegExp(`("${column.replaceAll(".", "\\.")}": \\[\\d+, )\\d+`), "$14");
        assert.notEqual(damaged, whole, column);
        writeFileSync(join(process.env.REPORTS, `damaged-${name}.html`), damaged);
        const page = await open(context, `damaged-${name}`, "#v=1&num=absolute&p=code,calls&n=shared");
        if (name === "code") { await page.locator(".note.fault").waitFor(); }
        await page.locator("#tab-0-overview").click();
        await page.locator(apart).click();
        assert.deepEqual(await figures(page), told(file), name);
        assert.match(await page.locator(".note.fault").innerText(), /damaged/);
        await page.close();
    }
});

test("what is active stays, with its most expensive context, and back", async () => {
    const page = await open(context, "contexts", "#v=1&num=absolute&p=code,calls");
    assert.deepEqual((await calledBy(page, "shared")).map((row) => row.split(" ")[0]), ["left", "right"]);
    const code = page.locator("#pane-0 .lines[aria-label=\"Machine code\"] .line");
    const before = await code.count();
    await page.locator(apart).click();
    await settled(page);
    assert.match(new URL(page.url()).hash, /n=shared'left'main/);
    assert.deepEqual((await rows(page, "Callers")).map((row) => row.at(-1)), ["left'main'(below main)"]);
    assert.equal(await code.count(), before, "code is that of the function");
    await page.locator(merged).click();
    await settled(page);
    assert.match(new URL(page.url()).hash, /n=shared&/);
    assert.deepEqual(page.faults, []);
    await page.close();
});

for (const kind of ["", "&own=contexts"]) {
    test(`every view shows functions ${kind ? "apart" : "together"}`, async () => {
        const page = await open(context, "contexts", `#v=1&p=overview,flame${kind}`);
        await page.locator(".navigator .row", { hasText: "left" }).first().dblclick();
        for (const view of VIEWS) {
            await page.locator(`#tab-1-${view}`).click();
            await settled(page);
            const text = await page.locator("#pane-1").innerText() + (await page.locator("#pane-1 .hidden").allInnerTexts()).join(" ");
            assert.ok(!text.includes("This view failed"), `${view}: ${text}`);
            assert.equal(/shared'left/.test(text), kind !== "", `${view}: ${text}`);
        }
        assert.deepEqual(page.faults, []);
        await page.close();
    });
}

test("parts show contexts either way, and are what a report of each says", async () => {
    const page = await open(context, "contexts-twice", "#v=1&num=absolute&part=2&p=overview,code");
    assert.deepEqual(await figures(page), told("contexts-plain.cg"));
    await page.locator(apart).click();
    assert.deepEqual(await figures(page), told("contexts.cg"));
    const again = await open(context, "contexts-twice", new URL(page.url()).hash);
    assert.deepEqual(await figures(again), told("contexts.cg"));
    await again.close();
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("a comparison is of functions either way", async () => {
    const page = await open(context, "contexts-diff", "#v=1&num=absolute&cmp=new&p=overview,code");
    assert.deepEqual(await figures(page), told("contexts-plain.cg"), "what both runs tell apart differently is the same function");
    await page.locator(apart).click();
    const found = await figures(page);
    for (const [name, cost] of Object.entries(told("contexts.cg"))) { assert.equal(found[name], cost, name); }
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("what calls within a cycle cost is no share of anything, and the picture of recursion stays at its box", async () => {
    const page = await open(context, "contexts", "#v=1&p=code,graph");
    await page.locator(".navigator .row", { hasText: "down" }).first().dblclick();
    await settled(page);
    const text = await page.locator("#pane-0").innerText();
    assert.match(text, /down \d+\u00d7, within a cycle/);
    assert.ok(![...text.matchAll(/([\d.,]+) % inclusive/g)].some(([, share]) => Number(share) > 100), text);
    const [box, loop] = await Promise.all(["#pane-1 .node.root rect", "#pane-1 .arc.lit.back path"].map((what) => page.locator(what).first().boundingBox()));
    assert.ok(loop.x >= box.x + box.width / 2 && loop.x + loop.width < box.x + box.width + 60, JSON.stringify([box, loop]));
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("a profile without contexts has no switch", async () => {
    const page = await open(context, "exact");
    assert.equal(await page.locator(".contexts-switch").count(), 0);
    await page.keyboard.press("o");
    assert.deepEqual(page.faults, []);
    await page.close();
});
