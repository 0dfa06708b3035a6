// Parts of a profile: choosing some changes what all views show, to what a report of those alone shows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { createRequire } from "node:module";
import { launch, open, rows, settled } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let context;
before(async () => { context = await launch(); });
after(() => context.close());

const tabs = ["overview", "flame", "treemap", "graph", "calls", "code", "functions"];

/** What a view shows, in words: those of pictures, too, whose colours go by numbers of objects, as the order of what costs the
 * same does. */
async function shown(page, view) {
    await page.locator(`#tab-0-${view}`).click();
    await settled(page);
    return page.evaluate(() => {
        const pane = document.querySelector("#pane-0");
        for (const about of pane.querySelectorAll(".about, .warnings")) { about.remove(); }
        return pane.innerText.split("\n").sort();
    });
}

/** What the navigator says, and all views do of the program and of a function. */
async function everything(page) {
    await page.bringToFront();
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const out = [(await rows(page, "Functions")).map((row) => row.join("|"))];
    // The overview of the program says what files there are.
    out.push(await shown(page, "flame"));
    await page.locator(".navigator .row").nth(2).dblclick();
    for (const view of tabs) { out.push(await shown(page, view)); }
    return out;
}

test("all views show the chosen part as a report of it alone does", async () => {
    const one = await open(context, "threads", "#v=1&p=parts,flame");
    await settled(one);
    assert.equal(await one.locator(".slice").count(), 3);
    await one.locator("#part-1").click();
    await settled(one);
    assert.equal(await one.locator(".chosen-parts").innerText(), "thread 2 \u2715");
    assert.match(await one.locator(".program").innerText(), /280 Ir/);
    const told = await everything(one);
    assert.ok(told[0].length > 5);
    const alone = await open(context, "thread-2", "#v=1&p=overview,flame");
    assert.deepEqual(told, await everything(alone));
    assert.deepEqual([...one.faults, ...alone.faults], []);
    await one.close();
    await alone.close();
});

test("views that are open follow the choice, and a link has it", async () => {
    const page = await open(context, "threads", "#v=1&p=parts,flame");
    await settled(page);
    const picture = () => page.evaluate(() => document.querySelector("#pane-1 canvas").toDataURL());
    const total = () => page.locator(".program").innerText();
    const whole = [await picture(), await total()];
    assert.match(whole[1], /161,771|162 ?k|161\.8/i);
    await page.locator("#part-2").click();
    await settled(page);
    const one = [await picture(), await total()];
    assert.notDeepEqual(one, whole);
    const again = await open(context, "threads", new URL(page.url()).hash);
    await settled(again);
    assert.match(again.url(), /part=3/);
    assert.equal(await again.locator(".program").innerText(), one[1]);
    assert.equal(await again.evaluate(() => document.querySelector("#pane-1 canvas").toDataURL()), one[0]);
    await again.close();
    await page.getByRole("button", { name: "Show all" }).click();
    await settled(page);
    assert.deepEqual([await picture(), await total()], whole);
    // Nothing that a view keeps is what it had before.
    await page.locator("#search").fill("__ctype_init");
    await page.locator(".navigator .row").first().dblclick();
    for (const view of tabs) {
        await page.locator(`#tab-1-${view}`).click();
        await settled(page);
        const words = () => page.locator("#pane-1").innerText();
        const before = await words();
        await page.locator("#part-1").click();
        await settled(page);
        assert.notEqual(await words(), before, view);
        await page.locator(".chosen-parts").click();
        await settled(page);
        assert.equal(await words(), before, view);
    }
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("parts are chosen by keys and by dragging, and the table adds up", async () => {
    const page = await open(context, "threads", "#v=1&p=parts,flame");
    await settled(page);
    const mine = () => page.locator("[role=option][aria-selected=true]").evaluateAll((list) => list.map(({ id }) => id));
    await page.locator(".strip").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    await settled(page);
    assert.deepEqual(await mine(), ["part-1", "part-2"]);
    assert.equal(await page.locator(".chosen-parts").innerText(), "2 of 3 parts \u2715");
    await page.keyboard.press("Escape");
    assert.equal((await mine()).length, 3);
    await page.keyboard.press("Space");
    assert.deepEqual(await mine(), ["part-2"]);
    const box = async (part) => { const { x, y, width, height } = await page.locator(`#part-${part}`).boundingBox(); return [x + width / 2, y + height / 2]; };
    await page.mouse.move(...await box(0));
    await page.mouse.down();
    await page.mouse.move(...await box(1), { steps: 4 });
    await page.mouse.up();
    await settled(page);
    assert.deepEqual(await mine(), ["part-0", "part-1"]);
    await page.locator(".chosen-parts").click();
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const number = (text) => Number(text.replaceAll(",", ""));
    const table = await rows(page, "Functions by parts");
    assert.ok(table.length > 10);
    for (const [name, together, , ...parts] of table) {
        assert.equal(parts.length, 3);
        assert.equal(parts.reduce((sum, text) => sum + number(text), 0), number(together), name);
    }
    await page.getByRole("columnheader", { name: "Spread" }).getByRole("button").click();
    await settled(page);
    assert.equal((await rows(page, "Functions by parts"))[0][2], "\u221e");
    assert.deepEqual(page.faults, []);
    await page.close();
});

for (const theme of ["light", "dark"]) {
    test(`nobody is shut out of parts in the ${theme} theme`, async () => {
        const page = await open(context, "threads", "#v=1&p=parts,flame&part=1-2");
        await page.emulateMedia({ colorScheme: theme });
        await settled(page);
        await page.evaluate(axe);
        const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
        const grave = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        assert.deepEqual(grave.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`), []);
        if (process.env.SHOTS) { await page.screenshot({ path: `${process.env.SHOTS}/parts-${theme}.png` }); }
        await page.close();
    });
}

test("there is no view of parts where there is one", async () => {
    const page = await open(context, "exact");
    assert.equal(await page.locator("#tab-0-parts").count(), 0);
    const odd = await open(context, "exact", "#v=1&part=2-9&p=parts,flame");
    await settled(odd);
    assert.match(await odd.locator(".program").innerText(), /1,000|1\.00/);
    assert.deepEqual([...page.faults, ...odd.faults], []);
    await page.close();
    await odd.close();
});
