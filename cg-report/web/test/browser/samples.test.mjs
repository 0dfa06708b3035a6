// Samples of another profiler beside exact counts: shares, marks, what belongs to nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, rows, settled, shutOut } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

/** Cells of a column by the name of the function. */
async function column(page, label, title) {
    await settled(page);
    const heads = await page.evaluate((label) => [...document.querySelectorAll(`[aria-label="${label}"] [role=columnheader]`)].map((head) => head.innerText.replace(/[\u25b4\u25be\s]+$/, "")), label);
    const [at, name] = [heads.indexOf(title), heads.indexOf("Function")];
    assert.ok(at >= 0, `${title} in ${heads}`);
    return Object.fromEntries((await rows(page, label)).map((row) => [row[name], row[at]]));
}

test("shares of samples stand beside shares of what was counted", async () => {
    const page = await open(context, "samples", "#v=1&p=overview,calls");
    const shares = await column(page, "Functions", "Smp");
    assert.deepEqual([shares.main, shares.shared, shares.right, shares.left], ["12.50", "75.00", "12.50", "0.00"]);
    const card = await page.locator(".samples").innerText();
    assert.match(card, /50 samples, of which 40 \(80.00 %\) are of functions of this profile/);
    assert.match(card, /20.00 % are of no function of this profile/);
    assert.match(card, /75.00\s+35.00\s+2.143\u00d7\s+shared/);
    await page.locator(".samples summary").click();
    assert.match(await page.locator(".samples details").innerText(), /20.00 %\s+evil<i>\u27e8?/);
    assert.match(await page.locator(".warnings").innerText(), /20.0 % of what .*samples.folded has are samples of no function/);
    await page.locator(".navigator .row", { hasText: "shared" }).dblclick();
    assert.match(await page.locator(".samples-of").innerText(), /75.00 % of samples \(30 Smp\) are of it, beside 35.00 % of Ir: 2.143\u00d7/);
    assert.deepEqual(await shutOut(page), []);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("what lies above samples is marked as an estimate, and what is measured is not", async () => {
    const page = await open(context, "samples", "#v=1&e=Smp&p=functions,flame");
    const above = await column(page, "Functions", "Incl.");
    assert.deepEqual([above.main, above.left, above.right, above.shared], ["\u2248\u2009100.00", "\u2248\u200915.00", "\u2248\u200972.50", "\u2248\u200975.00"]);
    const own = await column(page, "Functions", "Self");
    assert.equal(own.shared, "75.00");
    assert.equal(await page.locator("#pane-1 .badge", { hasText: "estimated" }).count(), 1);
    await page.locator("#tab-1-calltree").click();
    const tree = await rows(page, "Call tree");
    assert.equal(tree[0][1], "100.00");
    assert.ok(tree.slice(1).every((row) => row[1].startsWith("\u2248")), JSON.stringify(tree));
    await page.locator("#search").focus();
    await page.locator(".top select").first().selectOption({ label: "Ir" });
    assert.ok(Object.values(await column(page, "Functions", "Incl.")).every((value) => !value.startsWith("\u2248")), "counts are exact");
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("samples of places are of instructions and lines", async () => {
    const page = await open(context, "placed", "#v=1&e=Smp&p=code,overview");
    await page.locator(".navigator .row", { hasText: "work" }).dblclick();
    await settled(page);
    const figures = await page.locator("#pane-0 .lines .line:not(.call) .value").allInnerTexts();
    assert.deepEqual(figures.filter((value) => value !== "" && value !== "0" && value !== "0.00"), ["62.50", "62.50"], "a line, and an instruction");
    assert.deepEqual(page.faults, []);
    await page.close();
});
