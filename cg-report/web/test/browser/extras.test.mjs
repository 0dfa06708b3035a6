// Small multiples, cycles as boxes, the hottest loop, links to editors.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, rows, settled, shutOut } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

test("parts stand beside one another as flame graphs of one scale", async () => {
    const page = await open(context, "threads", "#v=1&p=parts,functions");
    await page.locator("#pane-0 button", { hasText: "Flames" }).click();
    await settled(page);
    const pictures = await page.locator(".small-picture").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
    assert.equal(pictures.length, 3);
    const shares = pictures.map((text) => Number(/([\d.]+) %/.exec(text)[1]));
    assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100) < 0.05, pictures.join("\n"));
    // A picture is as wide as its part of the largest one.
    const painted = await page.locator(".small-picture canvas").evaluateAll((all) => all.map((canvas) => {
        const row = canvas.getContext("2d").getImageData(0, 4, canvas.width, 1).data;
        let last = -1;
        for (let x = 0; x < canvas.width; x++) { if (row[x * 4 + 3] > 0) { last = x; } }
        return (last + 1) / canvas.width;
    }));
    const largest = Math.max(...shares);
    shares.forEach((share, at) => assert.ok(Math.abs(painted[at] - share / largest) < 0.02, `${painted[at]} of ${share}`));
    assert.deepEqual(await shutOut(page), []);
    await page.locator(".multiples .link", { hasText: "thread 2" }).click();
    await settled(page);
    assert.match(await page.locator(".chosen-parts").innerText(), /thread 2/);
    assert.equal(await page.locator(".small-picture").count(), 1);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("a cycle is one box, which opens", async () => {
    const page = await open(context, "exact", "#v=1&p=graph,functions");
    await settled(page);
    const nodes = () => page.locator("#pane-0 [role=tree] [role=treeitem]").allInnerTexts();
    const before = await nodes();
    assert.ok(before.some((text) => text.startsWith("even")) && before.some((text) => text.startsWith("odd")), before.join("; "));
    await page.locator("#pane-0 button", { hasText: "Cycles" }).click();
    await settled(page);
    await page.waitForFunction(() => document.querySelector("#pane-0 [role=tree]").innerText.includes("cycle 1"));
    const boxed = await nodes();
    assert.equal(boxed.length, before.length - 1, boxed.join("; "));
    // even and odd have 13 % by themselves, and leaf 2 % below.
    assert.ok(boxed.some((text) => /cycle 1: 2 functions, (about )?15\.00 %/.test(text)), boxed.join("; "));
    assert.ok(!boxed.some((text) => /^(even|odd)/.test(text)));
    assert.equal(await page.locator("#pane-0 .main .arc.back").count(), 0, "arcs within are within the box");
    // With room for all of the picture above the lower view.
    await page.setViewportSize({ width: 1400, height: 1600 });
    await settled(page);
    await page.locator("#pane-0 .main .node", { hasText: "cycle 1" }).dblclick();
    await page.waitForFunction(() => document.querySelector("#pane-0 [role=tree]").innerText.includes("odd"));
    assert.deepEqual((await nodes()).sort(), before.sort());
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("the hottest loop is the one of most self cost", async () => {
    const page = await open(context, "loop", "#v=1&p=overview,code");
    await page.waitForSelector(".hottest");
    const text = await page.locator(".hottest").innerText();
    // The inner loop: 10 times 20 rounds, 900 instructions of 964.
    assert.match(text, /93\.36 % of Ir in a loop of \(below main\), loop\.s:9: 20\S* iterations each of 10\S* times, 4\.5\S* Ir per iteration/);
    await page.locator(".hottest .link", { hasText: "its loops" }).click();
    await settled(page);
    const loops = await rows(page, "Loops");
    assert.ok(loops.some((row) => row.includes("93.36")), JSON.stringify(loops));
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("source lines link to the editor that was named, and to nothing else", async () => {
    const page = await open(context, "editor", "#v=1&p=code,overview");
    await settled(page);
    const links = () => page.locator("#pane-0 a.editor").evaluateAll((all) => all.map((link) => link.getAttribute("href").replace(/^vscode:\/\/file\/[^ "<>]*\//, "")));
    assert.deepEqual(await links(), ["loop.s:5"], "the file, at its first line with costs");
    await page.locator("#pane-0 .lines .line", { hasText: "jnz inner" }).hover();
    assert.deepEqual(await links(), ["loop.s:5", "loop.s:14"]);
    await page.locator("#pane-0 .lines .line", { hasText: "jnz inner" }).locator(".text").click();
    assert.deepEqual(await links(), ["loop.s:14", "loop.s:14"]);
    await page.locator(".navigator .row").first().click({ button: "right" });
    assert.match(await page.locator(".menu a").getAttribute("href"), /^vscode:\/\/file\/.*loop\.s:5$/);
    assert.deepEqual(await shutOut(page), []);
    assert.deepEqual(page.faults, []);
    await page.close();
    const plain = await open(context, "loop", "#v=1&p=code,overview");
    await settled(plain);
    assert.equal(await plain.locator("a.editor").count(), 0);
    await plain.close();
});
