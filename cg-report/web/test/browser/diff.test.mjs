// Comparisons: what changed is told in every view, and why.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, rows, settled, VIEWS } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

const number = (text) => Number(text.replaceAll(",", "").replace("\u2212", "-").replace(/[^0-9.+-]/g, ""));

test("every view of a comparison shows something and nothing goes wrong", async () => {
    const page = await open(context, "diff");
    for (const side of ["Base", "New", "\u0394"]) {
        await page.getByRole("button", { name: side, exact: true }).first().click();
        await page.locator(".navigator .row").nth(9).dblclick();
        for (const view of [...VIEWS, "why"]) {
            await page.locator(`#tab-0-${view}`).click();
            await settled(page);
            const text = await page.locator("#pane-0").innerText();
            assert.ok(!text.includes("This view failed") && text.trim().length > 10, `${side} ${view}: ${text.slice(0, 200)}`);
        }
    }
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("totals, differences and causes are those of the two profiles", async () => {
    const page = await open(context, "exact-diff");
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const cells = await page.locator(".totals tbody tr").first().locator("td").allInnerTexts();
    assert.deepEqual(cells.slice(0, 3).map(number), [1150, 1000, 150]);
    const shown = await rows(page, "Functions");
    const of = (name) => shown.find((row) => row[3] === name);
    assert.deepEqual([of("right")[1], number(of("right")[2])], ["300", 100]);
    assert.deepEqual([of("fresh")[1], number(of("fresh")[2])], ["50", 50]);
    assert.equal(of("shared")[2], "0");
    const causes = (await page.locator(".causes li").allInnerTexts()).map((text) => text.replace(/\s+/g, " "));
    assert.match(causes[0], /\+100 66\.67 % main → right: spends more itself, called 1\.50 times as often/);
    assert.match(causes[1], /\+50 33\.33 % main → fresh: only in the new profile, called 1×/);
    assert.match(causes[2], /^0 0\.00 % spread thin/);
    await page.close();
});

test("a cause is a link: flame graph, selection and URL follow it", async () => {
    const page = await open(context, "exact-diff", "#v=1&p=why,flame");
    await settled(page);
    await page.locator(".cause").first().click();
    await settled(page);
    assert.match(page.url(), /why=0/);
    assert.match(page.url(), /path=[0-9a-f]{16}\.[0-9a-f]{16}/);
    assert.match(await page.locator("#pane-1 [aria-live]").innerText(), /^right/);
    const again = await open(context, "exact-diff", new URL(page.url()).hash);
    await settled(again);
    assert.equal(await again.locator(".cause.chosen").count(), 1);
    assert.match(await again.locator("#pane-1 [aria-live]").innerText(), /^right/);
    await page.close();
    await again.close();
});

test("only what changed can be listed", async () => {
    const page = await open(context, "exact-diff");
    await settled(page);
    const names = async (which) => {
        await page.locator(".navigator .foot select").selectOption(which);
        await settled(page);
        return (await rows(page, "Functions")).map((row) => row[3].replace("\u21bb", "")).sort();
    };
    assert.deepEqual(await names("new"), ["fresh"]);
    assert.deepEqual(await names("changed"), ["fresh", "main", "right"]);
    assert.deepEqual(await names("gone"), []);
    await page.close();
});

test("lines and groups show their differences", async () => {
    const page = await open(context, "exact-diff", "#v=1&p=code,flame");
    await page.locator(".navigator .row", { hasText: "right" }).dblclick();
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const lines = (await page.locator("#pane-0 .lines [role=row]").allInnerTexts()).map((line) => line.replace(/\s+/g, " ").trim());
    assert.ok(lines.some((line) => /^300 ▲\+100 20/.test(line)), lines.join("\n"));
    await page.getByRole("tab", { name: "Groups" }).click();
    await settled(page);
    const groups = await rows(page, "Groups");
    assert.deepEqual([groups[0][0], groups[0][1], number(groups[0][2])], ["exact", "1,150", 150]);
    await page.close();
});
