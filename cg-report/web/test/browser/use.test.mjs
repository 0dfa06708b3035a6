// The URL is the state, everything can be done by keys, and nobody is shut out.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, open, report, rows, settled, shutOut, VIEWS } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

/** What is seen: texts, chosen things, and pictures as they are. */
async function seen(page) {
    await settled(page);
    return page.evaluate(() => ({
        bar: document.querySelector(".top").innerText,
        panes: [...document.querySelectorAll(".pane")].map((pane) => pane.querySelector(".body").innerText),
        tabs: [...document.querySelectorAll("[role=tab][aria-selected=true]")].map((tab) => tab.innerText),
        fields: [...document.querySelectorAll(".top input, .top select")].map((field) => field.value),
        pictures: [...document.querySelectorAll("canvas")].map((canvas) => [...canvas.toDataURL()].reduce((sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) | 0, 7)),
    }));
}

for (const fixture of ["rust", "cpp", "cc1"]) {
    test(`a link to what is seen of ${fixture} shows the same`, async () => {
        const page = await open(context, fixture);
        await page.locator(".navigator .row").nth(8).dblclick();
        await page.locator("#tab-0-treemap").click();
        await page.locator("#tab-1-flame").click();
        await page.locator("#pane-1 .picture").focus();
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        await page.keyboard.press("e");
        await page.locator("#search").fill("s");
        await settled(page);
        const before = await seen(page);
        const again = await open(context, fixture, new URL(page.url()).hash);
        const after = await seen(again);
        assert.deepEqual(after, before);
        assert.deepEqual([...page.faults, ...again.faults], []);
        await page.close();
        await again.close();
    });
}

test("back leads to where one was", async () => {
    const page = await open(context, "exact");
    const here = () => page.locator(".crumb-bar .here").allInnerTexts();
    await page.locator(".navigator .row", { hasText: "right" }).dblclick();
    await page.locator(".navigator .row", { hasText: "shared" }).dblclick();
    assert.deepEqual(await here(), ["shared"]);
    await page.goBack();
    assert.deepEqual(await here(), ["right"]);
    await page.goBack();
    assert.deepEqual(await here(), []);
    await page.goForward();
    assert.deepEqual(await here(), ["right"]);
    await page.close();
});

test("a link to a function that is not there searches for it", async () => {
    const page = await open(context, "exact", "#v=1&f=0123456789abcdef&n=left");
    assert.match(await page.locator(".note").innerText(), /no function left/);
    assert.deepEqual((await rows(page, "Functions")).map((row) => row[3]), ["left"]);
    await page.close();
});

test("everything can be reached by keys", async () => {
    const page = await open(context, "exact");
    await page.keyboard.press("/");
    await page.keyboard.type("shared");
    await page.keyboard.press("Enter");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".crumb-bar .here").innerText(), "shared");
    await page.keyboard.press("u");
    assert.equal(await page.locator(".crumb-bar .here").innerText(), "right");
    await page.keyboard.press("d");
    assert.equal(await page.locator(".crumb-bar .here").innerText(), "shared");
    for (let at = 0; at < VIEWS.length; at++) {
        await page.keyboard.press(`Digit${at + 1}`);
        await settled(page);
        assert.equal(await page.locator(`#tab-0-${VIEWS[at]}`).getAttribute("aria-selected"), "true");
        await page.keyboard.press(`Shift+Digit${at + 1}`);
        assert.equal(await page.locator(`#tab-1-${VIEWS[at]}`).getAttribute("aria-selected"), "true");
    }
    await page.keyboard.press("e");
    assert.equal(await page.locator(".top select").first().inputValue(), "1");
    await page.keyboard.press("E");
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    // The call graph: to a callee and to make it active.
    await page.keyboard.press("Digit3");
    await settled(page);
    await page.locator("#pane-0 .graph").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    assert.match(await page.locator(".crumb-bar .here").innerText(), /even/);
    await page.keyboard.press("Backspace");
    await page.waitForFunction(() => document.querySelector(".crumb-bar .here")?.textContent === "shared");
    await page.keyboard.press("h");
    assert.equal(await page.locator(".crumb-bar").count(), 0);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("a ratio stands beside costs: its sums are added up by themselves and divided last", async () => {
    const page = await open(context, "rates", "#v=1&p=overview,functions&e2=Rate");
    await settled(page);
    // 100 Dr of 1000 Ir as a whole.
    assert.match((await page.locator(".totals tbody tr").last().innerText()).replace(/\s+/g, " "), /Rate 100 1000 Dr \/ Ir/);
    // Those of the file: 10 of 100 in main, 2 of 20 in leaf.
    const cells = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".navigator .row")].map((row) => [row.querySelector(".name").textContent, [...row.children].map((cell) => cell.textContent)])));
    assert.ok(cells.main.includes("100") && cells.leaf.includes("100"), JSON.stringify(cells));
    assert.deepEqual(await page.locator(".top select").nth(0).locator("option").allInnerTexts(), ["Ir", "Dr"], "it sizes nothing");
    await page.getByTitle("Formulas of events").click();
    await page.getByLabel("Name", { exact: true }).fill("Share");
    await page.getByLabel("Formula", { exact: true }).fill("Ir / Dr + 1");
    await page.getByRole("button", { name: "Add" }).click();
    assert.match(await page.locator("dialog .fault").innerText(), /nothing can be added to a ratio/);
    await page.getByLabel("Formula", { exact: true }).fill("Ir / (Dr - Dr + 2 Dr)");
    await page.getByRole("button", { name: "Add" }).click();
    await page.keyboard.press("Escape");
    await settled(page);
    const again = await open(context, "rates", new URL(page.url()).hash);
    await settled(again);
    assert.match((await again.locator(".totals tbody tr.chosen").last().innerText()).replace(/\s+/g, " "), /Share 5 /);
    assert.deepEqual([...page.faults, ...again.faults], []);
    await page.close();
    await again.close();
});

test("a ratio changes by the difference of what it is on both sides", async () => {
    const page = await open(context, "rates-diff", "#v=1&p=overview,functions");
    await settled(page);
    const totals = await page.evaluate(() => [...document.querySelectorAll(".totals tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent)));
    const [ir, dr, rate] = totals;
    const number = (text) => Number(text.replaceAll(",", ""));
    assert.equal(rate[0], "Rate");
    for (const side of [1, 2]) { assert.ok(Math.abs(number(rate[side]) - (1000 * number(dr[side])) / number(ir[side])) < 0.01, JSON.stringify(totals)); }
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("a formula is an event, and part of the link", async () => {
    const page = await open(context, "exact");
    await page.getByTitle("Formulas of events").click();
    await page.getByLabel("Name", { exact: true }).fill("Cost");
    await page.getByLabel("Formula", { exact: true }).fill("Ir + 3 Dx");
    await page.getByRole("button", { name: "Add" }).click();
    assert.match(await page.locator("dialog .fault").innerText(), /there is no event Dx/);
    await page.getByLabel("Formula", { exact: true }).fill("Ir + 3 (Dr - 2 Dr) + 10 Dr");
    await page.getByRole("button", { name: "Add" }).click();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    // 7 Dr remain beside Ir: 1000 + 700.
    assert.equal((await rows(page, "Functions"))[0][0], "1,700");
    const again = await open(context, "exact", new URL(page.url()).hash);
    await settled(again);
    assert.match(await again.locator(".program").innerText(), /1,700 Cost/);
    await page.close();
    await again.close();
});

for (const theme of ["light", "dark"]) {
    test(`nobody is shut out of the ${theme} theme`, async () => {
        for (const [fixture, views] of [["cpp", VIEWS], ["cachegrind", ["code"]]]) {
            const page = await open(context, fixture);
            await page.emulateMedia({ colorScheme: theme });
            await page.locator(".navigator .row").nth(3).dblclick();
            for (const view of views) {
                await page.locator(`#tab-0-${view}`).click();
                await settled(page);
                assert.deepEqual(await shutOut(page), [], `${fixture} ${view}`);
            }
            await page.close();
        }
    });
}

test("what is seen can be taken out: tables, paths, graphs and pictures", async () => {
    const page = await open(context, "exact", "#v=1&p=flame,graph");
    await settled(page);
    const saved = async (name, pane) => {
        const [download] = await Promise.all([page.waitForEvent("download"), page.locator(pane).getByRole("button", { name, exact: true }).click()]);
        return readFileSync(await download.path());
    };
    const stacks = (await saved("Folded", "#pane-0")).toString().trim().split("\n");
    assert.ok(stacks.includes("main;right;shared 280") && stacks.includes("main 100"), stacks.join("\n"));
    assert.equal(stacks.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0), 1000);
    const scope = JSON.parse(await saved("speedscope", "#pane-0"));
    assert.equal(scope.profiles[0].endValue, 1000);
    assert.match((await saved("DOT", "#pane-1")).toString(), /label="shared"/);
    assert.match((await saved("SVG", "#pane-1")).toString(), /^<svg[^>]*xmlns/);
    assert.equal((await saved("PNG", "#pane-0")).subarray(1, 4).toString(), "PNG");
    const csv = (await saved("CSV", ".navigator")).toString().split("\n");
    assert.equal(csv[1], "main,exact.c,exact,0,1000,100");
    const json = JSON.parse(await saved("JSON", ".navigator"));
    assert.deepEqual(json.functions[0], { function: "main", file: "exact.c", object: "exact", calls: 0, inclusive: 1000, self: 100 });
    const hostile = await open(context, "hostile");
    const [download] = await Promise.all([hostile.waitForEvent("download"), hostile.locator(".navigator").getByRole("button", { name: "CSV" }).click()]);
    assert.match(readFileSync(await download.path(), "utf8"), /"'=HYPERLINK\(""http/, "no formula for a spreadsheet");
    await page.close();
    await hostile.close();
});

test("themes differ, and the switch wins over the system", async () => {
    const page = await open(context, "exact");
    await page.emulateMedia({ colorScheme: "light" });
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await paper();
    await page.keyboard.press("t");
    const dark = await paper();
    assert.notEqual(dark, light);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.keyboard.press("t");
    assert.equal(await paper(), light);
    await page.evaluate(() => localStorage.clear());
    await page.close();
});

for (const [width, name] of [[900, "one pane"], [600, "a sheet"]]) {
    test(`a window of ${width} pixels has ${name}`, async () => {
        const page = await open(context, "exact");
        await page.setViewportSize({ width, height: 700 });
        await settled(page);
        assert.equal(await page.locator(".pane").count(), 1);
        assert.equal(await page.locator(".navigator").count(), width < 700 ? 0 : 1);
        if (width < 700) {
            await page.getByRole("button", { name: "Functions", exact: true }).click();
            assert.equal(await page.locator(".navigator.sheet").count(), 1);
        }
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
        await page.close();
    });
}

for (const [view, box] of [["flame", ".picture"], ["treemap", ".map"], ["graph", ".graph"]]) {
    test(`a key that comes before the next paint of ${view} is one of what is shown now`, async () => {
        const page = await open(context, "cpp");
        await page.locator(`#tab-0-${view}`).click();
        await settled(page);
        // Wherever one is, what is shown becomes something smaller, down to one function alone, and keys come at once.
        for (const deep of [1, 4, 20]) {
            const keys = [...new Array(deep).fill("ArrowDown"), "ArrowRight"];
            await page.locator(`#pane-0 ${box}`).focus();
            for (const key of keys) { await page.keyboard.press(key); }
            await settled(page);
            const at = page.url();
            await page.evaluate(async (where) => {
                const press = (key) => document.querySelector(where)?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, shiftKey: key === "Enter" }));
                press("Enter");
                for (let turn = 0; turn < 20; turn++) {
                    await Promise.resolve();
                    for (const key of ["ArrowRight", "ArrowLeft", "ArrowUp"]) { press(key); }
                }
            }, `#pane-0 ${box}`);
            await settled(page);
            assert.notEqual(page.url(), at, "another function is shown");
            await page.goBack();
            await settled(page);
        }
        assert.equal(await page.locator("text=This view failed").count(), 0);
        assert.deepEqual(page.faults, []);
        await page.close();
    });
}

test("hundreds of random acts do no harm", async () => {
    const page = await open(context, "cpp");
    let state = 12345;
    const random = (below) => {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0;
        return (state >>> 8) % below;
    };
    const keys = ["j", "k", "Enter", "u", "d", "e", "E", "h", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "+", "-", "0", "Escape",
        "Backspace", "Digit1", "Digit2", "Digit3", "Digit4", "Digit5", "Digit6", "Digit7", "Shift+Digit2", "Shift+Digit3", "Shift+Digit4", "Tab"];
    const count = Number(process.env.ACTS ?? 300);
    for (let act = 0; act < count; act++) {
        switch (random(4)) {
            case 0: await page.mouse.click(random(1440), 60 + random(840), { clickCount: 1 + random(2) }); break;
            case 1: await page.mouse.wheel(0, random(1200) - 600); break;
            default: await page.keyboard.press(keys[random(keys.length)]);
        }
        if (act % 50 === 49) { await page.keyboard.press("Escape"); }
    }
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("text=This view failed").count(), 0);
    // Saving a file and leaving by "back" are not faults.
    assert.deepEqual(page.faults.filter((fault) => !fault.includes("download")), []);
    await page.close();
});

test("a cell says in full what it is of, where it is pointed at, also when it has another row", async () => {
    const page = await open(context, "cc1", "#v=1");
    await settled(page);
    const scroll = page.locator(".navigator .scroll");
    const cell = page.locator(".navigator .row").nth(6).locator("[role=gridcell]").first();
    assert.equal(await cell.getAttribute("title"), null, "nobody has asked");
    const told = async () => {
        await cell.hover({ position: { x: 20, y: 10 } });
        await cell.hover({ position: { x: 24, y: 10 } });
        const [text, full] = [await cell.textContent(), await cell.getAttribute("title")];
        const [, count, share] = /^([\d,]+) Ir, (<?[\d.]+) % of the program$/.exec(full);
        assert.equal(share, text);
        return count;
    };
    const first = await told();
    await scroll.evaluate((element) => { element.scrollTop = 40 * 24 * 10; });
    await settled(page);
    assert.notEqual(await told(), first);
    // The cell that is pointed at is the same element, after a leap.
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("rows of a table lie one below the other, wherever it is scrolled to", async () => {
    const page = await open(context, "cc1", "#v=1");
    await settled(page);
    for (const top of [0, 10, 24, 251, 5000, 5012, 1_000_000, 3]) {
        await page.locator(".navigator .scroll").evaluate((element, top) => { element.scrollTop = top; }, top);
        await settled(page);
        const found = await page.evaluate(() => {
            const box = document.querySelector(".navigator .scroll");
            const { top } = box.getBoundingClientRect();
            const rows = [...document.querySelectorAll(".navigator .row")];
            return { scrolled: box.scrollTop, room: box.clientHeight, all: Number(box.ariaRowCount) - 1, rows: rows.map((row) => [Number(row.ariaRowIndex) - 2, row.getBoundingClientRect().top - top]) };
        });
        // The head of the table is above the first row.
        const head = 28;
        for (const [at, y] of found.rows) { assert.ok(Math.abs(y - (head + at * 24 - found.scrolled)) <= 1, `row ${at} at ${y}, scrolled to ${found.scrolled}`); }
        const [first, last] = [Math.floor(found.scrolled / 24), Math.min(found.all - 1, Math.floor((found.scrolled + found.room - head) / 24))];
        const shown = new Set(found.rows.map(([at]) => at));
        for (let at = first; at <= last; at++) { assert.ok(shown.has(at), `row ${at} is shown, scrolled to ${found.scrolled}`); }
    }
    await page.close();
});

test("a worker that has answered is asked again", async () => {
    const page = await context.newPage();
    await page.addInitScript(() => {
        window.workers = 0;
        window.Worker = class extends window.Worker {
            constructor(...args) {
                super(...args);
                window.workers += 1;
            }
        };
    });
    await page.goto(report("cc1", "#v=1&p=graph,overview"));
    await page.waitForSelector("html[data-ready]");
    await settled(page);
    for (const at of [3, 4, 5]) {
        await page.locator(".navigator .row").nth(at).dblclick();
        await settled(page);
        assert.ok(await page.locator(".graph svg.main .node").count() > 0);
    }
    // A search that is ended for its time takes its worker with it; the next question gets another one.
    await page.locator("#search").fill("/^(([a-z_0-9:])+.)+[A-Z]([a-z])+$/");
    await page.waitForTimeout(1500);
    await page.locator("#search").fill("/toplev::main/");
    await page.waitForFunction(() => /^[1-9]\d* of/.test(document.querySelector(".navigator .foot span").textContent) && document.querySelectorAll(".navigator .row").length < 10);
    assert.ok(await page.evaluate(() => window.workers) <= 3);
    await page.close();
});
