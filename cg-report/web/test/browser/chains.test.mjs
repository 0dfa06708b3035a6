// Recorded chains of calls: exact pictures and tables, with the figures of the command line; distances; and what is estimated without
// them is marked.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, rows, settled } from "./browser.mjs";

let context;
before(async () => { context = await launch({ acceptDownloads: true }); });
after(() => context.close());

const data = resolve(import.meta.dirname, "../../../tests/data");
const number = (text) => Number(text.replaceAll(",", ""));
/** A value with all digits, which no mark makes an estimate. */
const exact = (text) => { assert.ok(!text.includes("\u2248"), text); return number(text); };

/** Functions as the report names them: a second one on a stack, and those that follow, as rows do. */
const levelled = (stack) => stack.split(";").map((name, at, all) => (all.indexOf(name) < at ? `${name}'2` : name)).join(";");

/** Stacks as `cg_export` has them, with their costs. */
function exported(file, name = levelled) {
    const text = execFileSync(process.env.CG_EXPORT, ["--format", "folded", resolve(data, file)], { encoding: "utf8" });
    return new Map(text.trim().split("\n").map((line) => {
        const at = line.lastIndexOf(" ");
        return [name(line.slice(0, at)), Number(line.slice(at + 1))];
    }));
}

/** What a function costs in all stacks that it is in, below others or not. */
const within = (stacks, keep) => [...stacks].reduce((sum, [stack, cost]) => sum + (keep(stack.split(";")) ? cost : 0), 0);

async function all(page) {
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
}

async function choose(page, name) {
    await page.locator("#search").fill(`/^${name}$/`);
    await page.waitForFunction(() => document.querySelectorAll(".navigator .row").length === 1);
    await page.locator(".navigator .row").first().dblclick();
    await page.locator("#search").fill("");
    await settled(page);
}

for (const [file, apart] of [["chains", ""], ["chains", "contexts"], ["chains-two", ""], ["chains-two", "contexts"]]) {
    test(`the flame graph of ${file} ${apart} is made of the stacks that cg_export writes`, async () => {
        // Levels of recursion have names where functions are apart.
        const stacks = exported(`${file}.cg.xz`, apart ? levelled : (stack) => stack);
        const page = await open(context, file, `#v=1&p=flame,calltree&own=${apart}`);
        await settled(page);
        assert.equal(await page.locator("#pane-0 .badge").count(), 0, "nothing is estimated");
        const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Folded" }).click()]);
        const written = readFileSync(await download.path(), "utf8").trim().split("\n").map((line) => {
            const at = line.lastIndexOf(" ");
            return [line.slice(0, at), Number(line.slice(at + 1))];
        });
        assert.ok(written.length > 50);
        assert.deepEqual(written.sort(), [...stacks].filter(([, cost]) => cost > 0).sort());
        assert.deepEqual(page.faults, []);
        await page.close();
    });
}

test("a function costs what its stacks do, by caller and by callee", async () => {
    const stacks = exported("chains.cg.xz");
    const page = await open(context, "chains", "#v=1&p=calltree,overview");
    await all(page);
    await choose(page, "spin");
    await page.locator("#pane-0").getByRole("button", { name: "Callers" }).click();
    await settled(page);
    const tree = await rows(page, "Call tree");
    const under = (...path) => within(stacks, (stack) => {
        const at = stack.indexOf("spin");
        return at >= 0 && path.every((name, step) => stack[at - 1 - step] === name);
    });
    const cost = (name) => exact(tree.find((row) => row[0].replace("\u21bb", "") === name)[1]);
    assert.equal(cost("spin"), under());
    assert.equal(cost("shared"), under("shared"));
    // Of the heaviest path each step is open.
    assert.equal(cost("dear"), under("shared", "dear"));
    assert.ok(under("shared", "dear") > 50 * under("shared", "cheap"), "an estimate would share it out by calls");
    const says = await page.locator("#pane-1 .crumbs").innerText();
    assert.match(says.replace(/\s+/g, " "), /main \d.*dear \d.*shared \d.*spin \d/);
    assert.ok(!says.includes("\u2248"), says);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("of a member of a cycle chains tell what ran below it", async () => {
    const stacks = exported("chains.cg.xz");
    const page = await open(context, "chains", "#v=1&p=overview,flame");
    await choose(page, "even");
    const told = /By chains of calls ([\d,]+) Ir/.exec(await page.locator("#pane-0 .subject").innerText());
    assert.equal(number(told[1]), within(stacks, (stack) => stack.includes("even")));
    await page.close();
});

test("all callers and callees have distances, and exact costs by chains", async () => {
    const stacks = exported("chains.cg.xz");
    const page = await open(context, "chains", "#v=1&p=calls,flame");
    await all(page);
    await choose(page, "spin");
    await page.locator("#pane-0").getByRole("button", { name: "All", exact: true }).click();
    await settled(page);
    const callers = new Map((await rows(page, "All callers")).map((row) => [row[3].replace("\u21bb", ""), row]));
    const above = (name) => within(stacks, (stack) => stack.includes("spin") && stack.indexOf(name) >= 0 && stack.indexOf(name) < stack.indexOf("spin"));
    for (const name of ["shared", "dear", "cheap", "even", "odd", "main"]) { assert.equal(exact(callers.get(name)[0]), above(name), name); }
    assert.equal(callers.get("shared")[1], "1");
    assert.equal(callers.get("dear")[1], "2");
    for (const name of ["even", "odd", "main"]) {
        const steps = [...stacks.keys()].map((stack) => stack.split(";")).filter((stack) => stack.includes("spin") && stack.includes(name))
            .map((stack) => stack.indexOf("spin") - stack.indexOf(name));
        assert.equal(callers.get(name)[1], `${Math.min(...steps)}\u2013${Math.max(...steps)}`, name);
    }
    await choose(page, "main");
    const callees = new Map((await rows(page, "All callees")).map((row) => [row[4].replace("\u21bb", ""), row]));
    assert.equal(exact(callees.get("spin")[0]), within(stacks, (stack) => stack.includes("spin")));
    assert.equal(exact(callees.get("spin")[1]), within(stacks, (stack) => stack.at(-1).startsWith("spin")));
    assert.match(callees.get("spin")[2], /^2\u2013[3-9]$/);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("distances without chains are those of the call graph, and shares are marked", async () => {
    const page = await open(context, "exact", "#v=1&p=calls,flame");
    await all(page);
    await choose(page, "shared");
    await page.locator("#pane-0").getByRole("button", { name: "All", exact: true }).click();
    await settled(page);
    const callers = await rows(page, "All callers");
    assert.deepEqual(callers.map((row) => [row[1], row[2]]), [["2", "main"], ["1", "right"], ["1", "left"]]);
    assert.deepEqual(callers.slice(1).map((row) => row[0]), ["400", "100"]);
    await choose(page, "main");
    const callees = await rows(page, "All callees");
    const leaf = callees.find((row) => row[3] === "leaf");
    assert.equal(leaf[2], "5");
    assert.match(leaf[0], /^\u2248/);
    assert.match(await page.locator("#pane-0 .half").nth(1).innerText(), /estimated/);
    await page.close();
});

test("parts have chains of their own", async () => {
    const page = await open(context, "chains-two", "#v=1&p=calltree,flame&part=1");
    await all(page);
    const first = (await rows(page, "Call tree"))[0];
    const total = number((await page.locator(".program .number").getAttribute("title")).split(" ")[0]);
    assert.equal(exact(first[1]), total);
    await choose(page, "spin");
    await page.locator("#pane-0").getByRole("button", { name: "Callers" }).click();
    await settled(page);
    const names = (await rows(page, "Call tree")).map((row) => row[0].replace("\u21bb", ""));
    // The first part ended before `dear` ran.
    assert.ok(names.includes("cheap") && !names.includes("dear"), names.join(" "));
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("causes of a change are exact where both sides have chains", async () => {
    const page = await open(context, "chains-diff", "#v=1&p=why,flame");
    await settled(page);
    const said = (await page.locator("#pane-0 .causes").innerText()).replace(/\s+/g, " ");
    assert.match(said, /shared \u2192 spin: spends more itself/);
    assert.ok(!said.includes("\u2248"), said);
    assert.equal(await page.locator("#pane-1 .badge").count(), 0);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("rows of the call tree open and close by keys, and lead to the flame graph", async () => {
    const page = await open(context, "chains", "#v=1&p=calltree,graph");
    await settled(page);
    await page.getByRole("button", { name: "Close all" }).click();
    await settled(page);
    assert.equal((await rows(page, "Call tree")).length, 1);
    await page.locator("[aria-label='Call tree']").focus();
    await page.keyboard.press("ArrowRight");
    await settled(page);
    assert.ok((await rows(page, "Call tree")).length > 1);
    await page.keyboard.press("ArrowDown");
    await page.getByRole("button", { name: "In flame graph" }).click();
    await settled(page);
    assert.match(page.url(), /p=calltree(,|%2C)flame/);
    assert.match(page.url(), /path=[0-9a-f]{16}/);
    assert.deepEqual(page.faults, []);
    await page.close();
});
